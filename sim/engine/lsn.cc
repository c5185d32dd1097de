#include "sim/engine/lsn.h"

#include <cstring>

#include "base/dice.h"
#include "base/text.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::uint32_t kFirstLogFile = 0x2A;
constexpr std::uint32_t kFirstBlock = 0x100;
constexpr std::uint32_t kBlocksPerLogFile = 0x10000;
constexpr std::uint16_t kSlotsPerBlock = 0x180;

std::uint32_t Read32(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
}

}  // namespace

Lsn MakeLsn(std::uint32_t log_file, std::uint32_t block, std::uint16_t slot) {
  Lsn lsn;
  for (unsigned i = 0; i < 4; ++i) {
    lsn.bytes[i] = static_cast<std::uint8_t>(log_file >> (24 - 8 * i));
    lsn.bytes[4 + i] = static_cast<std::uint8_t>(block >> (24 - 8 * i));
  }
  lsn.bytes[8] = static_cast<std::uint8_t>(slot >> 8);
  lsn.bytes[9] = static_cast<std::uint8_t>(slot);
  return lsn;
}

Lsn Lsn::Incremented() const {
  Lsn next = *this;
  for (std::size_t i = next.bytes.size(); i-- > 0;) {
    if (++next.bytes[i] != 0) break;
  }
  return next;
}

Lsn Lsn::Decremented() const {
  Lsn next = *this;
  for (std::size_t i = next.bytes.size(); i-- > 0;) {
    if (next.bytes[i]-- != 0) break;
  }
  return next;
}

std::string Lsn::Hex() const { return "0x" + HexUpper(bytes); }

LogSequence::LogSequence(std::uint64_t seed, const Lsn& last)
    : seed_(seed), last_(last) {
  if (last_.IsZero()) last_ = MakeLsn(kFirstLogFile, kFirstBlock, 1);
}

std::uint64_t LogSequence::Draw(std::uint64_t count) const {
  std::uint64_t position = 0;
  std::memcpy(&position, last_.bytes.data() + 2, sizeof(position));
  return Dice(seed_ ^ position * 0x9E3779B97F4A7C15ull).Below(count);
}

Lsn LogSequence::NextRecord() {
  const auto slot = static_cast<std::uint16_t>(last_.bytes[8] << 8 | last_.bytes[9]);
  if (slot >= kSlotsPerBlock) NextBlock();
  const auto now = static_cast<std::uint16_t>(last_.bytes[8] << 8 | last_.bytes[9]);
  last_ = MakeLsn(Read32(last_.bytes.data()), Read32(last_.bytes.data() + 4),
                  static_cast<std::uint16_t>(now + 1 + Draw(3)));
  return last_;
}

void LogSequence::NextBlock() {
  std::uint32_t log_file = Read32(last_.bytes.data());
  std::uint32_t block = Read32(last_.bytes.data() + 4);
  block += static_cast<std::uint32_t>(8 * (1 + Draw(6)));
  if (block >= kBlocksPerLogFile) {
    ++log_file;
    block = 0x10;
  }
  last_ = MakeLsn(log_file, block, 1);
}

}  // namespace mssql_cdc::sim
