// Bytes of the wire, written and read: the simulator's own little-endian cursor pair.
//
// A ByteReader never runs past its end: the first read that does makes it failed for
// good, and every later read gives zeros. A parser asks ok() once, at its end.

#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace mssql_cdc::sim::wire {

static_assert(std::endian::native == std::endian::little,
              "the simulator copies numbers as they lie in memory");

class ByteBuffer {
 public:
  using Spill = std::function<void(std::string_view)>;

  ByteBuffer() = default;
  // Hands bytes on to `spill` before many have gathered, so that a large value is never
  // held a second time. What is left at the end goes on with SpillAll().
  explicit ByteBuffer(Spill spill) : spill_(std::move(spill)) {}

  void U8(std::uint8_t value) { bytes_ += static_cast<char>(value); }
  void U16(std::uint16_t value) { Number(value); }
  void U32(std::uint32_t value) { Number(value); }
  void I32(std::int32_t value) { Number(value); }
  void U64(std::uint64_t value) { Number(value); }
  void U16Be(std::uint16_t value) {
    U8(static_cast<std::uint8_t>(value >> 8));
    U8(static_cast<std::uint8_t>(value));
  }
  void U32Be(std::uint32_t value) {
    U16Be(static_cast<std::uint16_t>(value >> 16));
    U16Be(static_cast<std::uint16_t>(value));
  }
  // The low `size` bytes of `value`.
  void Low(std::uint64_t value, std::size_t size) {
    bytes_.append(reinterpret_cast<const char*>(&value), size);
  }
  void Raw(std::string_view bytes) {
    if (spill_ != nullptr && bytes_.size() + bytes.size() > kHeldSizeBytesMax) {
      SpillAll();
      if (bytes.size() > kHeldSizeBytesMax) {
        spill_(bytes);
        return;
      }
    }
    bytes_ += bytes;
  }
  void Raw(std::span<const std::uint8_t> bytes) {
    Raw(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  void Raw(std::u16string_view text) {
    Raw(std::string_view(reinterpret_cast<const char*>(text.data()), text.size() * 2));
  }
  void Fill(std::size_t count, char byte) { bytes_.append(count, byte); }
  // UTF-16 with its length in units before it, in one byte or two. Longer text is cut.
  void BVarChar(std::u16string_view text) {
    text = text.substr(0, 255);
    U8(static_cast<std::uint8_t>(text.size()));
    Raw(text);
  }
  void UsVarChar(std::u16string_view text) {
    text = text.substr(0, 65535);
    U16(static_cast<std::uint16_t>(text.size()));
    Raw(text);
  }

  void SpillAll() {
    if (!bytes_.empty()) spill_(bytes_);
    bytes_.clear();
  }
  const std::string& bytes() const { return bytes_; }
  std::string& bytes() { return bytes_; }

 private:
  static constexpr std::size_t kHeldSizeBytesMax = 64u << 10;

  template <typename T>
  void Number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::string bytes_;
  Spill spill_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint8_t U8() { return Number<std::uint8_t>(); }
  std::uint16_t U16() { return Number<std::uint16_t>(); }
  std::uint32_t U32() { return Number<std::uint32_t>(); }
  std::int32_t I32() { return Number<std::int32_t>(); }
  std::uint64_t U64() { return Number<std::uint64_t>(); }
  std::uint16_t U16Be() {
    const std::uint16_t value = U16();
    return static_cast<std::uint16_t>(value << 8 | value >> 8);
  }
  // A number of `size` bytes, at most eight.
  std::uint64_t Low(std::size_t size) {
    std::uint64_t value = 0;
    const std::span<const std::uint8_t> raw = Take(size);
    if (!raw.empty()) std::memcpy(&value, raw.data(), raw.size());
    return value;
  }
  std::span<const std::uint8_t> Take(std::size_t count) {
    if (count > remaining()) {
      failed_ = true;
      at_ = bytes_.size();
      return {};
    }
    const std::span<const std::uint8_t> taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }
  std::u16string Utf16(std::size_t units) {
    if (units > remaining() / 2) {
      Take(remaining() + 1);
      return {};
    }
    const std::span<const std::uint8_t> raw = Take(units * 2);
    std::u16string text(units, u'\0');
    if (!raw.empty()) std::memcpy(text.data(), raw.data(), raw.size());
    return text;
  }
  std::uint8_t Peek() const { return remaining() > 0 ? bytes_[at_] : 0; }

  std::size_t remaining() const { return bytes_.size() - at_; }
  std::size_t at() const { return at_; }
  bool ok() const { return !failed_; }
  void Fail() { Take(remaining() + 1); }

 private:
  template <typename T>
  T Number() {
    T value = 0;
    const std::span<const std::uint8_t> raw = Take(sizeof(T));
    if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace mssql_cdc::sim::wire
