#include "sim/sql/numbers.h"

#include <charconv>

namespace mssql_cdc::sim {

std::optional<double> ParseDouble(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double number = 0;
  const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Bytes BytesFromHex(std::string_view digits) {
  Bytes bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    std::uint8_t byte = 0;
    std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
    bytes.push_back(byte);
  }
  return bytes;
}

}  // namespace mssql_cdc::sim
