// Reads TDS fields from bytes that are already in memory, and never past their end.
//
// A Reader fails once and stays failed: after the first read that does not fit, every
// later read yields zero. A decoder therefore reads a token's fields in a straight
// line, and its caller asks ok() once. The bytes are borrowed and must outlive the
// Reader; a Reader belongs to one thread.

#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mssql_cdc::tds {

static_assert(std::endian::native == std::endian::little,
              "integers are copied as they lie on the wire");

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  std::size_t offset() const { return offset_; }
  // Bytes not yet read; they stay readable after a failure.
  std::size_t remaining() const { return bytes_.size() - offset_; }

  // An unsigned little-endian integer, or zero once the Reader has failed.
  template <std::unsigned_integral T>
  T Le() {
    T value = 0;
    const auto field = Bytes(sizeof(T));
    if (!field.empty()) std::memcpy(&value, field.data(), sizeof(T));
    return value;
  }

  // The same, big-endian.
  template <std::unsigned_integral T>
  T Be() {
    T value = 0;
    for (const std::uint8_t byte : Bytes(sizeof(T))) {
      if constexpr (sizeof(T) > 1) value = static_cast<T>(value << 8);
      value = static_cast<T>(value | byte);
    }
    return value;
  }

  // The next `count` bytes, or none once the Reader has failed.
  std::span<const std::uint8_t> Bytes(std::size_t count) {
    ok_ = ok_ && count <= bytes_.size() - offset_;
    if (!ok_) return {};
    offset_ += count;
    return bytes_.subspan(offset_ - count, count);
  }

  // Text in UTF-16LE with its length in code units before it: one byte (B_VARCHAR) or
  // two (US_VARCHAR). Gives the text's bytes.
  std::span<const std::uint8_t> ByteVarChar() {
    return Bytes(std::size_t{2} * Le<std::uint8_t>());
  }
  std::span<const std::uint8_t> ShortVarChar() {
    return Bytes(std::size_t{2} * Le<std::uint16_t>());
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t offset_ = 0;  // Invariant: offset_ <= bytes_.size().
  bool ok_ = true;
};

}  // namespace mssql_cdc::tds
