// Dates from text and to text.

#include <array>
#include <cstdio>
#include <vector>

#include "base/text.h"
#include "sim/sql/dates.h"

namespace mssql_cdc::sim {
namespace {

// One reading of a date's text. Fields are absent until found.
class DateReader {
 public:
  DateReader(std::string_view text, int style, std::string_view dateformat)
      : text_(text), style_(style), order_(dateformat) {
    // A style says in which order day and month come.
    switch (style % 100) {
      case 1:
      case 10:
      case 7:
        order_ = "mdy";
        break;
      case 3:
      case 4:
      case 5:
      case 6:
      case 13:
        order_ = "dmy";
        break;
      case 2:
      case 11:
      case 12:
      case 20:
      case 21:
      case 23:
      case 26:
      case 27:
        order_ = "ymd";
        break;
      default:
        break;
    }
  }

  std::optional<DateTimeValue> Read(bool& out_of_range, bool& has_offset) {
    SkipBlanks();
    if (at_ == text_.size()) return DateTimeValue{kDaysOf1900, 0, 0};
    while (at_ < text_.size()) {
      if (!ReadPart()) return std::nullopt;
      SkipBlanks();
    }
    return Assemble(out_of_range, has_offset);
  }

 private:
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static bool IsAlpha(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void SkipBlanks() {
    while (Peek() == ' ' || Peek() == '\t' || Peek() == ',') ++at_;
  }

  bool ReadPart() {
    if (IsDigit(Peek())) return ReadDigits();
    if ((Peek() == '+' || Peek() == '-') && has_time_) return ReadOffset();
    if (!IsAlpha(Peek())) return false;
    std::string word;
    while (IsAlpha(Peek())) word += text_[at_++];
    word = LowerAscii(word);
    if (word == "t" && IsDigit(Peek())) return !has_time_;
    if (word == "z" && has_time_) {
      offset_ = 0;
      return true;
    }
    if ((word == "am" || word == "pm") && has_time_) {
      if (hour_ > 12) return false;
      hour_ = hour_ % 12 + (word == "pm" ? 12 : 0);
      return true;
    }
    for (int month = 1; month <= 12; ++month) {
      const std::string name = LowerAscii(MonthName(month));
      if (word == name || word == name.substr(0, 3)) {
        month_ = month;
        return true;
      }
    }
    return false;
  }

  bool ReadOffset() {
    const std::size_t first = at_;
    ++at_;
    while (IsDigit(Peek()) || Peek() == ':') ++at_;
    const auto offset = ParseOffset(text_.substr(first, at_ - first));
    if (!offset) return false;
    offset_ = *offset;
    return true;
  }

  int ReadNumber(std::size_t& digit_count) {
    int value = 0;
    digit_count = 0;
    while (IsDigit(Peek()) && digit_count < 9) {
      value = value * 10 + (text_[at_++] - '0');
      ++digit_count;
    }
    return value;
  }

  bool ReadDigits() {
    std::size_t count = 0;
    const std::size_t first = at_;
    const int value = ReadNumber(count);
    const char next = Peek();
    const bool meridiem = (next == ' ' ? Peek(1) : next) == 'A' ||
                          (next == ' ' ? Peek(1) : next) == 'P' ||
                          (next == ' ' ? Peek(1) : next) == 'a' ||
                          (next == ' ' ? Peek(1) : next) == 'p';
    if (next == ':' || (meridiem && count <= 2 && HasDate())) return ReadTime(value);
    if (count == 8 && !HasDate()) {
      year_ = value / 10000;
      month_ = value / 100 % 100;
      day_ = value % 100;
      return true;
    }
    if (count == 6 && !HasDate()) {
      year_ = FourDigits(value / 10000, 2);
      month_ = value / 100 % 100;
      day_ = value % 100;
      return true;
    }
    if (next == '/' || next == '-' || next == '.') {
      at_ = first;
      return ReadSeparated(next);
    }
    // With a month's name: the year is what has four digits, or comes last.
    if (count == 4 || (month_ && day_)) {
      year_ = FourDigits(value, count);
    } else if (!day_) {
      day_ = value;
    } else {
      return false;
    }
    return true;
  }

  bool HasDate() const { return year_ && month_ && day_; }
  static int FourDigits(int year, std::size_t digit_count) {
    if (digit_count > 2) return year;
    return year < 50 ? 2000 + year : 1900 + year;
  }

  // 2026-11-20, 11/20/2026, 20.11.2026, 20-Nov-2026
  bool ReadSeparated(char separator) {
    std::array<int, 3> values{};
    std::array<std::size_t, 3> counts{};
    for (std::size_t i = 0; i < 3; ++i) {
      if (i > 0 && Peek() == separator) {
        ++at_;
      } else if (i > 0) {
        return false;
      }
      if (IsAlpha(Peek())) return false;
      values[i] = ReadNumber(counts[i]);
      if (counts[i] == 0) return false;
    }
    if (counts[0] == 4) {
      year_ = values[0];
      const bool day_first = order_ == "dmy" && style_ == 0 && legacy_;
      month_ = values[day_first ? 2 : 1];
      day_ = values[day_first ? 1 : 2];
      return true;
    }
    std::size_t year = 2, month = 0, day = 1;
    if (order_ == "dmy") {
      month = 1;
      day = 0;
    } else if (order_ == "ymd" && counts[2] != 4) {
      year = 0;
      month = 1;
      day = 2;
    }
    year_ = FourDigits(values[year], counts[year]);
    month_ = values[month];
    day_ = values[day];
    return true;
  }

  bool ReadTime(int hour) {
    if (has_time_) return false;
    has_time_ = true;
    hour_ = hour;
    std::size_t count = 0;
    if (Peek() != ':') return true;
    ++at_;
    minute_ = ReadNumber(count);
    if (count == 0) return false;
    if (Peek() == ':') {
      ++at_;
      second_ = ReadNumber(count);
      if (count == 0) return false;
    }
    if (Peek() == '.' || Peek() == ':') {
      const bool milliseconds = Peek() == ':';
      ++at_;
      std::int64_t unit = milliseconds ? 10'000 : kTicksPerSecond / 10;
      std::size_t digits = 0;
      while (IsDigit(Peek())) {
        const int digit = text_[at_++] - '0';
        ++digits;
        if (milliseconds) {
          fraction_ = fraction_ * 10 + digit * unit;
          continue;
        }
        if (digits == 8 && digit >= 5) ++fraction_;
        fraction_ += digit * unit;
        unit /= 10;
      }
      if (digits == 0 || digits > 9) return false;
    }
    return true;
  }

  std::optional<DateTimeValue> Assemble(bool& out_of_range, bool& has_offset) const {
    const bool date = year_ || month_ || day_;
    if (!date && !has_time_) return std::nullopt;
    if (date && !(year_ && month_)) return std::nullopt;
    const int year = year_.value_or(1900);
    const int month = month_.value_or(1);
    const int day = day_.value_or(1);
    if (year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 ||
        day > DaysInMonth(year, month) || hour_ > 23 || minute_ > 59 || second_ > 59) {
      out_of_range = true;
      return std::nullopt;
    }
    DateTimeValue value;
    value.days = DaysOfDate(year, month, day);
    value.ticks =
        (hour_ * 3600LL + minute_ * 60 + second_) * kTicksPerSecond + fraction_;
    has_offset = offset_.has_value();
    value.offset_minutes = static_cast<std::int16_t>(offset_.value_or(0));
    if (value.ticks >= kTicksPerDay) value.ticks = kTicksPerDay - 1;
    return value;
  }

  std::string_view text_;
  int style_;
  std::string order_;
  bool legacy_ = false;
  std::size_t at_ = 0;
  std::optional<int> year_, month_, day_, offset_;
  bool has_time_ = false;
  int hour_ = 0, minute_ = 0, second_ = 0;
  std::int64_t fraction_ = 0;
};

std::string Padded(std::int64_t value, int width, char fill = '0') {
  std::string text = std::to_string(value);
  while (static_cast<int>(text.size()) < width) text.insert(text.begin(), fill);
  return text;
}

// Text of one value, part by part.
struct DateWriter {
  CalendarParts parts;
  const SqlType& type;
  int digit_count;  // Of the fraction.
  bool has_date, has_time;

