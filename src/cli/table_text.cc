#include "cli/table_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace mssql_cdc::cli {
namespace {

using columns::Column;
using columns::Kind;

template <typename T>
T At(const columns::Buffer& buffer, std::int64_t row) {
  T value;
  std::memcpy(&value, buffer.data() + static_cast<std::size_t>(row) * sizeof(T),
              sizeof(T));
  return value;
}

bool BitAt(const columns::Buffer& bits, std::int64_t row) {
  return (bits.data()[row / 8] >> (row % 8) & 1) != 0;
}

std::string DecimalText(__int128 unscaled, std::uint8_t scale) {
  const bool negative = unscaled < 0;
  auto rest = negative ? -static_cast<unsigned __int128>(unscaled)
                       : static_cast<unsigned __int128>(unscaled);
  std::string digits;
  for (int place = 0; rest != 0 || place <= scale; ++place) {
    if (scale > 0 && place == scale) digits += '.';
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  }
  if (negative) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

std::string TimestampText(std::int64_t us) {
  std::string text = IsoMillis(us);
  const std::int64_t below_ms = ((us % 1000) + 1000) % 1000;
  if (below_ms != 0) text += fmt::format("{:03}", below_ms);
  return text;
}

std::string DateText(std::int32_t days) {
  const CivilDate date = CivilFromDays(days);
  return fmt::format("{:04}-{:02}-{:02}", date.year, date.month, date.day);
}

std::string_view BytesAt(const Column& column, std::int64_t row) {
  const auto begin = At<std::int32_t>(column.offsets, row);
  const auto end = At<std::int32_t>(column.offsets, row + 1);
  return {reinterpret_cast<const char*>(column.values.data()) + begin,
          static_cast<std::size_t>(end - begin)};
}

// Where `text` may be cut so that at most `width_max` characters stay whole.
std::string Cut(const std::string& text, std::size_t width_max) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (begins && characters++ == width_max) return text.substr(0, i) + "…";
  }
  return text;
}

std::size_t Width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string CellText(const Column& column, std::int64_t row) {
  if (column.null_count > 0 && !BitAt(column.validity, row)) return "NULL";
  switch (column.type.kind) {
    case Kind::kBool:
      return BitAt(column.values, row) ? "true" : "false";
    case Kind::kInt16:
      return std::to_string(At<std::int16_t>(column.values, row));
    case Kind::kInt32:
      return std::to_string(At<std::int32_t>(column.values, row));
    case Kind::kInt64:
      return std::to_string(At<std::int64_t>(column.values, row));
    case Kind::kFloat32:
      return fmt::format("{}", At<float>(column.values, row));
    case Kind::kFloat64:
      return fmt::format("{}", At<double>(column.values, row));
    case Kind::kDecimal128:
      return DecimalText(At<__int128>(column.values, row), column.type.scale);
    case Kind::kDate32:
      return DateText(At<std::int32_t>(column.values, row));
    case Kind::kTimestampNtz:
      return TimestampText(At<std::int64_t>(column.values, row));
    case Kind::kTimestampUtc:
      return TimestampText(At<std::int64_t>(column.values, row)) + "Z";
    case Kind::kUtf8:
      return std::string(BytesAt(column, row));
    case Kind::kBinary: {
      const std::string_view bytes = BytesAt(column, row);
      return "0x" + HexUpper({reinterpret_cast<const std::uint8_t*>(bytes.data()),
                              bytes.size()});
    }
  }
  return "";
}

std::string TableText(const std::vector<std::string>& names,
                      const std::vector<std::vector<std::string>>& rows,
                      std::size_t width_max) {
  std::vector<std::vector<std::string>> lines{names};
  for (const auto& row : rows) lines.push_back(row);
  std::vector<std::size_t> widths(names.size(), 0);
  for (auto& line : lines) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      line[i] = Cut(line[i], width_max);
      widths[i] = std::max(widths[i], Width(line[i]));
    }
  }
  std::string text;
  for (const auto& line : lines) {
    std::string shown = "  ";
    for (std::size_t i = 0; i < names.size(); ++i) {
      shown += line[i] + std::string(widths[i] - Width(line[i]) + 2, ' ');
    }
    shown.erase(shown.find_last_not_of(' ') + 1);
    text += shown + '\n';
  }
  return text;
}

}  // namespace mssql_cdc::cli
