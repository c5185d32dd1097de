#include "fake/table_answers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/case_fold.h"
#include "base/text.h"
#include "fake/sql_types.h"

namespace mssql_cdc::fake {
namespace {

using columns::Field;
using columns::Kind;
using Sets = TableAnswers::Sets;
// Compares as SQL Server does: column by column, NULL first.
using Key = std::vector<std::optional<std::int64_t>>;

Result<Sets> One(AnswerTable& table) {
  TRY_ASSIGN(ResultSet set, table.Build());
  Sets sets;
  sets.push_back(std::move(set));
  return sets;
}

std::optional<std::int32_t> IntegerSize(Kind kind) {
  switch (kind) {
    case Kind::kInt16:
      return 2;
    case Kind::kInt32:
      return 4;
    case Kind::kInt64:
      return 8;
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> IntegerOf(const nlohmann::json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<std::int64_t>();
}

Key KeyOf(const nlohmann::json& row, const sqlserver::KeyTable& table) {
  Key key;
  for (const sqlserver::KeyColumn& column : table.keys) {
    key.push_back(IntegerOf(ValueOf(row, column.name)));
  }
  return key;
}

Key KeyOf(const sqlserver::KeyBound& bound) {
  Key key;
  for (const std::optional<std::string>& text : bound) {
    key.push_back(text ? ParseInt64(*text) : std::nullopt);
  }
  return key;
}

// Of a bound that has fewer columns only those count.
bool IsBelow(Key key, const Key& bound) {
  key.resize(std::min(key.size(), bound.size()));
  return key < bound;
}

bool IsIn(const Key& key, const sqlserver::KeySpan& span) {
  if (span.lo && IsBelow(key, KeyOf(*span.lo))) return false;
  return !span.hi || IsBelow(key, KeyOf(*span.hi));
}

std::vector<Key> KeysOf(const std::vector<nlohmann::json>& rows,
                        const sqlserver::KeyTable& table) {
  std::vector<Key> keys;
  for (const nlohmann::json& row : rows) keys.push_back(KeyOf(row, table));
  std::ranges::sort(keys);
  return keys;
}

// At most one row, in the types of the table's columns.
Result<Sets> OneKey(const Files& files, const sqlserver::KeyTable& table,
                    const std::optional<Key>& key) {
  TRY_ASSIGN(const std::vector<Field> fields, FieldsOf(files, table.table));
  std::vector<Field> columns;
  for (const sqlserver::KeyColumn& column : table.keys) {
    const auto known = std::ranges::find_if(fields, [&](const Field& field) {
      return EqualsIgnoringCase(field.name, column.name);
    });
    if (known == fields.end()) return Gone(column.name);
    columns.push_back(*known);
  }
  AnswerTable answer({}, columns);
  for (std::size_t i = 0; key && i < key->size(); ++i) {
    const std::optional<std::int64_t>& part = (*key)[i];
    part ? answer.Value(*part) : answer.Null();
  }
  return One(answer);
}

}  // namespace

Error Gone(const std::string& name) {
  return Error(ErrorId::kServerError)
      .With("number", "208")
      .With("message", "the fake has no " + name);
}

Result<std::vector<Field>> FieldsOf(const Files& files, const std::string& table) {
  TRY_ASSIGN(const std::vector<Instance> instances, files.Instances());
  std::vector<Field> fields;
  for (const Instance& instance : instances) {
    if (instance.table != table) continue;
    for (const Field& column : instance.columns) {
      const auto known = std::ranges::find_if(fields, [&](const Field& field) {
        return EqualsIgnoringCase(field.name, column.name);
      });
      if (known == fields.end()) {
        fields.push_back(column);
      } else {
        known->type = column.type;
      }
    }
  }
  return fields;
}

const nlohmann::json& ValueOf(const nlohmann::json& row, const std::string& column) {
  static const nlohmann::json none;
  if (const auto exact = row.find(column); exact != row.end()) return *exact;
  for (auto cell = row.begin(); cell != row.end(); ++cell) {
    if (EqualsIgnoringCase(cell.key(), column)) return cell.value();
  }
  return none;
}

Result<Sets> TableAnswers::operator()(const Question::ColumnDetails& asked) const {
  TRY_ASSIGN(const std::vector<Field> fields, FieldsOf(files_, asked.table));
  AnswerTable table({Own("name", Kind::kUtf8), Own("max_length", Kind::kInt32),
                     Own("precision", Kind::kInt32), Own("scale", Kind::kInt32),
                     Own("collation_name", Kind::kUtf8)});
  for (const Field& field : fields) {
    const std::optional<std::int32_t> size_bytes = IntegerSize(field.type.kind);
    if (!size_bytes) continue;
    const SqlName name = SqlNameOf(field.type);
    table.Text(field.name).Int(*size_bytes).Int(*name.precision).Int(*name.scale);
    table.Null();
  }
  return One(table);
}

Result<Sets> TableAnswers::operator()(const Question::KeyExtent& asked) const {
  TRY_ASSIGN(const std::vector<nlohmann::json> rows, files_.Rows(asked.table));
  std::optional<std::int64_t> min;
  std::optional<std::int64_t> max;
  for (const nlohmann::json& row : rows) {
    const std::optional<std::int64_t> key = IntegerOf(ValueOf(row, asked.key));
    if (!key) continue;
    min = std::min(min.value_or(*key), *key);
    max = std::max(max.value_or(*key), *key);
  }
  AnswerTable table({Own("min_key", Kind::kInt64), Own("max_key", Kind::kInt64)});
  min ? table.Long(*min).Long(*max) : table.Null().Null();
  return One(table);
}

Result<Sets> TableAnswers::operator()(const Question::SpaceUsed& asked) const {
  TRY_ASSIGN(const Rows rows, files_.Rows(asked.table));
  AnswerTable table({Own("rows", Kind::kUtf8)});
  return One(table.Text(std::to_string(rows.size())));
}

Result<Sets> TableAnswers::operator()(const Question::LastKey& asked) const {
  TRY_ASSIGN(const Rows rows, files_.Rows(asked.table.table));
  const std::vector<Key> keys = KeysOf(rows, asked.table);
  return OneKey(files_, asked.table,
                keys.empty() ? std::nullopt : std::optional(keys.back()));
}

Result<Sets> TableAnswers::operator()(const Question::SeekKey& asked) const {
  TRY_ASSIGN(const Rows rows, files_.Rows(asked.table.table));
  std::vector<Key> keys = KeysOf(rows, asked.table);
  std::erase_if(keys, [&](const Key& key) { return !IsIn(key, asked.span); });
  const auto place = static_cast<std::size_t>(asked.skip_count);
  return OneKey(files_, asked.table,
                place < keys.size() ? std::optional(keys[place]) : std::nullopt);
}

Result<Sets> TableAnswers::operator()(const Question::SeekAbove& asked) const {
  TRY_ASSIGN(const Rows rows, files_.Rows(asked.table.table));
  const std::vector<Key> keys = KeysOf(rows, asked.table);
  const auto above = std::ranges::upper_bound(keys, KeyOf(asked.bound));
  return OneKey(files_, asked.table,
                above == keys.end() ? std::nullopt : std::optional(*above));
}

Result<Sets> TableAnswers::operator()(const sqlserver::SliceQuestion& asked) const {
  TRY_ASSIGN(const Rows rows, files_.Rows(asked.table));
  struct Slice {
    std::int64_t row_count = 0;
    std::int64_t min = 0;
    std::int64_t max = 0;
  };
  std::map<std::int64_t, Slice> slices;
  for (const nlohmann::json& row : rows) {
    const std::optional<std::int64_t> key = IntegerOf(ValueOf(row, asked.key));
    if (!key || *key < asked.min || asked.max < *key) continue;
    const bool rounds_up = *key < 0 && *key % asked.width != 0;
    Slice& slice = slices[*key / asked.width - (rounds_up ? 1 : 0)];
    slice.min = slice.row_count == 0 ? *key : std::min(slice.min, *key);
    slice.max = slice.row_count == 0 ? *key : std::max(slice.max, *key);
    ++slice.row_count;
  }
  AnswerTable table({Own("slice", Kind::kInt64), Own("row_count", Kind::kInt64),
                     Own("min_key", Kind::kInt64), Own("max_key", Kind::kInt64)});
  for (const auto& [number, slice] : slices) {
    table.Long(number).Long(slice.row_count).Long(slice.min).Long(slice.max);
  }
  return One(table);
}

Result<Sets> TableAnswers::Read(const std::string& table_name,
                                const std::vector<sqlserver::SelectedColumn>& columns,
                                const Rows& rows) const {
  TRY_ASSIGN(const std::vector<Field> fields, FieldsOf(files_, table_name));
  TRY_ASSIGN(const Table table, files_.TableOf(table_name));
  std::vector<Field> values;
  for (const auto& [name, cast_to] : columns) {
    const auto known = std::ranges::find_if(fields, [&](const Field& field) {
      return EqualsIgnoringCase(field.name, name);
    });
    if (known == fields.end() || table.dropped.contains(LowerCase(name))) {
      return Gone(name);
    }
    const std::optional<columns::Type> type =
        cast_to.empty() ? known->type : TypeOfSql(cast_to);
    if (!type) return Gone(cast_to);
    values.push_back({name, *type, true, ""});
  }
  AnswerTable answer({}, values, row_count_max_);
  for (const nlohmann::json& row : rows) {
    for (const Field& field : values) answer.Value(ValueOf(row, field.name));
  }
  return One(answer);
}

Result<Sets> TableAnswers::operator()(const sqlserver::SnapshotQuestion& asked) const {
  TRY_ASSIGN(Rows rows, files_.Rows(asked.table));
  std::erase_if(rows, [&](const nlohmann::json& row) {
    const std::optional<std::int64_t> key = IntegerOf(ValueOf(row, asked.key));
    // Open below takes NULL too.
    if (asked.after && (!key || *key <= *asked.after)) return true;
    return asked.through && key && *key > *asked.through;
  });
  return Read(asked.table, asked.columns, rows);
}

Result<Sets> TableAnswers::operator()(const sqlserver::ChunkQuestion& asked) const {
  TRY_ASSIGN(Rows rows, files_.Rows(asked.table.table));
  std::erase_if(rows, [&](const nlohmann::json& row) {
    return !IsIn(KeyOf(row, asked.table), asked.span);
  });
  return Read(asked.table.table, asked.columns, rows);
}

}  // namespace mssql_cdc::fake
