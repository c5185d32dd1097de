#include "columns/cast.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/check.h"
#include "columns/cell_access.h"
#include "columns/value_text.h"

namespace mssql_cdc::columns {
namespace {

constexpr std::int64_t kDayUs = 86'400'000'000;

bool IsInteger(Kind kind) {
  return kind == Kind::kInt16 || kind == Kind::kInt32 || kind == Kind::kInt64;
}
bool IsFloat(Kind kind) { return kind == Kind::kFloat32 || kind == Kind::kFloat64; }
bool IsTimestamp(Kind kind) {
  return kind == Kind::kTimestampNtz || kind == Kind::kTimestampUtc;
}

// The digits that the largest value of an integer type has, as Arrow counts them.
int IntegerDigits(Kind kind) {
  return kind == Kind::kInt16 ? 5 : kind == Kind::kInt32 ? 10 : 19;
}

std::int64_t IntegerAt(const Column& column, std::size_t row) {
  switch (column.type.kind) {
    case Kind::kBool:
      return BitAt(column.values.data(), row) ? 1 : 0;
    case Kind::kInt16:
      return ValueAt<std::int16_t>(column, row);
    case Kind::kInt32:
    case Kind::kDate32:
      return ValueAt<std::int32_t>(column, row);
    default:
      return ValueAt<std::int64_t>(column, row);
  }
}

bool AppendInteger(ColumnBuilder& to, std::int64_t value) {
  switch (to.type().kind) {
    case Kind::kInt16:
      if (value != static_cast<std::int16_t>(value)) return false;
      to.AppendInt16(static_cast<std::int16_t>(value));
      return true;
    case Kind::kInt32:
    case Kind::kDate32:
      if (value != static_cast<std::int32_t>(value)) return false;
      to.AppendInt32(static_cast<std::int32_t>(value));
      return true;
    default:
      to.AppendInt64(value);
      return true;
  }
}

// Integers that a float type holds without gaps.
bool AppendIntegerAsFloat(ColumnBuilder& to, std::int64_t value) {
  const bool is_double = to.type().kind == Kind::kFloat64;
  const std::int64_t whole_max = std::int64_t{1} << (is_double ? 53 : 24);
  if (value > whole_max || value < -whole_max) return false;
  is_double ? to.AppendFloat64(static_cast<double>(value))
            : to.AppendFloat32(static_cast<float>(value));
  return true;
}

bool AppendDecimal(ColumnBuilder& to, Int128 unscaled) {
  if (DigitCount(unscaled) > to.type().precision) return false;
  to.AppendDecimal(unscaled);
  return true;
}

bool FromInteger(const Column& from, std::size_t row, ColumnBuilder& to) {
  const std::int64_t value = IntegerAt(from, row);
  switch (to.type().kind) {
    case Kind::kFloat32:
    case Kind::kFloat64:
      return AppendIntegerAsFloat(to, value);
    case Kind::kDecimal128:
      return AppendDecimal(to, Int128{value} * PowerOfTen(to.type().scale));
    case Kind::kUtf8:
      if (from.type.kind == Kind::kBool) {
        to.AppendBytes(value != 0 ? "true" : "false");
      } else {
        to.AppendBytes(std::to_string(value));
      }
      return true;
    default:
      return AppendInteger(to, value);
  }
}

bool FromFloat(const Column& from, std::size_t row, ColumnBuilder& to) {
  const bool is_double = from.type.kind == Kind::kFloat64;
  const double value = is_double ? ValueAt<double>(from, row)
                                 : static_cast<double>(ValueAt<float>(from, row));
  if (to.type().kind == Kind::kFloat64) {
    to.AppendFloat64(value);
    return true;
  }
  if (to.type().kind == Kind::kUtf8) {
    to.AppendBytes(is_double ? FloatText(value) : FloatText(ValueAt<float>(from, row)));
    return true;
  }
  constexpr double kInt64Bound = 9223372036854775808.0;
  if (!(value >= -kInt64Bound && value < kInt64Bound) || std::trunc(value) != value) {
    return false;
  }
  return AppendInteger(to, static_cast<std::int64_t>(value));
}

bool FromDecimal(const Column& from, std::size_t row, ColumnBuilder& to) {
  const auto unscaled = ValueAt<Int128>(from, row);
  const int scale = from.type.scale;
  switch (to.type().kind) {
    case Kind::kUtf8:
      to.AppendBytes(DecimalText(unscaled, scale));
      return true;
    // Both numbers are exact there, so the quotient is the nearest value.
    case Kind::kFloat64:
      to.AppendFloat64(static_cast<double>(unscaled) /
                       static_cast<double>(PowerOfTen(scale)));
      return true;
    case Kind::kFloat32:
      to.AppendFloat32(static_cast<float>(unscaled) /
                       static_cast<float>(PowerOfTen(scale)));
      return true;
    default:
      break;
  }
  const int to_scale = to.type().kind == Kind::kDecimal128 ? to.type().scale : 0;
  Int128 value = unscaled;
  if (to_scale < scale) {
    const Int128 divisor = PowerOfTen(scale - to_scale);
    if (unscaled % divisor != 0) return false;
    value = unscaled / divisor;
  } else {
    if (DigitCount(unscaled) + to_scale - scale > 38) return false;
    value = unscaled * PowerOfTen(to_scale - scale);
  }
  if (to.type().kind == Kind::kDecimal128) return AppendDecimal(to, value);
  if (value != static_cast<std::int64_t>(value)) return false;
  return AppendInteger(to, static_cast<std::int64_t>(value));
}

bool FromTime(const Column& from, std::size_t row, ColumnBuilder& to) {
  const std::int64_t value = IntegerAt(from, row);
  const bool is_date = from.type.kind == Kind::kDate32;
  if (to.type().kind == Kind::kUtf8) {
    std::string text =
        is_date ? DateText(static_cast<std::int32_t>(value)) : TimestampText(value);
    if (from.type.kind == Kind::kTimestampUtc) text += 'Z';
    to.AppendBytes(text);
    return true;
  }
  if (!is_date || !IsTimestamp(to.type().kind)) return AppendInteger(to, value);
  if (value > std::numeric_limits<std::int64_t>::max() / kDayUs ||
      value < std::numeric_limits<std::int64_t>::min() / kDayUs) {
    return false;
  }
  to.AppendInt64(value * kDayUs);
  return true;
}

bool FromText(const Column& from, std::size_t row, ColumnBuilder& to) {
  const std::string_view text = BytesAt(from, row);
  // Appends what was parsed, if anything was.
  const auto append = [&to](const auto& value, auto member) {
    if (!value) return false;
    (to.*member)(*value);
    return true;
  };
  switch (to.type().kind) {
    case Kind::kBool:
      return append(ParseBoolText(text), &ColumnBuilder::AppendBool);
    case Kind::kInt16:
    case Kind::kInt32:
    case Kind::kInt64: {
      const auto value = ParseIntegerText(text);
      return value && AppendInteger(to, *value);
    }
    case Kind::kFloat32:
      return append(ParseFloatText(text), &ColumnBuilder::AppendFloat32);
    case Kind::kFloat64:
      return append(ParseDoubleText(text), &ColumnBuilder::AppendFloat64);
    case Kind::kDecimal128:
      return append(ParseDecimalText(text, to.type().precision, to.type().scale),
                    &ColumnBuilder::AppendDecimal);
    case Kind::kDate32:
      return append(ParseDateText(text), &ColumnBuilder::AppendInt32);
    case Kind::kTimestampNtz:
      return append(ParseTimestampText(text, ZoneOffset::kForbidden),
                    &ColumnBuilder::AppendInt64);
    case Kind::kTimestampUtc:
      return append(ParseTimestampText(text, ZoneOffset::kRequired),
                    &ColumnBuilder::AppendInt64);
    case Kind::kUtf8:
      if (!IsUtf8(text)) return false;
      [[fallthrough]];
    case Kind::kBinary:
      to.AppendBytes(text);
      return true;
  }
  return false;
}

using ValueCast = bool (*)(const Column&, std::size_t, ColumnBuilder&);

ValueCast CastOf(Kind from) {
  switch (from) {
    case Kind::kBool:
    case Kind::kInt16:
    case Kind::kInt32:
    case Kind::kInt64:
      return FromInteger;
    case Kind::kFloat32:
    case Kind::kFloat64:
      return FromFloat;
    case Kind::kDecimal128:
      return FromDecimal;
    case Kind::kDate32:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      return FromTime;
    case Kind::kUtf8:
    case Kind::kBinary:
      return FromText;
  }
  return nullptr;
}

CastFit FitOfInteger(const Type& from, const Type& to) {
  if (IsInteger(to.kind) || IsFloat(to.kind) || to.kind == Kind::kUtf8) {
    return CastFit::kPerValue;
  }
  if (from.kind == Kind::kBool) return CastFit::kNever;
  if (to.kind == Kind::kBool) return CastFit::kLossy;
  if (to.kind == Kind::kDecimal128) {
    return to.precision >= IntegerDigits(from.kind) + to.scale ? CastFit::kPerValue
                                                               : CastFit::kNever;
  }
  const bool same_layout = (from.kind == Kind::kInt32 && to.kind == Kind::kDate32) ||
                           (from.kind == Kind::kInt64 && IsTimestamp(to.kind));
  return same_layout ? CastFit::kPerValue : CastFit::kNever;
}

CastFit FitOfFloat(const Type& from, const Type& to) {
  if (IsInteger(to.kind) || to.kind == Kind::kUtf8) return CastFit::kPerValue;
  if (from.kind == Kind::kFloat32 && to.kind == Kind::kFloat64) {
    return CastFit::kPerValue;
  }
  const bool alters =
      IsFloat(to.kind) || to.kind == Kind::kDecimal128 || to.kind == Kind::kBool;
  return alters ? CastFit::kLossy : CastFit::kNever;
}

CastFit FitOfDecimal(const Type& from, const Type& to) {
  if (to.kind == Kind::kDecimal128 || IsInteger(to.kind) || to.kind == Kind::kUtf8) {
    return CastFit::kPerValue;
  }
  if (!IsFloat(to.kind)) return CastFit::kNever;
  // So many decimal digits survive the way there and back.
  const int digits_kept = to.kind == Kind::kFloat64 ? 15 : 6;
  return from.precision <= digits_kept ? CastFit::kPerValue : CastFit::kLossy;
}

CastFit FitOfTime(const Type& from, const Type& to) {
  if (IsTimestamp(to.kind) || to.kind == Kind::kUtf8) return CastFit::kPerValue;
  if (from.kind == Kind::kDate32) {
    return to.kind == Kind::kInt32 ? CastFit::kPerValue : CastFit::kNever;
  }
  if (to.kind == Kind::kDate32) return CastFit::kLossy;
  return to.kind == Kind::kInt64 ? CastFit::kPerValue : CastFit::kNever;
}

}  // namespace

CastFit CastFitOf(const Type& from, const Type& to) {
  if (from == to) return CastFit::kSame;
  switch (from.kind) {
    case Kind::kBool:
    case Kind::kInt16:
    case Kind::kInt32:
    case Kind::kInt64:
      return FitOfInteger(from, to);
    case Kind::kFloat32:
    case Kind::kFloat64:
      return FitOfFloat(from, to);
    case Kind::kDecimal128:
      return FitOfDecimal(from, to);
    case Kind::kDate32:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      return FitOfTime(from, to);
    case Kind::kUtf8:
      return CastFit::kPerValue;
    case Kind::kBinary:
      return to.kind == Kind::kDate32 || IsTimestamp(to.kind) ? CastFit::kNever
                                                              : CastFit::kPerValue;
  }
  return CastFit::kNever;
}

CastOutcome Cast(const Column& from, const Type& to) {
  CHECK(CastFitOf(from.type, to) == CastFit::kPerValue);
  const ValueCast cast = CastOf(from.type.kind);
  ColumnBuilder builder(to, from.row_count);
  for (std::int64_t row = 0; row < from.row_count; ++row) {
    const auto index = static_cast<std::size_t>(row);
    if (IsNull(from, index)) {
      builder.AppendNull();
    } else if (!cast(from, index, builder)) {
      return {{}, row};
    }
  }
  return {builder.Finish(), std::nullopt};
}

}  // namespace mssql_cdc::columns
