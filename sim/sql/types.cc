#include "sim/sql/types.h"

#include <algorithm>

#include "sim/sql/environment.h"

namespace mssql_cdc::sim {
namespace {

using ast::BinaryOperator;

std::int32_t LongerOf(std::int32_t a, std::int32_t b) {
  return a == kMax || b == kMax ? kMax : std::max(a, b);
}

// Fits 38 digits by giving up scale, as far as SQL Server does.
SqlType Fitted(int precision, int scale, bool multiplies) {
  if (precision > 38) {
    const int integral = precision - scale;
    if (!multiplies) {
      scale = std::max(0, 38 - std::min(integral, 38));
    } else if (integral < 32) {
      scale = std::min(scale, 38 - integral);
    } else {
      scale = std::min(scale, 6);
    }
    precision = 38;
  }
  return DecimalType(precision, scale);
}

[[noreturn]] void RaiseClash(const SqlType& a, const SqlType& b) {
  RaiseSql(
      206, 16, 2,
      "Operand type clash: " + TypeWord(a) + " is incompatible with " + TypeWord(b));
}

std::string OperatorWords(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kAdd:
      return "add";
    case BinaryOperator::kSubtract:
      return "subtract";
    case BinaryOperator::kMultiply:
      return "multiply";
    case BinaryOperator::kDivide:
      return "divide";
    case BinaryOperator::kModulo:
      return "modulo";
    case BinaryOperator::kBitAnd:
      return "'&'";
    case BinaryOperator::kBitOr:
      return "'|'";
    case BinaryOperator::kBitXor:
      return "'^'";
    case BinaryOperator::kEqual:
      return "equal to";
    case BinaryOperator::kNotEqual:
      return "not equal to";
    case BinaryOperator::kLess:
      return "less than";
    case BinaryOperator::kLessOrEqual:
      return "less than or equal to";
    case BinaryOperator::kGreater:
      return "greater than";
    case BinaryOperator::kGreaterOrEqual:
      return "greater than or equal to";
    case BinaryOperator::kAnd:
      return "and";
    case BinaryOperator::kOr:
      return "or";
  }
  return "";
}

SqlType JoinedText(const SqlType& a, const SqlType& b) {
  SqlType type = IsNationalText(a.id) || IsNationalText(b.id)
                     ? TypeOf(TypeId::kNVarChar)
                     : TypeOf(TypeId::kVarChar);
  const std::int32_t most = type.id == TypeId::kNVarChar ? 4000 : 8000;
  type.length =
      a.length == kMax || b.length == kMax ? kMax : std::min(a.length + b.length, most);
  type.collation = a.collation.empty() ? b.collation : a.collation;
  return type;
}

// Bit operators take integers, and one side may be binary.
SqlType BitType(BinaryOperator op, const SqlType& a, const SqlType& b) {
  const bool a_fits = IsInteger(a.id) || a.id == TypeId::kNull;
  const bool b_fits = IsInteger(b.id) || b.id == TypeId::kNull;
  if (a_fits && b_fits) return Precedence(a.id) >= Precedence(b.id) ? a : b;
  if (a_fits && IsBinary(b.id)) return a;
  if (b_fits && IsBinary(a.id)) return b;
  RaiseSql(402, 16, 1,
           "The data types " + TypeWord(a) + " and " + TypeWord(b) +
               " are incompatible in the " + OperatorWords(op) + " operator.");
}

SqlType DecimalResult(BinaryOperator op, const SqlType& left, const SqlType& right) {
  const SqlType a = AsDecimal(left);
  const SqlType b = AsDecimal(right);
  const int pa = a.precision, sa = a.scale, pb = b.precision, sb = b.scale;
  switch (op) {
    case BinaryOperator::kAdd:
    case BinaryOperator::kSubtract: {
      const int scale = std::max(sa, sb);
      return Fitted(std::max(pa - sa, pb - sb) + scale + 1, scale, false);
    }
    case BinaryOperator::kMultiply:
      return Fitted(pa + pb + 1, sa + sb, true);
    case BinaryOperator::kDivide: {
      const int scale = std::max(6, sa + pb + 1);
      return Fitted(pa - sa + sb + scale, scale, true);
    }
    default: {
      const int scale = std::max(sa, sb);
      return Fitted(std::min(pa - sa, pb - sb) + scale, scale, false);
    }
  }
}

}  // namespace

