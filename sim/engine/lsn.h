// Log sequence numbers, as the simulated log hands them out.
//
// An LSN is ten bytes, big-endian: virtual log file, log block, slot. The sequence is a
// function of the seed and of how many records were written, so a run can be replayed.

#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace mssql_cdc::sim {

struct Lsn {
  std::array<std::uint8_t, 10> bytes = {};

  auto operator<=>(const Lsn&) const = default;
  bool IsZero() const { return *this == Lsn{}; }
  // Plus or minus one on the ten-byte integer; wraps around at the ends.
  Lsn Incremented() const;
  Lsn Decremented() const;
  // "0x0000002A000001A00003".
  std::string Hex() const;
};

// The write position of one database's log.
class LogSequence {
 public:
  LogSequence() = default;
  LogSequence(std::uint64_t seed, const Lsn& last);

  // The LSN of the next record: a little above the last one.
  Lsn NextRecord();
  // Opens a new log block, as a new transaction mostly does.
  void NextBlock();
  const Lsn& last() const { return last_; }
  // Continues above `lsn`, which must not be below last().
  void MoveTo(const Lsn& lsn) { last_ = lsn; }

 private:
  std::uint64_t Draw(std::uint64_t count) const;

  std::uint64_t seed_ = 0;
  Lsn last_;
};

Lsn MakeLsn(std::uint32_t log_file, std::uint32_t block, std::uint16_t slot);

}  // namespace mssql_cdc::sim
