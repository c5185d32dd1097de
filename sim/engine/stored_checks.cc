// What a row must fulfil before it is stored, and the errors when it does not.

#include <algorithm>

#include "base/text.h"
#include "sim/engine/stored_table.h"

namespace mssql_cdc::sim {
namespace {

std::string DecimalText(const Decimal& decimal) {
  const bool negative = decimal.unscaled < 0;
  auto rest =
      static_cast<unsigned __int128>(negative ? -decimal.unscaled : decimal.unscaled);
  std::string digits;
  while (rest > 0 || digits.size() <= decimal.scale) {
    digits.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
    rest /= 10;
  }
  std::reverse(digits.begin(), digits.end());
  if (decimal.scale > 0) digits.insert(digits.size() - decimal.scale, ".");
  return (negative ? "-" : "") + digits;
}

std::string GuidText(const Guid& guid) {
  std::string text = HexUpper(guid.bytes);
  for (const std::size_t at : {20u, 16u, 12u, 8u}) text.insert(at, "-");
  return text;
}

}  // namespace

std::string KeyText(const SqlType& type, const Value& value) {
  if (value.IsNull()) return "<NULL>";
  if (const auto* integer = std::get_if<std::int64_t>(&value.held)) {
    return std::to_string(*integer);
  }
  if (const auto* real = std::get_if<double>(&value.held)) return std::to_string(*real);
  if (const auto* decimal = std::get_if<Decimal>(&value.held)) {
    return DecimalText(*decimal);
  }
  if (const auto* text = std::get_if<Text>(&value.held)) return Utf8(*text);
  if (const auto* bytes = std::get_if<Bytes>(&value.held))
    return "0x" + HexUpper(*bytes);
  if (const auto* guid = std::get_if<Guid>(&value.held)) return GuidText(*guid);
  std::string text = IsoText(std::get<DateTimeValue>(value.held));
  if (type.id == TypeId::kDate) return text.substr(0, 10);
  if (text.size() > 10) text[10] = ' ';
  return text;
}

RowExpression& StoredTable::Expression(const std::string& text, std::size_t column,
                                       bool over_row) {
  const std::string key = std::to_string(column) + text;
  std::unique_ptr<RowExpression>& bound = expressions_[key];
  if (bound == nullptr) {
    const std::vector<ColumnInfo> none;
    const bool check = column >= table_->columns.size();
    bound = BindRowExpression(
        ParseExpression(text), over_row ? columns_ : none,
        check ? std::optional<SqlType>() : table_->columns[column].type, session_);
  }
  return *bound;
}

void StoredTable::Compute(std::vector<Value>& row) {
  for (std::size_t i = 0; i < table_->columns.size(); ++i) {
    const ColumnMeta& column = table_->columns[i];
    if (column.computed()) {
      row[i] = Expression(column.computed_text, i, true).Evaluate(row);
    }
  }
}

void StoredTable::Complete(std::vector<Value>& row, const char* verb,
                           WriteTransaction& transaction) {
  for (std::size_t i = 0; i < table_->columns.size(); ++i) {
    if (table_->columns[i].type.id != TypeId::kRowVersion) continue;
    const std::string bytes = BigEndian64(transaction.NextRowVersion());
    row[i].held = Bytes(bytes.begin(), bytes.end());
  }
  Compute(row);
  for (std::size_t i = 0; i < table_->columns.size(); ++i) {
    const ColumnMeta& column = table_->columns[i];
    if (!row[i].IsNull() || column.nullable || column.computed()) continue;
    RaiseSql(515, 16, 2,
             "Cannot insert the value NULL into column '" + column.name + "', table '" +
                 database_->name() + "." + name_ + "'; column does not allow nulls. " +
                 verb + " fails.");
  }
  if (!table_->checks.empty()) CheckRow(row, verb);
  if (!table_->foreign_keys.empty()) CheckForeignKeys(row, verb);
}

void StoredTable::CheckRow(const std::vector<Value>& row, const char* verb) {
  for (const CheckMeta& check : table_->checks) {
    // Unknown passes a CHECK.
    const Value passed =
        Expression("CASE WHEN NOT (" + check.text + ") THEN 0 ELSE 1 END",
                   table_->columns.size(), true)
            .Evaluate(row);
    const auto* integer = std::get_if<std::int64_t>(&passed.held);
    if (integer == nullptr || *integer != 0) continue;
    RaiseSql(547, 16, 0,
             std::string("The ") + verb +
                 " statement conflicted with the CHECK constraint \"" + check.name +
                 "\". The conflict occurred in database \"" + database_->name() +
                 "\", table \"" + name_ + "\".");
  }
}

namespace {

// Whether `table` has a row whose `column_ids` hold the values.
bool HasRow(Connection& connection, const Catalog& catalog, const TableMeta& table,
            const std::vector<std::int32_t>& column_ids,
            const std::vector<const Value*>& values) {
  std::string text = "SELECT 1 FROM " + table.physical;
  for (std::size_t i = 0; i < column_ids.size(); ++i) {
    text += (i == 0 ? " WHERE " : " AND ") +
            table.ColumnById(column_ids[i])->OrderColumn() + " IS ?";
  }
  Statement look = connection.Prepare(text + " LIMIT 1");
  if (!look) return false;
  for (std::size_t i = 0; i < column_ids.size(); ++i) {
    const ColumnMeta& column = *table.ColumnById(column_ids[i]);
    Cell cell;
    const auto* held = std::get_if<Text>(&values[i]->held);
    if (held != nullptr && !column.sort_physical.empty()) {
      cell.kind = Cell::Kind::kBlob;
      cell.bytes = TextSortKey(*held, column.type.collation, catalog.collation);
    } else {
      EncodeCell(column.type, *values[i], cell);
    }
    BindCell(look, static_cast<int>(i) + 1, cell);
  }
  return look.Next() == Step::kRow;
}

std::vector<const Value*> Pick(const TableMeta& table, const std::vector<Value>& row,
                               const std::vector<std::int32_t>& column_ids) {
  std::vector<const Value*> values;
  for (const std::int32_t id : column_ids) values.push_back(&row[*table.IndexOf(id)]);
  return values;
}

bool AnyNull(const std::vector<const Value*>& values) {
  return std::any_of(values.begin(), values.end(),
                     [](const Value* value) { return value->IsNull(); });
}

}  // namespace

void StoredTable::CheckForeignKeys(const std::vector<Value>& row, const char* verb) {
  for (const ForeignKeyMeta& key : table_->foreign_keys) {
    const std::vector<const Value*> values = Pick(*table_, row, key.column_ids);
    if (AnyNull(values)) continue;
    const TablePtr other = catalog_->TableById(key.referenced_id);
    if (other == nullptr || HasRow(session_.Write(database_).connection(), *catalog_,
                                   *other, key.referenced_column_ids, values)) {
      continue;
    }
    RaiseSql(547, 16, 0,
             std::string("The ") + verb +
                 " statement conflicted with the FOREIGN KEY constraint \"" + key.name +
                 "\". The conflict occurred in database \"" + database_->name() +
                 "\", table \"" + other->FullName() + "\", column '" +
                 other->ColumnById(key.referenced_column_ids[0])->name + "'.");
  }
}

void StoredTable::CheckReferences(const std::vector<Value>& row, const char* verb) {
  Connection& connection = session_.Write(database_).connection();
  for (const auto& [id, child] : catalog_->tables) {
    for (const ForeignKeyMeta& key : child->foreign_keys) {
      if (key.referenced_id != table_->object_id) continue;
      const auto values = Pick(*table_, row, key.referenced_column_ids);
      if (AnyNull(values) ||
          HasRow(connection, *catalog_, *table_, key.referenced_column_ids, values) ||
          !HasRow(connection, *catalog_, *child, key.column_ids, values)) {
        continue;
      }
      RaiseSql(547, 16, 0,
               std::string("The ") + verb +
                   " statement conflicted with the REFERENCE constraint \"" + key.name +
                   "\". The conflict occurred in database \"" + database_->name() +
                   "\", table \"" + child->FullName() + "\", column '" +
                   child->ColumnById(key.column_ids[0])->name + "'.");
    }
  }
}

// SQLite's unique indexes take any number of NULLs, SQL Server's only one.
void StoredTable::CheckNullDuplicates(const std::vector<Value>& row) {
  for (const IndexMeta& index : table_->indexes) {
    if (!index.unique || index.primary) continue;
    std::vector<std::int32_t> ids;
    for (const IndexMeta::Part& part : index.parts) ids.push_back(part.column_id);
    const auto values = Pick(*table_, row, ids);
    if (AnyNull(values) && HasRow(session_.Write(database_).connection(), *catalog_,
                                  *table_, ids, values)) {
      RaiseDuplicate(row);
    }
  }
}

void StoredTable::RaiseDuplicate(const std::vector<Value>& row) {
  // Which index it was: the first that has such a row.
  const IndexMeta* hit = nullptr;
  for (const IndexMeta& index : table_->indexes) {
    if (!index.unique) continue;
    std::vector<std::int32_t> ids;
    for (const IndexMeta::Part& part : index.parts) ids.push_back(part.column_id);
    hit = &index;
    if (HasRow(session_.Write(database_).connection(), *catalog_, *table_, ids,
               Pick(*table_, row, ids))) {
      break;
    }
  }
  if (hit == nullptr)
    RaiseSql(605, 21, 3, "The storage of table '" + name_ + "' failed.");
  std::string key;
  for (const IndexMeta::Part& part : hit->parts) {
    const std::size_t i = *table_->IndexOf(part.column_id);
    key += (key.empty() ? "" : ", ") + KeyText(table_->columns[i].type, row[i]);
  }
  if (hit->constraint) {
    RaiseSql(2627, 14, 1,
             std::string("Violation of ") +
                 (hit->primary ? "PRIMARY KEY" : "UNIQUE KEY") + " constraint '" +
                 hit->name + "'. Cannot insert duplicate key in object '" + name_ +
                 "'. The duplicate key value is (" + key + ").");
  }
  RaiseSql(2601, 14, 1,
           "Cannot insert duplicate key row in object '" + name_ +
               "' with unique index '" + hit->name + "'. The duplicate key value is (" +
               key + ").");
}

}  // namespace mssql_cdc::sim