SqlType DecimalType(int precision, int scale) {
  SqlType type;
  type.id = TypeId::kDecimal;
  type.precision = static_cast<std::uint8_t>(std::clamp(precision, 1, 38));
  type.scale = static_cast<std::uint8_t>(std::clamp(scale, 0, 38));
  return type;
}

SqlType VarCharType(std::int32_t length) {
  SqlType type;
  type.id = TypeId::kVarChar;
  type.length = length;
  return type;
}
SqlType NVarCharType(std::int32_t length) {
  SqlType type;
  type.id = TypeId::kNVarChar;
  type.length = length;
  return type;
}
SqlType VarBinaryType(std::int32_t length) {
  SqlType type;
  type.id = TypeId::kVarBinary;
  type.length = length;
  return type;
}

SqlType TypeOf(TypeId id) {
  SqlType type;
  type.id = id;
  switch (id) {
    case TypeId::kDecimal:
      type.precision = 18;
      break;
    case TypeId::kTime:
    case TypeId::kDateTime2:
    case TypeId::kDateTimeOffset:
      type.scale = 7;
      break;
    case TypeId::kChar:
    case TypeId::kVarChar:
    case TypeId::kNChar:
    case TypeId::kNVarChar:
    case TypeId::kBinary:
    case TypeId::kVarBinary:
      type.length = 1;
      break;
    case TypeId::kText:
    case TypeId::kNText:
    case TypeId::kXml:
    case TypeId::kImage:
      type.length = kMax;
      break;
    case TypeId::kRowVersion:
      type.length = 8;
      break;
    default:
      break;
  }
  return type;
}

bool IsInteger(TypeId id) { return id <= TypeId::kBigInt; }
bool IsMoney(TypeId id) { return id == TypeId::kMoney || id == TypeId::kSmallMoney; }
bool IsExactNumber(TypeId id) {
  return IsInteger(id) || id == TypeId::kDecimal || IsMoney(id);
}
bool IsNumber(TypeId id) { return id <= TypeId::kSmallMoney; }
bool IsText(TypeId id) { return id >= TypeId::kChar && id <= TypeId::kNText; }
bool IsNationalText(TypeId id) {
  return id == TypeId::kNChar || id == TypeId::kNVarChar || id == TypeId::kNText;
}
bool IsBinary(TypeId id) { return id >= TypeId::kBinary && id <= TypeId::kRowVersion; }
bool IsDateTime(TypeId id) {
  return id >= TypeId::kDate && id <= TypeId::kDateTimeOffset;
}
bool IsLargeObject(TypeId id) {
  return id == TypeId::kText || id == TypeId::kNText || id == TypeId::kImage;
}

int Precedence(TypeId id) {
  switch (id) {
    case TypeId::kSqlVariant:
      return 29;
    case TypeId::kXml:
      return 28;
    case TypeId::kDateTimeOffset:
      return 27;
    case TypeId::kDateTime2:
      return 26;
    case TypeId::kDateTime:
      return 25;
    case TypeId::kSmallDateTime:
      return 24;
    case TypeId::kDate:
      return 23;
    case TypeId::kTime:
      return 22;
    case TypeId::kFloat:
      return 21;
    case TypeId::kReal:
      return 20;
    case TypeId::kDecimal:
      return 19;
    case TypeId::kMoney:
      return 18;
    case TypeId::kSmallMoney:
      return 17;
    case TypeId::kBigInt:
      return 16;
    case TypeId::kInt:
      return 15;
    case TypeId::kSmallInt:
      return 14;
    case TypeId::kTinyInt:
      return 13;
    case TypeId::kBit:
      return 12;
    case TypeId::kNText:
      return 11;
    case TypeId::kText:
      return 10;
    case TypeId::kImage:
      return 9;
    case TypeId::kRowVersion:
      return 8;
    case TypeId::kUniqueIdentifier:
      return 7;
    case TypeId::kNVarChar:
      return 6;
    case TypeId::kNChar:
      return 5;
    case TypeId::kVarChar:
      return 4;
    case TypeId::kChar:
      return 3;
    case TypeId::kVarBinary:
      return 2;
    case TypeId::kBinary:
      return 1;
    case TypeId::kNull:
      return 0;
  }
  return 0;
}

