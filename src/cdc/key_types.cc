#include "cdc/key_types.h"

#include <algorithm>

#include "base/case_fold.h"
#include "base/text.h"
#include "cdc/cells.h"

namespace mssql_cdc::cdc {
namespace {

enum class Arguments : std::uint8_t {
  kNone,
  kScale,
  kPrecisionAndScale,
  kBytes,
  kCharacters,  // Of two bytes each.
};

struct TypeRow {
  std::string_view name;
  KeyForm form;
  Arguments arguments;
  bool is_sortable = true;
};

constexpr TypeRow kTypes[] = {
    {"tinyint", KeyForm::kInteger, Arguments::kNone},
    {"smallint", KeyForm::kInteger, Arguments::kNone},
    {"int", KeyForm::kInteger, Arguments::kNone},
    {"bigint", KeyForm::kInteger, Arguments::kNone},
    {"bit", KeyForm::kBool, Arguments::kNone, false},
    {"real", KeyForm::kReal, Arguments::kNone},
    {"float", KeyForm::kReal, Arguments::kNone},
    {"decimal", KeyForm::kDecimal, Arguments::kPrecisionAndScale},
    {"numeric", KeyForm::kDecimal, Arguments::kPrecisionAndScale},
    {"money", KeyForm::kDecimal, Arguments::kNone},
    {"smallmoney", KeyForm::kDecimal, Arguments::kNone},
    {"date", KeyForm::kDate, Arguments::kNone},
    {"datetime", KeyForm::kMillis, Arguments::kNone},
    {"smalldatetime", KeyForm::kMillis, Arguments::kNone},
    {"datetime2", KeyForm::kMicros, Arguments::kScale},
    {"datetimeoffset", KeyForm::kInstant, Arguments::kScale},
    {"char", KeyForm::kText, Arguments::kBytes},
    {"varchar", KeyForm::kText, Arguments::kBytes},
    {"nchar", KeyForm::kText, Arguments::kCharacters},
    {"nvarchar", KeyForm::kText, Arguments::kCharacters},
    {"uniqueidentifier", KeyForm::kText, Arguments::kNone},
    {"binary", KeyForm::kBinary, Arguments::kBytes},
    {"varbinary", KeyForm::kBinary, Arguments::kBytes},
};

std::string ArgumentsOf(const TypeRow& row, const ColumnDetail& detail) {
  const auto in_parentheses = [](const std::string& text) { return "(" + text + ")"; };
  const auto length = [&](std::int64_t unit_bytes) {
    if (detail.max_length < 0) return in_parentheses("max");
    return in_parentheses(std::to_string(detail.max_length / unit_bytes));
  };
  switch (row.arguments) {
    case Arguments::kNone:
      return "";
    case Arguments::kScale:
      return in_parentheses(std::to_string(detail.scale));
    case Arguments::kPrecisionAndScale:
      return in_parentheses(std::to_string(detail.precision) + ", " +
                            std::to_string(detail.scale));
    case Arguments::kBytes:
      return length(1);
    case Arguments::kCharacters:
      return length(2);
  }
  return "";
}

// It becomes part of a statement.
bool IsCollationName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_';
  });
}

template <typename T, typename NameOf>
const T* Find(const std::vector<T>& items, const std::string& name, NameOf name_of) {
  for (const T& item : items) {
    if (name_of(item) == name) return &item;
  }
  for (const T& item : items) {
    if (EqualsIgnoringCase(name_of(item), name)) return &item;
  }
  return nullptr;
}

}  // namespace

Result<std::vector<ColumnDetail>> ReadColumnDetails(
    const columns::RecordBatch& answer) {
  std::vector<ColumnDetail> details;
  for (std::int64_t i = 0; i < answer.row_count; ++i) {
    const RowView row(answer, i);
    ColumnDetail detail;
    TRY_ASSIGN(const std::optional<std::string> name, row.Text("name"));
    TRY_ASSIGN(const std::optional<std::int64_t> length, row.Integer("max_length"));
    TRY_ASSIGN(const std::optional<std::int64_t> precision, row.Integer("precision"));
    TRY_ASSIGN(const std::optional<std::int64_t> scale, row.Integer("scale"));
    TRY_ASSIGN(const std::optional<std::string> collation, row.Text("collation_name"));
    detail.name = name.value_or("");
    detail.max_length = length.value_or(0);
    detail.precision = precision.value_or(0);
    detail.scale = scale.value_or(0);
    detail.collation = collation.value_or("");
    details.push_back(std::move(detail));
  }
  return details;
}

std::optional<KeyType> BindKey(const CapturedColumn& column,
                               const ColumnDetail& detail) {
  const std::string type = LowerAscii(column.type_name);
  // An index holds a rowversion as the eight bytes it is.
  if (type == "timestamp" || type == "rowversion") {
    return KeyType{column.name, "binary(8)", "", KeyForm::kBinary};
  }
  if (type == "sysname") {
    return KeyType{column.name, "nvarchar(128)", "", KeyForm::kText};
  }
  for (const TypeRow& row : kTypes) {
    if (row.name != type) continue;
    KeyType key{column.name, "", "", row.form, row.is_sortable};
    if (row.form != KeyForm::kInteger) {
      key.sql_type = type + ArgumentsOf(row, detail);
    }
    if (type == "char" || type == "varchar") {
      if (!IsCollationName(detail.collation)) return std::nullopt;
      key.collation = detail.collation;
    }
    return key;
  }
  return std::nullopt;
}

KeyTypes BindKeys(const std::vector<std::string>& names,
                  const std::vector<CapturedColumn>& captured,
                  const std::vector<ColumnDetail>& details) {
  KeyTypes keys;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const CapturedColumn* column =
        Find(captured, names[i], [](const CapturedColumn& each) { return each.name; });
    const ColumnDetail* detail =
        Find(details, names[i], [](const ColumnDetail& each) { return each.name; });
    std::optional<KeyType> key;
    if (column != nullptr && detail != nullptr) key = BindKey(*column, *detail);
    const bool is_cut_off =
        key && detail->scale == 7 &&
        (key->form == KeyForm::kMicros || key->form == KeyForm::kInstant);
    if (!key || (is_cut_off && i + 1 < names.size())) {
      keys.unbindable.push_back(names[i]);
    } else {
      keys.types.push_back(*std::move(key));
    }
  }
  return keys;
}

}  // namespace mssql_cdc::cdc
