// To dates and times.

#include <cmath>

#include "sim/sql/converter.h"
#include "sim/sql/dates.h"
#include "sim/sql/environment.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

[[noreturn]] void RaiseDateText() {
  RaiseSql(241, 16, 1,
           "Conversion failed when converting date and/or time from character string.");
}

[[noreturn]] void RaiseDateRange(const SqlType& from, const SqlType& to) {
  RaiseSql(242, 16, 3,
           "The conversion of a " + TypeWord(from) + " data type to a " + TypeWord(to) +
               " data type resulted in an out-of-range value.");
}

}  // namespace

DateTimeValue Converter::ToDateTime(const Value& value) const {
  DateTimeValue date;
  if (const auto* held = std::get_if<DateTimeValue>(&value.held)) {
    date = *held;
    if (from_.id == TypeId::kTime && to_.id != TypeId::kTime) date.days = kDaysOf1900;
  } else if (IsText(from_.id)) {
    date = DateFromText(value);
  } else if (const auto* bytes = std::get_if<Bytes>(&value.held)) {
    Bytes padded = *bytes;
    padded.insert(padded.begin(), padded.size() < 8 ? 8 - padded.size() : 0, 0);
    std::uint32_t days = 0, units = 0;
    for (std::size_t i = 0; i < 4; ++i) days = days << 8 | padded[i];
    for (std::size_t i = 4; i < 8; ++i) units = units << 8 | padded[i];
    date.days = kDaysOf1900 + static_cast<std::int32_t>(days);
    date.ticks = (std::int64_t{units} * 100'000 + 1) / 3;
    if (date.ticks >= kTicksPerDay || date.days < 0 || date.days > kDaysMax) {
      RaiseOverflow();
    }
  } else {
    const double days = std::get<double>(
        ConvertValue(value, from_, TypeOf(TypeId::kFloat), options_).held);
    const double floor = std::floor(days);
    if (floor < -53690 || floor > 2958463) RaiseOverflow();
    date.days = kDaysOf1900 + static_cast<std::int32_t>(floor);
    date.ticks = std::llround((days - floor) * static_cast<double>(kTicksPerDay));
    const auto carried = AddTicks({date.days, 0, 0}, date.ticks);
    if (!carried) RaiseOverflow();
    date = *carried;
  }
  const auto rounded = RoundTo(date, to_);
  if (!rounded) RaiseDateRange(from_, to_);
  DateTimeValue result = *rounded;
  if (to_.id != TypeId::kDateTimeOffset) result.offset_minutes = 0;
  return result;
}

DateTimeValue Converter::DateFromText(const Value& value) const {
  const std::string text = Utf8Of(value);
  bool out_of_range = false;
  bool has_offset = false;
  const auto date = ParseDateTime(text, options_.style, options_.dateformat,
                                  out_of_range, has_offset);
  const bool old = to_.id == TypeId::kDateTime || to_.id == TypeId::kSmallDateTime;
  if (!date && out_of_range && old) RaiseDateRange(from_, to_);
  if (!date) RaiseDateText();
  if (has_offset && old) RaiseDateText();
  // datetime reads at most three digits of a fraction.
  if (old) {
    const std::size_t point = text.rfind('.');
    if (point != std::string::npos && text.find(':') < point) {
      std::size_t digits = 0;
      while (point + 1 + digits < text.size() &&
             std::isdigit(static_cast<unsigned char>(text[point + 1 + digits]))) {
        ++digits;
      }
      if (digits > 3) RaiseDateText();
    }
  }
  return *date;
}

}  // namespace mssql_cdc::sim