std::string TypeWord(const SqlType& type) {
  switch (type.id) {
    case TypeId::kBit:
      return "bit";
    case TypeId::kTinyInt:
      return "tinyint";
    case TypeId::kSmallInt:
      return "smallint";
    case TypeId::kInt:
      return "int";
    case TypeId::kBigInt:
      return "bigint";
    case TypeId::kReal:
      return "real";
    case TypeId::kFloat:
      return "float";
    case TypeId::kDecimal:
      return "numeric";
    case TypeId::kMoney:
      return "money";
    case TypeId::kSmallMoney:
      return "smallmoney";
    case TypeId::kDate:
      return "date";
    case TypeId::kTime:
      return "time";
    case TypeId::kDateTime:
      return "datetime";
    case TypeId::kSmallDateTime:
      return "smalldatetime";
    case TypeId::kDateTime2:
      return "datetime2";
    case TypeId::kDateTimeOffset:
      return "datetimeoffset";
    case TypeId::kChar:
      return "char";
    case TypeId::kVarChar:
      return type.length == kMax ? "varchar(max)" : "varchar";
    case TypeId::kNChar:
      return "nchar";
    case TypeId::kNVarChar:
      return type.length == kMax ? "nvarchar(max)" : "nvarchar";
    case TypeId::kText:
      return "text";
    case TypeId::kNText:
      return "ntext";
    case TypeId::kXml:
      return "xml";
    case TypeId::kBinary:
      return "binary";
    case TypeId::kVarBinary:
      return type.length == kMax ? "varbinary(max)" : "varbinary";
    case TypeId::kImage:
      return "image";
    case TypeId::kRowVersion:
      return "timestamp";
    case TypeId::kUniqueIdentifier:
      return "uniqueidentifier";
    case TypeId::kSqlVariant:
      return "sql_variant";
    case TypeId::kNull:
      return "NULL";
  }
  return "";
}

std::string TypeText(const SqlType& type) {
  switch (type.id) {
    case TypeId::kDecimal:
      return "decimal(" + std::to_string(type.precision) + ',' +
             std::to_string(type.scale) + ')';
    case TypeId::kTime:
    case TypeId::kDateTime2:
    case TypeId::kDateTimeOffset:
      return TypeWord(type) + '(' + std::to_string(type.scale) + ')';
    case TypeId::kChar:
    case TypeId::kNChar:
    case TypeId::kBinary:
    case TypeId::kVarChar:
    case TypeId::kNVarChar:
    case TypeId::kVarBinary:
      if (type.length == kMax) return TypeWord(type);
      return TypeWord(type) + '(' + std::to_string(type.length) + ')';
    default:
      return TypeWord(type);
  }
}

SqlType AsDecimal(const SqlType& type) {
  switch (type.id) {
    case TypeId::kBit:
      return DecimalType(1, 0);
    case TypeId::kTinyInt:
      return DecimalType(3, 0);
    case TypeId::kSmallInt:
      return DecimalType(5, 0);
    // A literal carries its own number of digits as precision.
    case TypeId::kInt:
      return DecimalType(type.precision != 0 ? type.precision : 10, 0);
    case TypeId::kBigInt:
      return DecimalType(19, 0);
    case TypeId::kMoney:
      return DecimalType(19, 4);
    case TypeId::kSmallMoney:
      return DecimalType(10, 4);
    default:
      return type;
  }
}

