#include "lake/rows_for_test.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace mssql_cdc::lake {
namespace {

using columns::Column;
using columns::ColumnBuilder;
using columns::Kind;

constexpr std::int64_t kDayUs = 86'400'000'000;

template <typename T>
T Value(const Column& column, std::int64_t row) {
  T value;
  std::memcpy(&value, column.values.data() + static_cast<std::size_t>(row) * sizeof(T),
              sizeof(T));
  return value;
}

bool Bit(const columns::Buffer& bits, std::int64_t row) {
  return (bits.data()[row / 8] >> (row % 8) & 1) != 0;
}

std::string DecimalText(__int128 value) {
  const bool is_negative = value < 0;
  std::string digits;
  do {
    const int digit = static_cast<int>(value % 10);
    digits.insert(digits.begin(),
                  static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    value /= 10;
  } while (value != 0);
  return is_negative ? '-' + digits : digits;
}

std::string FloatText(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

std::string ValueText(const Column& column, std::int64_t row) {
  if (column.null_count != 0 && !Bit(column.validity, row)) return "NULL";
  switch (column.type.kind) {
    case Kind::kBool:
      return Bit(column.values, row) ? "true" : "false";
    case Kind::kInt16:
      return std::to_string(Value<std::int16_t>(column, row));
    case Kind::kInt32:
    case Kind::kDate32:
      return std::to_string(Value<std::int32_t>(column, row));
    case Kind::kInt64:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      return std::to_string(Value<std::int64_t>(column, row));
    case Kind::kFloat32:
      return FloatText(static_cast<double>(Value<float>(column, row)));
    case Kind::kFloat64:
      return FloatText(Value<double>(column, row));
    case Kind::kDecimal128:
      return DecimalText(Value<__int128>(column, row));
    case Kind::kUtf8:
    case Kind::kBinary:
      break;
  }
  std::int32_t bounds[2];
  std::memcpy(bounds, column.offsets.data() + static_cast<std::size_t>(row) * 4, 8);
  const std::span bytes(column.values.data() + bounds[0],
                        static_cast<std::size_t>(bounds[1] - bounds[0]));
  if (column.type.kind == Kind::kBinary) return HexUpper(bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

__int128 PowerOfTen(int exponent) {
  __int128 power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}

// Row 0: smallest, 1: largest, 2: ordinary.
void AppendExtreme(std::int64_t row, ColumnBuilder& out) {
  const auto pick = [row](auto smallest, auto largest, auto ordinary) {
    return row == 0 ? smallest : row == 1 ? largest : ordinary;
  };
  const std::int64_t first_day = DaysFromCivil(1, 1, 1);
  const std::int64_t last_day = DaysFromCivil(9999, 12, 31);
  switch (out.type().kind) {
    case Kind::kBool:
      return out.AppendBool(row == 1);
    case Kind::kInt16:
      return out.AppendInt16(
          pick(std::int16_t{-32768}, std::int16_t{32767}, std::int16_t{-1}));
    case Kind::kInt32:
      return out.AppendInt32(pick(std::numeric_limits<std::int32_t>::min(),
                                  std::numeric_limits<std::int32_t>::max(), 42));
    case Kind::kInt64:
      return out.AppendInt64(pick(std::numeric_limits<std::int64_t>::min(),
                                  std::numeric_limits<std::int64_t>::max(),
                                  std::int64_t{1} << 53));
    case Kind::kFloat32:
      return out.AppendFloat32(pick(std::numeric_limits<float>::lowest(),
                                    std::numeric_limits<float>::max(), 1.18e-38F));
    case Kind::kFloat64:
      return out.AppendFloat64(pick(std::numeric_limits<double>::lowest(),
                                    std::numeric_limits<double>::max(), 2.23e-308));
    case Kind::kDecimal128: {
      const __int128 largest = PowerOfTen(out.type().precision) - 1;
      return out.AppendDecimal(pick(-largest, largest, __int128{-7}));
    }
    case Kind::kDate32:
      return out.AppendInt32(
          static_cast<std::int32_t>(pick(first_day, last_day, std::int64_t{0})));
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      return out.AppendInt64(pick(first_day * kDayUs, last_day * kDayUs + (kDayUs - 1),
                                  std::int64_t{1'795'976'616'846'123}));
    case Kind::kUtf8:
      return out.AppendBytes(pick(std::string_view(""),
                                  std::string_view("\xF0\x9F\x98\x80 zß"),
                                  std::string_view("plain")));
    case Kind::kBinary:
      return out.AppendBytes(pick(std::string_view("\0\0", 2),
                                  std::string_view("\xFF\xFE", 2),
                                  std::string_view("")));
  }
}

}  // namespace

TestFolder::TestFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "lake_XXXXXX").string();
  const char* made = ::mkdtemp(pattern.data());
  if (made != nullptr) path_ = made;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::unique_ptr<columns::BatchReader> ReadRows(const columns::Schema& schema,
                                               std::int64_t row_count,
                                               const MakeValue& make) {
  const auto shared = std::make_shared<const columns::Schema>(schema);
  std::vector<columns::RecordBatch> batches;
  if (row_count > 0) {
    columns::RecordBatch batch{shared, row_count, {}};
    for (std::size_t i = 0; i < schema.fields.size(); ++i) {
      ColumnBuilder builder(schema.fields[i].type, row_count);
      for (std::int64_t row = 0; row < row_count; ++row) make(row, i, builder);
      batch.columns.push_back(std::make_shared<const Column>(builder.Finish()));
    }
    batches.push_back(std::move(batch));
  }
  return columns::ReadBatches(shared, std::move(batches));
}

std::vector<std::string> TextOf(columns::BatchReader& reader) {
  std::vector<std::string> rows;
  while (true) {
    auto batch = reader.Next();
    if (!batch.ok()) {
      rows.push_back(batch.error().Text());
      return rows;
    }
    if (!batch.value()) return rows;
    for (std::int64_t row = 0; row < batch.value()->row_count; ++row) {
      std::string text;
      for (const auto& column : batch.value()->columns) {
        if (column != batch.value()->columns.front()) text += '|';
        text += ValueText(*column, row);
      }
      rows.push_back(std::move(text));
    }
  }
}

std::vector<std::string> RowsOf(Lake& lake, const std::string& location,
                                const ReadSpec& spec) {
  auto reader = lake.Read(location, spec);
  if (!reader.ok()) return {reader.error().Text()};
  return TextOf(*reader.value());
}

columns::Schema EveryKindSchema() {
  return {{{"a_bool", {Kind::kBool}},
           {"a_short", {Kind::kInt16}},
           {"an_int", {Kind::kInt32}},
           {"a_long", {Kind::kInt64}},
           {"a_float", {Kind::kFloat32}},
           {"a_double", {Kind::kFloat64}},
           {"decimal_9_4", {Kind::kDecimal128, 9, 4}},
           {"decimal_18_0", {Kind::kDecimal128, 18, 0}},
           {"decimal_38_0", {Kind::kDecimal128, 38, 0}},
           {"decimal_38_10", {Kind::kDecimal128, 38, 10}},
           {"decimal_38_38", {Kind::kDecimal128, 38, 38}},
           {"a_date", {Kind::kDate32}},
           {"an_ntz", {Kind::kTimestampNtz}},
           {"an_instant", {Kind::kTimestampUtc}},
           {"a_text", {Kind::kUtf8}},
           {"a_binary", {Kind::kBinary}}}};
}

std::unique_ptr<columns::BatchReader> EveryKindRows() {
  return ReadRows(EveryKindSchema(), 4,
                  [](std::int64_t row, std::size_t, ColumnBuilder& out) {
                    if (row == 3) {
                      out.AppendNull();
                    } else {
                      AppendExtreme(row, out);
                    }
                  });
}

}  // namespace mssql_cdc::lake
