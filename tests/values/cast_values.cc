// Casts single values, for check_casts.py to compare with pyarrow.
//
// A line of standard input is "FROM<tab>TO<tab>VALUE", types in Spark's words, the
// value as the column's buffer holds it: integers (days, microseconds, unscaled
// decimals) in decimal, floats as %a, texts and bytes in hexadecimal. The answer is the
// value that came out in the same form, "error", or "lossy" or "never" for a pair of
// types.

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "base/text.h"
#include "cdc/spark_ddl.h"
#include "columns/batch.h"
#include "columns/cast.h"
#include "columns/value_text.h"

namespace {

using namespace mssql_cdc;
using columns::Column;
using columns::ColumnBuilder;
using columns::Int128;
using columns::Kind;
using columns::Type;

Type TypeOf(const std::string& name) {
  const auto fields = cdc::ParseColumnsOption("v " + name);
  if (!fields.ok()) {
    std::fprintf(stderr, "%s\n", fields.error().Text().c_str());
    std::exit(2);
  }
  return fields.value()[0].type;
}

double RealOf(const std::string& text) {
  const bool negative = text.starts_with('-');
  std::string_view digits = std::string_view(text).substr(negative ? 1 : 0);
  if (digits == "inf" || digits == "nan") {
    const double value = *columns::ParseDoubleText(digits);
    return negative ? -value : value;
  }
  digits.remove_prefix(2);  // 0x
  double value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value,
                  std::chars_format::hex);
  return negative ? -value : value;
}

std::string BytesOf(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

Column ColumnOf(const Type& type, const std::string& value) {
  ColumnBuilder builder(type, 1);
  switch (type.kind) {
    case Kind::kBool:
      builder.AppendBool(value == "1");
      break;
    case Kind::kInt16:
      builder.AppendInt16(static_cast<std::int16_t>(*ParseInt64(value)));
      break;
    case Kind::kInt32:
    case Kind::kDate32:
      builder.AppendInt32(static_cast<std::int32_t>(*ParseInt64(value)));
      break;
    case Kind::kInt64:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      builder.AppendInt64(*ParseInt64(value));
      break;
    case Kind::kFloat32:
      builder.AppendFloat32(static_cast<float>(RealOf(value)));
      break;
    case Kind::kFloat64:
      builder.AppendFloat64(RealOf(value));
      break;
    case Kind::kDecimal128:
      builder.AppendDecimal(*columns::ParseDecimalText(value, 38, 0));
      break;
    case Kind::kUtf8:
    case Kind::kBinary:
      builder.AppendBytes(BytesOf(value));
      break;
  }
  return builder.Finish();
}

template <typename T>
T Load(const Column& column) {
  T value;
  std::memcpy(&value, column.values.data(), sizeof(T));
  return value;
}

std::string RealText(double value) {
  if (value != value) return "nan";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%a", value);
  return text.data();
}

std::string TextOf(const Column& column) {
  switch (column.type.kind) {
    case Kind::kBool:
      return std::to_string(column.values.data()[0] & 1);
    case Kind::kInt16:
      return std::to_string(Load<std::int16_t>(column));
    case Kind::kInt32:
    case Kind::kDate32:
      return std::to_string(Load<std::int32_t>(column));
    case Kind::kInt64:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      return std::to_string(Load<std::int64_t>(column));
    case Kind::kFloat32:
      return RealText(static_cast<double>(Load<float>(column)));
    case Kind::kFloat64:
      return RealText(Load<double>(column));
    case Kind::kDecimal128:
      return columns::DecimalText(Load<Int128>(column), 0);
    case Kind::kUtf8:
    case Kind::kBinary:
      return LowerAscii(HexUpper({column.values.data(), column.values.size_bytes()}));
  }
  return "";
}

std::string Answer(const std::string& line) {
  const std::size_t first = line.find('\t');
  const std::size_t second = line.find('\t', first + 1);
  const Type from = TypeOf(line.substr(0, first));
  const Type to = TypeOf(line.substr(first + 1, second - first - 1));
  switch (columns::CastFitOf(from, to)) {
    case columns::CastFit::kLossy:
      return "lossy";
    case columns::CastFit::kNever:
      return "never";
    case columns::CastFit::kSame:
      return line.substr(second + 1);
    case columns::CastFit::kPerValue:
      break;
  }
  const Column column = ColumnOf(from, line.substr(second + 1));
  const columns::CastOutcome outcome = columns::Cast(column, to);
  return outcome.failed_row ? "error" : TextOf(outcome.column);
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << Answer(line) << '\n';
}