SqlType CommonType(const SqlType& a, const SqlType& b) {
  if (a.id == TypeId::kNull) return b;
  if (b.id == TypeId::kNull) return a;
  const SqlType& high = Precedence(a.id) >= Precedence(b.id) ? a : b;
  const SqlType& low = &high == &a ? b : a;
  if (RuleOfConversion(low, high) != ConversionRule::kImplicit) {
    if (RuleOfConversion(low, high) == ConversionRule::kExplicit &&
        !IsDateTime(high.id) && !IsDateTime(low.id)) {
      CheckConversion(low, high, false);
    }
    RaiseClash(low, high);
  }
  SqlType type = high;
  if (type.id == TypeId::kInt) type.precision = 0;
  if (type.id == TypeId::kDecimal && IsExactNumber(low.id)) {
    const SqlType other = AsDecimal(low);
    const int scale = std::max(high.scale, other.scale);
    const int integral =
        std::max(high.precision - high.scale, other.precision - other.scale);
    return Fitted(integral + scale, scale, false);
  }
  if (IsText(high.id) && IsText(low.id) && !IsLargeObject(high.id)) {
    type.length = LongerOf(a.length, b.length);
    if (type.collation.empty()) type.collation = low.collation;
    // Two lengths of a fixed type make a varying one.
    if (type.id == TypeId::kChar && a.length != b.length) type.id = TypeId::kVarChar;
    if (type.id == TypeId::kNChar && a.length != b.length) type.id = TypeId::kNVarChar;
    if (type.length != kMax && type.id == TypeId::kNVarChar) {
      type.length = std::min(type.length, 4000);
    }
  }
  if (IsBinary(high.id) && IsBinary(low.id)) {
    type.length = LongerOf(a.length, b.length);
    if (type.id == TypeId::kBinary && a.length != b.length)
      type.id = TypeId::kVarBinary;
  }
  const bool scaled = type.id == TypeId::kTime || type.id == TypeId::kDateTime2 ||
                      type.id == TypeId::kDateTimeOffset;
  if (scaled && IsDateTime(low.id)) {
    // A datetime has a fraction of three digits.
    const std::uint8_t other =
        low.id == TypeId::kDateTime ? std::uint8_t{3} : low.scale;
    type.scale = std::max(type.scale, other);
  }
  return type;
}

std::string OperatorName(ast::BinaryOperator op) { return OperatorWords(op); }

SqlType ArithmeticType(BinaryOperator op, const SqlType& a, const SqlType& b) {
  if (op == BinaryOperator::kBitAnd || op == BinaryOperator::kBitOr ||
      op == BinaryOperator::kBitXor) {
    return BitType(op, a, b);
  }
  const bool adds = op == BinaryOperator::kAdd || op == BinaryOperator::kSubtract;
  if (a.id == TypeId::kNull && b.id == TypeId::kNull) return TypeOf(TypeId::kInt);
  if (a.id == TypeId::kNull) return ArithmeticType(op, b, b);
  if (b.id == TypeId::kNull) return ArithmeticType(op, a, a);
  if (op == BinaryOperator::kAdd && IsText(a.id) && IsText(b.id) &&
      !IsLargeObject(a.id) && !IsLargeObject(b.id)) {
    return JoinedText(a, b);
  }
  if (op == BinaryOperator::kAdd && IsBinary(a.id) && IsBinary(b.id)) {
    SqlType type = TypeOf(TypeId::kVarBinary);
    type.length = a.length == kMax || b.length == kMax
                      ? kMax
                      : std::min(a.length + b.length, 8000);
    return type;
  }
  const SqlType& high = Precedence(a.id) >= Precedence(b.id) ? a : b;
  const SqlType& low = &high == &a ? b : a;
  const auto old_date = [](TypeId id) {
    return id == TypeId::kDateTime || id == TypeId::kSmallDateTime;
  };
  // datetime + 1 is the next day; the newer types have no arithmetic.
  if (adds && old_date(high.id) &&
      (IsNumber(low.id) || IsText(low.id) || old_date(low.id) || IsBinary(low.id))) {
    return TypeOf(high.id);
  }
  if (IsDateTime(high.id) && (IsNumber(low.id) || old_date(low.id))) {
    if (IsNumber(low.id) && !old_date(high.id)) RaiseClash(high, low);
  }
  if (!IsNumber(high.id) || IsDateTime(low.id)) {
    if (high.id == low.id || IsText(high.id) == IsText(low.id)) {
      const bool same = high.id == low.id;
      if (same) {
        RaiseSql(8117, 16, 1,
                 "Operand data type " + TypeWord(high) + " is invalid for " +
                     OperatorWords(op) + " operator.");
      }
    }
    RaiseSql(402, 16, 1,
             "The data types " + TypeWord(a) + " and " + TypeWord(b) +
                 " are incompatible in the " + OperatorWords(op) + " operator.");
  }
  if (high.id == TypeId::kBit) {
    if (adds || op == BinaryOperator::kMultiply || op == BinaryOperator::kDivide ||
        op == BinaryOperator::kModulo) {
      RaiseSql(
          8117, 16, 1,
          "Operand data type bit is invalid for " + OperatorWords(op) + " operator.");
    }
  }
  if (RuleOfConversion(low, high) != ConversionRule::kImplicit) RaiseClash(low, high);
  if (high.id == TypeId::kDecimal) {
    return DecimalResult(op, IsExactNumber(a.id) ? a : high,
                         IsExactNumber(b.id) ? b : high);
  }
  if (op == BinaryOperator::kModulo &&
      (high.id == TypeId::kFloat || high.id == TypeId::kReal)) {
    RaiseSql(402, 16, 1,
             "The data types " + TypeWord(a) + " and " + TypeWord(b) +
                 " are incompatible in the modulo operator.");
  }
  return TypeOf(high.id);
}