  std::string Year(bool century) const {
    return century ? Padded(parts.year, 4) : Padded(parts.year % 100, 2);
  }
  std::string Month() const { return Padded(parts.month, 2); }
  std::string Day() const { return Padded(parts.day, 2); }
  std::string ShortMonth() const {
    return std::string(MonthName(parts.month).substr(0, 3));
  }

  std::string Fraction(int digits) const {
    std::int64_t value = parts.fraction;
    // datetime holds 1/300 s; three digits show it rounded.
    if (type.id == TypeId::kDateTime && digits == 3) value += 5'000;
    const std::string all = Padded(value, 7);
    return all.substr(0, static_cast<std::size_t>(digits));
  }
  std::string Time(bool fraction, char mark = '.') const {
    std::string text = Padded(parts.hour, 2) + ':' + Padded(parts.minute, 2) + ':' +
                       Padded(parts.second, 2);
    if (fraction && digit_count > 0) text += mark + Fraction(digit_count);
    return text;
  }
  // " 8:40AM", with seconds and fraction in style 109.
  std::string Meridiem(bool seconds) const {
    const int hour = parts.hour % 12 == 0 ? 12 : parts.hour % 12;
    std::string text = Padded(hour, 2, ' ') + ':' + Padded(parts.minute, 2);
    if (seconds) {
      text += ':' + Padded(parts.second, 2);
      if (digit_count > 0) {
        text += (type.id == TypeId::kDateTime ? ':' : '.') + Fraction(digit_count);
      }
    }
    return text + (parts.hour < 12 ? "AM" : "PM");
  }
  std::string Joined(const std::string& date, const std::string& time,
                     const std::string& between = " ") const {
    if (!has_time) return date;
    if (!has_date) return time;
    return date + between + time;
  }
};

std::optional<std::string> Styled(const DateWriter& w, int style) {
  const bool century = style >= 100;
  const std::string y = w.Year(century), m = w.Month(), d = w.Day();
  switch (style % 100) {
    case 0:
    case 9:
      return w.Joined(
          w.ShortMonth() + ' ' + Padded(w.parts.day, 2, ' ') + ' ' + w.Year(true),
          w.Meridiem(style % 100 == 9));
    case 1:
      return m + '/' + d + '/' + y;
    case 2:
      return y + '.' + m + '.' + d;
    case 3:
      return d + '/' + m + '/' + y;
    case 4:
      return d + '.' + m + '.' + y;
    case 5:
      return d + '-' + m + '-' + y;
    case 6:
      return d + ' ' + w.ShortMonth() + ' ' + y;
    case 7:
      return w.ShortMonth() + ' ' + d + ", " + y;
    case 8:
    case 24:
      return w.Time(false);
    case 10:
      return m + '-' + d + '-' + y;
    case 11:
      return y + '/' + m + '/' + d;
    case 12:
      return y + m + d;
    case 13:
      return w.Joined(d + ' ' + w.ShortMonth() + ' ' + w.Year(true), w.Time(true, ':'));
    case 14:
      return w.Time(true, w.type.id == TypeId::kDateTime ? ':' : '.');
    case 20:
      return w.Joined(w.Year(true) + '-' + m + '-' + d, w.Time(false));
    case 21:
    case 25:
      return w.Joined(w.Year(true) + '-' + m + '-' + d, w.Time(true));
    case 23:
      return w.Year(true) + '-' + m + '-' + d;
    case 26:
    case 27:
      return w.Joined(w.Year(true) + '-' + m + '-' + d, w.Time(w.parts.fraction != 0),
                      "T");
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<DateTimeValue> ParseDateTime(std::string_view text, int style,
                                           std::string_view dateformat,
                                           bool& out_of_range, bool& has_offset) {
  out_of_range = false;
  has_offset = false;
  return DateReader(text, style, dateformat).Read(out_of_range, has_offset);
}

std::optional<std::string> DateTimeText(const DateTimeValue& value, const SqlType& type,
                                        int style) {
  const bool has_time = type.id != TypeId::kDate;
  const bool has_date = type.id != TypeId::kTime;
  const bool newer = type.id != TypeId::kDateTime && type.id != TypeId::kSmallDateTime;
  // The newer types' default is ISO text.
  if (newer && style == 0) style = 121;
  if (style == 130 || style == 131) return std::nullopt;
  DateTimeValue shown = value;
  const bool utc = style == 127 && type.id == TypeId::kDateTimeOffset;
  if (utc) {
    shown = AddTicks(value, -value.offset_minutes * kTicksPerMinute).value_or(value);
  }
  const int digits =
      type.id == TypeId::kDateTime ? 3
      : type.id == TypeId::kSmallDateTime
          ? (style == 21 || style == 121 || style == 9 || style == 109 ? 3 : 0)
      : type.id == TypeId::kDate ? 0
                                 : type.scale;
  const DateWriter writer{PartsOf(shown), type, digits, has_date, has_time};
  std::optional<std::string> text = Styled(writer, style);
  if (!text || type.id != TypeId::kDateTimeOffset) return text;
  if (utc) return *text + 'Z';
  const int kind = style % 100;
  const bool shows_time = kind == 0 || kind == 9 || kind == 13 || kind == 20 ||
                          kind == 21 || kind == 25 || kind == 26;
  if (!shows_time) return text;
  return *text + (kind == 26 ? "" : " ") + OffsetText(value.offset_minutes);
}

}  // namespace mssql_cdc::sim
