#include "sim/engine/type_facts.h"

namespace mssql_cdc::sim {
namespace {

TypeFacts Exact(std::int32_t id, std::int32_t length, std::int32_t precision,
                std::int32_t scale) {
  TypeFacts facts;
  facts.system_type_id = facts.user_type_id = id;
  facts.max_length = length;
  facts.precision = precision;
  facts.scale = scale;
  facts.numeric_precision = precision;
  facts.numeric_precision_radix = 10;
  facts.numeric_scale = scale;
  return facts;
}

TypeFacts Float(std::int32_t id, std::int32_t length, std::int32_t precision) {
  TypeFacts facts;
  facts.system_type_id = facts.user_type_id = id;
  facts.max_length = length;
  facts.precision = precision;
  facts.numeric_precision = precision;
  facts.numeric_precision_radix = 2;
  return facts;
}

TypeFacts Time(std::int32_t id, std::int32_t length, std::int32_t precision,
               std::int32_t scale) {
  TypeFacts facts;
  facts.system_type_id = facts.user_type_id = id;
  facts.max_length = length;
  facts.precision = precision;
  facts.scale = scale;
  facts.datetime_precision = scale;
  return facts;
}

TypeFacts Sized(std::int32_t id, std::int32_t length, std::int32_t unit) {
  TypeFacts facts;
  facts.system_type_id = facts.user_type_id = id;
  facts.max_length = length == kMax ? -1 : length * unit;
  facts.character_maximum_length = length;
  return facts;
}

TypeFacts Lob(std::int32_t id, std::int32_t characters) {
  TypeFacts facts;
  facts.system_type_id = facts.user_type_id = id;
  facts.max_length = 16;
  facts.character_maximum_length = characters;
  return facts;
}

TypeFacts Plain(std::int32_t id, std::int32_t length) {
  TypeFacts facts;
  facts.system_type_id = facts.user_type_id = id;
  facts.max_length = length;
  return facts;
}

std::int32_t DecimalBytes(std::int32_t precision) {
  return precision <= 9 ? 5 : precision <= 19 ? 9 : precision <= 28 ? 13 : 17;
}

// Storage of time(n), and what datetime2 and datetimeoffset add to it.
std::int32_t TimeBytes(std::int32_t scale) {
  return scale <= 2 ? 3 : scale <= 4 ? 4 : 5;
}
std::int32_t FractionDigits(std::int32_t scale) { return scale == 0 ? 0 : scale + 1; }

}  // namespace

TypeFacts FactsOf(const SqlType& type) {
  const std::int32_t scale = type.scale;
  switch (type.id) {
    case TypeId::kBit:
      return Plain(104, 1);
    case TypeId::kTinyInt:
      return Exact(48, 1, 3, 0);
    case TypeId::kSmallInt:
      return Exact(52, 2, 5, 0);
    case TypeId::kNull:
    case TypeId::kInt:
      return Exact(56, 4, 10, 0);
    case TypeId::kBigInt:
      return Exact(127, 8, 19, 0);
    case TypeId::kReal:
      return Float(59, 4, 24);
    case TypeId::kFloat:
      return Float(62, 8, 53);
    case TypeId::kDecimal:
      return Exact(106, DecimalBytes(type.precision), type.precision, scale);
    case TypeId::kMoney:
      return Exact(60, 8, 19, 4);
    case TypeId::kSmallMoney:
      return Exact(122, 4, 10, 4);
    case TypeId::kDate:
      return Time(40, 3, 10, 0);
    case TypeId::kTime:
      return Time(41, TimeBytes(scale), 8 + FractionDigits(scale), scale);
    case TypeId::kDateTime:
      return Time(61, 8, 23, 3);
    case TypeId::kSmallDateTime:
      return Time(58, 4, 16, 0);
    case TypeId::kDateTime2:
      return Time(42, TimeBytes(scale) + 3, 19 + FractionDigits(scale), scale);
    case TypeId::kDateTimeOffset:
      return Time(43, TimeBytes(scale) + 5, 26 + FractionDigits(scale), scale);
    case TypeId::kChar:
      return Sized(175, type.length, 1);
    case TypeId::kVarChar:
      return Sized(167, type.length, 1);
    case TypeId::kNChar:
      return Sized(239, type.length, 2);
    case TypeId::kNVarChar:
      return Sized(231, type.length, 2);
    case TypeId::kText:
      return Lob(35, 2147483647);
    case TypeId::kNText:
      return Lob(99, 1073741823);
    case TypeId::kXml:
      return Sized(241, kMax, 1);
    case TypeId::kBinary:
      return Sized(173, type.length, 1);
    case TypeId::kVarBinary:
      return Sized(165, type.length, 1);
    case TypeId::kImage:
      return Lob(34, 2147483647);
    case TypeId::kRowVersion:
      return Plain(189, 8);
    case TypeId::kUniqueIdentifier:
      return Plain(36, 16);
    case TypeId::kSqlVariant:
      return Plain(98, 8016);
  }
  return Plain(56, 4);
}

}  // namespace mssql_cdc::sim
