#include "sim/wire/declaration.h"

#include "base/text.h"
#include "sim/wire/column.h"

namespace mssql_cdc::sim::wire {
namespace {

struct TypeRule {
  std::string_view name;
  TypeId id;
  std::int32_t length_default;  // Of character and binary types.
  std::uint8_t scale_default;
};

// Lengths are those of a parameter without one: a single character or byte.
constexpr TypeRule kTypeRules[] = {
    {"bit", TypeId::kBit, 0, 0},
    {"tinyint", TypeId::kTinyInt, 0, 0},
    {"smallint", TypeId::kSmallInt, 0, 0},
    {"int", TypeId::kInt, 0, 0},
    {"integer", TypeId::kInt, 0, 0},
    {"bigint", TypeId::kBigInt, 0, 0},
    {"real", TypeId::kReal, 0, 0},
    {"float", TypeId::kFloat, 0, 0},
    {"decimal", TypeId::kDecimal, 0, 0},
    {"dec", TypeId::kDecimal, 0, 0},
    {"numeric", TypeId::kDecimal, 0, 0},
    {"money", TypeId::kMoney, 0, 0},
    {"smallmoney", TypeId::kSmallMoney, 0, 0},
    {"date", TypeId::kDate, 0, 0},
    {"time", TypeId::kTime, 0, 7},
    {"datetime", TypeId::kDateTime, 0, 0},
    {"smalldatetime", TypeId::kSmallDateTime, 0, 0},
    {"datetime2", TypeId::kDateTime2, 0, 7},
    {"datetimeoffset", TypeId::kDateTimeOffset, 0, 7},
    {"char", TypeId::kChar, 1, 0},
    {"varchar", TypeId::kVarChar, 1, 0},
    {"nchar", TypeId::kNChar, 1, 0},
    {"nvarchar", TypeId::kNVarChar, 1, 0},
    {"sysname", TypeId::kNVarChar, 128, 0},
    {"text", TypeId::kText, kMax, 0},
    {"ntext", TypeId::kNText, kMax, 0},
    {"xml", TypeId::kXml, kMax, 0},
    {"binary", TypeId::kBinary, 1, 0},
    {"varbinary", TypeId::kVarBinary, 1, 0},
    {"image", TypeId::kImage, kMax, 0},
    {"timestamp", TypeId::kRowVersion, 8, 0},
    {"rowversion", TypeId::kRowVersion, 8, 0},
    {"uniqueidentifier", TypeId::kUniqueIdentifier, 0, 0},
    {"sql_variant", TypeId::kSqlVariant, 0, 0},
};

std::string_view TakeWord(std::string_view& text) {
  text = Trim(text);
  std::size_t end = 0;
  while (end < text.size() &&
         std::string_view(" \t\r\n(=,").find(text[end]) == std::string_view::npos) {
    ++end;
  }
  const std::string_view word = text.substr(0, end);
  text = Trim(text.substr(end));
  return word;
}

// "sys.[nvarchar]" as "nvarchar".
std::string BareTypeName(std::string_view word) {
  const std::size_t dot = word.rfind('.');
  if (dot != std::string_view::npos) word = word.substr(dot + 1);
  if (word.size() >= 2 && word.front() == '[' && word.back() == ']') {
    word = word.substr(1, word.size() - 2);
  }
  return LowerAscii(word);
}

bool IsLong(TypeId id) {
  return id == TypeId::kChar || id == TypeId::kVarChar || id == TypeId::kNChar ||
         id == TypeId::kNVarChar || id == TypeId::kBinary || id == TypeId::kVarBinary;
}

// What stands in the brackets, "18,4" or "max", onto the type. False: no such size.
bool ApplySize(std::string_view size, SqlType& type) {
  const std::size_t comma = size.find(',');
  const std::string_view head = Trim(size.substr(0, comma));
  if (IsLong(type.id) && EqualsIgnoringAsciiCase(head, "max")) {
    type.length = kMax;
    return true;
  }
  const std::optional<std::int64_t> first = ParseInt64(head);
  if (!first || *first < 0 || *first > 8000) return false;
  const auto small = static_cast<std::uint8_t>(*first > 255 ? 255 : *first);
  if (IsLong(type.id)) {
    type.length = static_cast<std::int32_t>(*first);
    return *first > 0;
  }
  switch (type.id) {
    case TypeId::kDecimal: {
      type.precision = small;
      if (comma != std::string_view::npos) {
        const std::optional<std::int64_t> scale =
            ParseInt64(Trim(size.substr(comma + 1)));
        if (!scale || *scale < 0 || *scale > *first) return false;
        type.scale = static_cast<std::uint8_t>(*scale);
      }
      return *first >= 1 && *first <= 38;
    }
    case TypeId::kTime:
    case TypeId::kDateTime2:
    case TypeId::kDateTimeOffset:
      type.scale = small;
      return small <= 7;
    case TypeId::kFloat:
      if (small <= 24) type.id = TypeId::kReal;
      return small >= 1 && small <= 53;
    default:
      return false;
  }
}

Declaration ParseOne(std::string_view text) {
  Declaration declaration;
  declaration.name = std::string(TakeWord(text));
  std::string_view word = TakeWord(text);
  if (EqualsIgnoringAsciiCase(word, "as")) word = TakeWord(text);
  const std::string name = BareTypeName(word);
  for (const TypeRule& rule : kTypeRules) {
    if (rule.name != name) continue;
    SqlType type;
    type.id = rule.id;
    type.length = rule.length_default;
    type.scale = rule.scale_default;
    if (rule.id == TypeId::kDecimal) type.precision = 18;
    declaration.type = type;
  }
  if (text.starts_with('(')) {
    const std::size_t end = text.find(')');
    if (end == std::string_view::npos) return declaration;
    if (declaration.type && !ApplySize(text.substr(1, end - 1), *declaration.type)) {
      declaration.type.reset();
    }
    text = text.substr(end + 1);
  }
  while (!(word = TakeWord(text)).empty()) {
    if (EqualsIgnoringAsciiCase(word, "output") ||
        EqualsIgnoringAsciiCase(word, "out")) {
      declaration.output = true;
    }
    if (!text.empty() && (text.front() == '(' || text.front() == '=')) {
      text.remove_prefix(1);
    }
  }
  return declaration;
}

enum class Kind : std::uint8_t { kWhole, kReal, kText, kBytes, kOther };

Kind KindOf(TypeId id) {
  switch (id) {
    case TypeId::kBit:
    case TypeId::kTinyInt:
    case TypeId::kSmallInt:
    case TypeId::kInt:
    case TypeId::kBigInt:
      return Kind::kWhole;
    case TypeId::kReal:
    case TypeId::kFloat:
      return Kind::kReal;
    case TypeId::kChar:
    case TypeId::kVarChar:
    case TypeId::kNChar:
    case TypeId::kNVarChar:
    case TypeId::kText:
    case TypeId::kNText:
      return Kind::kText;
    case TypeId::kBinary:
    case TypeId::kVarBinary:
    case TypeId::kImage:
      return Kind::kBytes;
    default:
      return Kind::kOther;
  }
}

}  // namespace

std::vector<Declaration> ParseDeclarations(std::string_view text) {
  std::vector<Declaration> declarations;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] == '(') ++depth;
    if (at < text.size() && text[at] == ')') --depth;
    if (at < text.size() && (text[at] != ',' || depth > 0)) continue;
    const std::string_view one = Trim(text.substr(start, at - start));
    start = at + 1;
    if (one.starts_with('@')) declarations.push_back(ParseOne(one));
  }
  return declarations;
}

bool TakesAs(const SqlType& declared, const SqlType& sent, const Value& value) {
  if (value.IsNull() || declared == sent) return true;
  const Kind kind = KindOf(declared.id);
  if (declared.id != sent.id && (kind != KindOf(sent.id) || kind == Kind::kOther)) {
    return false;
  }
  switch (kind) {
    case Kind::kReal:
      return declared.id == TypeId::kFloat || sent.id == TypeId::kReal;
    case Kind::kText: {
      if (declared.length == kMax) return true;
      return std::get<Text>(value.held).size() <=
             static_cast<std::size_t>(declared.length);
    }
    case Kind::kBytes:
      return declared.length == kMax || std::get<Bytes>(value.held).size() <=
                                            static_cast<std::size_t>(declared.length);
    case Kind::kOther:
      // Dates keep every digit only in a type with as many.
      if (declared.id != TypeId::kDecimal && declared.scale < sent.scale) return false;
      return ColumnEncoder(declared, true, Dialect{}).Fits(value);
    case Kind::kWhole:
      return ColumnEncoder(declared, true, Dialect{}).Fits(value);
  }
  return false;
}

}  // namespace mssql_cdc::sim::wire
