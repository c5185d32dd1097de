// Appends TDS fields to bytes that grow.

#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tds/utf16.h"

namespace mssql_cdc::tds {

class Writer {
 public:
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  std::vector<std::uint8_t> Take() { return std::move(bytes_); }
  std::size_t size() const { return bytes_.size(); }

  template <std::unsigned_integral T>
  void Le(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
  template <std::unsigned_integral T>
  void Be(T value) {
    for (std::size_t i = sizeof(T); i > 0; --i) {
      bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * (i - 1))));
    }
  }
  void Bytes(std::span<const std::uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void Bytes(std::string_view bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void Utf16(std::string_view utf8) { AppendUtf16(utf8, bytes_); }
  // Overwrites the integer at `offset`, which was written before.
  template <std::unsigned_integral T>
  void PatchLe(std::size_t offset, T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace mssql_cdc::tds
