#include "cdc/spark_ddl.h"

#include <optional>
#include <utility>

#include "base/case_fold.h"
#include "base/text.h"
#include "cdc/type_map.h"

namespace mssql_cdc::cdc {
namespace {

using columns::Field;
using columns::Kind;
using columns::Type;

constexpr std::pair<std::string_view, Kind> kTypeNames[] = {
    {"boolean", Kind::kBool},
    {"smallint", Kind::kInt16},
    {"short", Kind::kInt16},
    {"int", Kind::kInt32},
    {"integer", Kind::kInt32},
    {"bigint", Kind::kInt64},
    {"long", Kind::kInt64},
    {"float", Kind::kFloat32},
    {"real", Kind::kFloat32},
    {"double", Kind::kFloat64},
    {"decimal", Kind::kDecimal128},
    {"dec", Kind::kDecimal128},
    {"numeric", Kind::kDecimal128},
    {"date", Kind::kDate32},
    {"timestamp_ntz", Kind::kTimestampNtz},
    {"timestamp", Kind::kTimestampUtc},
    {"timestamp_ltz", Kind::kTimestampUtc},
    {"string", Kind::kUtf8},
    {"binary", Kind::kBinary},
};

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Field>> Run() {
    std::vector<Field> fields;
    while (true) {
      TRY_ASSIGN(Field field, Column());
      for (const Field& known : fields) {
        if (EqualsIgnoringCase(known.name, field.name)) {
          return Wrong("a name is there twice", field.name);
        }
      }
      if (IsReservedName(field.name)) {
        return Wrong("the target has a column of its own of this name", field.name);
      }
      fields.push_back(std::move(field));
      SkipBlanks();
      if (text_.empty()) return fields;
      if (!Take(',')) return Wrong("a comma is missing", text_);
    }
  }

 private:
  static Error Wrong(std::string reason, std::string_view near) {
    return Error(ErrorId::kOptionInvalid)
        .With("option", "columns")
        .With("reason", std::move(reason))
        .With("near", std::string(near.substr(0, 60)));
  }

  void SkipBlanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size()));
  }
  bool Take(char c) {
    SkipBlanks();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::string Word() {
    SkipBlanks();
    std::size_t size = 0;
    while (size < text_.size() && IsWordCharacter(text_[size])) ++size;
    const std::string word(text_.substr(0, size));
    text_.remove_prefix(size);
    return word;
  }
  bool TakeWord(std::string_view wanted) {
    const std::string_view before = text_;
    if (EqualsIgnoringAsciiCase(Word(), wanted)) return true;
    text_ = before;
    return false;
  }

  Result<std::string> Name() {
    SkipBlanks();
    const std::string_view at = text_;
    if (!Take('`')) {
      std::string word = Word();
      if (word.empty()) return Wrong("a name is missing", at);
      return word;
    }
    std::string name;
    while (!text_.empty()) {
      const char c = text_.front();
      text_.remove_prefix(1);
      if (c == '`' && !text_.starts_with('`')) {
        if (name.empty()) return Wrong("a name is missing", at);
        return name;
      }
      if (c == '`') text_.remove_prefix(1);
      name += c;
    }
    return Wrong("a backtick is missing", at);
  }

  // "(18,2)" or nothing.
  Result<Type> DecimalType(std::string_view at) {
    Type type{Kind::kDecimal128, 10, 0};
    if (!Take('(')) return type;
    const std::optional<std::int64_t> precision = ParseInt64(Word());
    std::optional<std::int64_t> scale = 0;
    if (Take(',')) scale = ParseInt64(Word());
    const bool fits = precision && scale && *precision >= 1 && *precision <= 38 &&
                      *scale >= 0 && *scale <= *precision;
    if (!fits || !Take(')')) {
      return Wrong("a decimal is DECIMAL(precision,scale), up to 38 digits", at);
    }
    type.precision = static_cast<std::uint8_t>(*precision);
    type.scale = static_cast<std::uint8_t>(*scale);
    return type;
  }

  Result<Type> ReadType() {
    SkipBlanks();
    const std::string_view at = text_;
    const std::string word = LowerAscii(Word());
    for (const auto& [name, kind] : kTypeNames) {
      if (name != word) continue;
      if (kind == Kind::kDecimal128) return DecimalType(at);
      return Type{kind};
    }
    return Wrong(
        "a type is BOOLEAN, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, DATE, "
        "TIMESTAMP, TIMESTAMP_NTZ, STRING or BINARY",
        at);
  }

  Status Comment() {
    SkipBlanks();
    const std::string_view at = text_;
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) {
      return Wrong("a comment stands in quotes", at);
    }
    const char quote = text_[0];
    for (std::size_t i = 1; i < text_.size(); ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        text_.remove_prefix(i + 1);
        return Unit{};
      }
    }
    return Wrong("a quote is missing", at);
  }

  Result<Field> Column() {
    Field field;
    TRY_ASSIGN(field.name, Name());
    Take(':');
    TRY_ASSIGN(field.type, ReadType());
    while (true) {
      SkipBlanks();
      const std::string_view at = text_;
      if (TakeWord("not")) {
        if (!TakeWord("null")) return Wrong("NOT is followed by NULL", at);
      } else if (TakeWord("comment")) {
        TRY(Comment());
      } else {
        return field;
      }
    }
  }

  std::string_view text_;
};

}  // namespace

Result<std::vector<Field>> ParseColumnsOption(std::string_view ddl) {
  return Parser(ddl).Run();
}

std::string SparkTypeName(const Type& type) {
  if (type.kind == Kind::kDecimal128) {
    return "DECIMAL(" + std::to_string(type.precision) + "," +
           std::to_string(type.scale) + ")";
  }
  for (const auto& [name, kind] : kTypeNames) {
    if (kind != type.kind) continue;
    std::string upper(name);
    for (char& c : upper) {
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return upper;
  }
  return "";
}

std::string ColumnsDdl(const std::vector<Field>& fields) {
  std::string ddl;
  for (const Field& field : fields) {
    if (!ddl.empty()) ddl += ", ";
    ddl += '`';
    for (const char c : field.name) {
      ddl += c;
      if (c == '`') ddl += c;
    }
    ddl += "` " + SparkTypeName(field.type);
  }
  return ddl;
}

}  // namespace mssql_cdc::cdc
