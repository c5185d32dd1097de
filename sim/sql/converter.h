// One conversion of a value: what convert.cc carries out, type by type.

#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sim/sql/convert.h"

namespace mssql_cdc::sim {

class Converter {
 public:
  Converter(const SqlType& from, const SqlType& to, const ConvertOptions& options)
      : from_(from), to_(to), options_(options) {}

  Value Run(const Value& value) const;

 private:
  // convert_to_number.cc
  std::int64_t CheckedInteger(__int128 value) const;
  std::int64_t IntegerFromText(const std::string& written) const;
  std::int64_t ToInteger(const Value& value) const;
  static double DaysSince1900(const Value& value);
  double ToDouble(const Value& value) const;
  Decimal ToDecimal(const Value& value) const;
  Decimal ToMoney(const Value& value) const;

  // convert_to_date.cc
  DateTimeValue ToDateTime(const Value& value) const;
  DateTimeValue DateFromText(const Value& value) const;

  // convert_to_bytes.cc
  Guid ToGuid(const Value& value) const;
  Bytes ToBytes(const Value& value) const;
  Bytes BytesFromText(const Text& text) const;
  Bytes Sized(Bytes bytes) const;

  // convert_to_text.cc
  Text ToText(const Value& value) const;
  // A number whose text does not fit is an error, or a star for integers.
  Text CheckedNumberText(Text text) const;
  std::string MoneyText(const Decimal& value) const;
  Text TextFromBytes(const Bytes& bytes) const;
  Text SizedText(Text text) const;

  std::string Utf8Of(const Value& value) const;
  [[noreturn]] void RaiseText(const std::string& text) const;
  [[noreturn]] void RaiseConversion() const;
  [[noreturn]] void RaiseOverflow() const;
  // Of a collation that a type names, or the options.
  std::uint16_t CodePage(const SqlType& type) const;

  const SqlType& from_;
  const SqlType& to_;
  const ConvertOptions& options_;
};

}  // namespace mssql_cdc::sim