ConversionRule RuleOfConversion(const SqlType& from, const SqlType& to) {
  using enum ConversionRule;
  const TypeId f = from.id;
  const TypeId t = to.id;
  if (f == t || f == TypeId::kNull) return kImplicit;
  if (t == TypeId::kSqlVariant) {
    const bool refused = IsLargeObject(f) || f == TypeId::kXml || from.length == kMax ||
                         f == TypeId::kRowVersion;
    return refused ? kNone : kImplicit;
  }
  if (f == TypeId::kSqlVariant) {
    return IsLargeObject(t) || t == TypeId::kXml || t == TypeId::kRowVersion
               ? kNone
               : kExplicit;
  }
  if (t == TypeId::kXml) return IsText(f) || IsBinary(f) ? kImplicit : kNone;
  if (f == TypeId::kXml) {
    return (IsText(t) || IsBinary(t)) && !IsLargeObject(t) ? kExplicit : kNone;
  }
  if (f == TypeId::kImage) return IsBinary(t) ? kImplicit : kNone;
  if (t == TypeId::kImage) return IsBinary(f) || IsText(f) ? kImplicit : kNone;
  if (IsLargeObject(f) && !IsText(t)) return kNone;
  if (IsLargeObject(t) && !IsText(f)) return kNone;
  if (IsText(f)) return IsBinary(t) ? kExplicit : kImplicit;
  const bool old_f = f == TypeId::kDateTime || f == TypeId::kSmallDateTime;
  const bool old_t = t == TypeId::kDateTime || t == TypeId::kSmallDateTime;
  if (IsText(t)) return IsMoney(f) ? kExplicit : kImplicit;
  if (IsBinary(f)) {
    if (IsDateTime(t)) return old_t ? kImplicit : kExplicit;
    if (t == TypeId::kFloat || t == TypeId::kReal) return kNone;
    return kImplicit;
  }
  if (IsBinary(t)) {
    if (IsDateTime(f)) return kExplicit;
    return kImplicit;
  }
  if (IsNumber(f) && IsNumber(t)) return kImplicit;
  if (IsDateTime(f) && IsDateTime(t)) {
    const bool clash = (f == TypeId::kDate && t == TypeId::kTime) ||
                       (f == TypeId::kTime && t == TypeId::kDate);
    return clash ? kNone : kImplicit;
  }
  if (IsNumber(f) && old_t) return kImplicit;
  if (old_f && IsNumber(t)) return kExplicit;
  return kNone;
}

void CheckConversion(const SqlType& from, const SqlType& to, bool is_explicit) {
  const ConversionRule rule = RuleOfConversion(from, to);
  if (rule == ConversionRule::kImplicit) return;
  if (rule == ConversionRule::kExplicit && is_explicit) return;
  if (rule == ConversionRule::kExplicit) {
    RaiseSql(257, 16, 3,
             "Implicit conversion from data type " + TypeWord(from) + " to " +
                 TypeWord(to) +
                 " is not allowed. Use the CONVERT function to run this query.");
  }
  if (is_explicit) {
    RaiseSql(529, 16, 2,
             "Explicit conversion from data type " + TypeWord(from) + " to " +
                 TypeWord(to) + " is not allowed.");
  }
  RaiseClash(from, to);
}

}  // namespace mssql_cdc::sim
