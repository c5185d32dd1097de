#include "sim/engine/import_fake.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "sim/engine/cdc.h"
#include "sim/engine/change_rows.h"
#include "sim/engine/fake_files.h"
#include "sim/engine/stored_row.h"
#include "sim/engine/stored_table.h"
#include "sim/engine/table_layout.h"
#include "sim/quoting.h"
#include "sim/sql/convert.h"
#include "sim/sql/numbers.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

using Json = nlohmann::json;

Error Refused(const std::string& what, const std::string& reason) {
  return Error(ErrorId::kSimulatorFailed).With("import", what).With("reason", reason);
}

bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& n) {
    return EqualsIgnoringAsciiCase(n, name);
  });
}

// The type whose column the existing package reads as `spark_type`
// (existing-package-api.md 3). A key has to be indexable.
std::string SqlTypeOf(const std::string& spark_type, bool key) {
  const std::string type = LowerAscii(spark_type);
  if (type == "boolean") return "bit";
  if (type == "tinyint") return "smallint";
  if (type == "smallint" || type == "int" || type == "bigint" || type == "date") {
    return type;
  }
  if (type == "float") return "real";
  if (type == "double") return "float";
  if (type == "timestamp_ntz") return "datetime2(6)";
  if (type == "timestamp") return "datetimeoffset(6)";
  if (type == "binary") return key ? "varbinary(450)" : "varbinary(max)";
  if (type.rfind("decimal", 0) == 0) return type;
  return key ? "nvarchar(450)" : "nvarchar(4000)";
}

std::optional<Lsn> LsnFromHex(const std::string& hex) {
  if (hex.size() != 22 || hex.compare(0, 2, "0x") != 0) return std::nullopt;
  const std::string digits = hex.substr(2);
  if (!std::all_of(digits.begin(), digits.end(),
                   [](unsigned char c) { return std::isxdigit(c) != 0; })) {
    return std::nullopt;
  }
  Lsn lsn;
  const Bytes bytes = BytesFromHex(digits);
  std::copy(bytes.begin(), bytes.end(), lsn.bytes.begin());
  return lsn;
}

// A JSON value in a column's type. Raises as a conversion of its text does.
Value ValueOf(const Json& json, const SqlType& type) {
  if (json.is_null()) return {};
  const std::string text = json.is_string() ? json.get<std::string>() : json.dump();
  if (IsBinaryType(type.id)) {
    return Value{Bytes(text.begin(), text.end()), {}};
  }
  return ConvertValue(Value{Utf16(text), {}}, NVarCharType(kMax), type, {});
}

class Importer {
 public:
  Importer(SimEngine& engine, const std::string& database, Fake fake)
      : engine_(engine), name_(database), fake_(std::move(fake)) {}

  Status Run() {
    TRY(MakeDatabase());
    for (const auto& [name, table] : fake_.tables) TRY(MakeTable(name, table));
    for (const FakeInstance& instance : fake_.instances) TRY(Enable(instance));
    TRY_ASSIGN(const std::int64_t captured, engine_.CaptureNow(name_));
    (void)captured;
    try {
      return Fill();
    } catch (const SqlError& problem) {
      return Refused(current_, problem.message.text);
    }
  }

 private:
  Status Sql(const std::string& text) { return engine_.Run(name_, text); }

  Status MakeDatabase() {
    if (engine_.server().FindDatabase(name_) == nullptr) {
      TRY(engine_.Run("master", "CREATE DATABASE " + Bracketed(name_)));
    }
    database_ = engine_.server().FindDatabase(name_);
    if (database_->catalog()->cdc_enabled) {
      return Refused(name_, "the database already has change data capture");
    }
    return Sql("EXEC sys.sp_cdc_enable_db");
  }

  // The columns of all instances of the table, in the order they came.
  std::vector<FakeColumn> ColumnsOf(const std::string& table) const {
    std::vector<FakeColumn> columns;
    for (const FakeInstance& instance : fake_.instances) {
      if (instance.table != table) continue;
      for (const FakeColumn& column : instance.columns) {
        const bool known =
            std::any_of(columns.begin(), columns.end(), [&](const FakeColumn& c) {
              return EqualsIgnoringAsciiCase(c.name, column.name);
            });
        if (!known) columns.push_back(column);
      }
    }
    return columns;
  }

  Status MakeTable(const std::string& name, const FakeTable& table) {
    std::string columns;
    for (const FakeColumn& column : ColumnsOf(name)) {
      const bool key = Holds(table.keys, column.name);
      columns += (columns.empty() ? "" : ", ") + Bracketed(column.name) + " " +
                 SqlTypeOf(column.spark_type, key) + (key ? " NOT NULL" : " NULL");
    }
    std::string keys;
    for (const std::string& key : table.keys) {
      keys += (keys.empty() ? "" : ", ") + Bracketed(key);
    }
    if (!keys.empty()) columns += ", PRIMARY KEY (" + keys + ")";
    return Sql("CREATE TABLE dbo." + Bracketed(name) + " (" + columns + ")");
  }

  Status Enable(const FakeInstance& instance) {
    std::string list;
    for (const FakeColumn& column : instance.columns) {
      list += (list.empty() ? "" : ", ") + Bracketed(column.name);
    }
    return Sql("EXEC sys.sp_cdc_enable_table N'dbo', " + Quoted(instance.table) +
               ", @role_name = NULL, @capture_instance = " + Quoted(instance.name) +
               ", @captured_column_list = " + Quoted(list));
  }

  Status Fill();
  Status FillMapping(WriteTransaction& transaction);
  Status FillInstance(WriteTransaction& transaction, const FakeInstance& fake);
  Status FillTable(WriteTransaction& transaction, const std::string& name,
                   const FakeTable& table);
  std::string MaskOf(const FakeInstance& fake, std::size_t index) const;
  Status BindChange(Statement& insert, const FakeInstance& fake, const TableMeta& table,
                    std::size_t index) const;

  SimEngine& engine_;
  std::string name_;
  Fake fake_;
  std::shared_ptr<Database> database_;
  std::string current_;  // What is being written, for messages.
};

Status Importer::Fill() {
  database_->LockWriter({});
  const std::unique_ptr<WriteTransaction> transaction =
      WriteTransaction::Begin(database_, engine_.server().Now());
  if (transaction == nullptr) return Refused(name_, "the database cannot be written");
  TRY(FillMapping(*transaction));
  for (const auto& [name, table] : fake_.tables) {
    TRY(FillTable(*transaction, name, table));
  }
  for (const FakeInstance& instance : fake_.instances) {
    TRY(FillInstance(*transaction, instance));
  }
  Lsn newest = database_->log().last();
  for (const auto& [lsn, time] : fake_.mapping) {
    newest = std::max(newest, LsnFromHex(lsn).value_or(Lsn{}));
  }
  database_->log().MoveTo(newest);
  if (!transaction->Commit(engine_.server().Now())) {
    return Refused(name_, "the commit failed");
  }
  return Unit{};
}

Status Importer::FillMapping(WriteTransaction& transaction) {
  current_ = "lsn_time_mapping.jsonl";
  const TablePtr mapping = transaction.catalog()->FindTable("cdc", "lsn_time_mapping");
  Connection& connection = transaction.connection();
  transaction.Rewrites();
  connection.Prepare("DELETE FROM " + mapping->physical).Run();
  transaction.AddRowCount(mapping->object_id,
                          -transaction.RowCount(mapping->object_id));
  std::int64_t transaction_id = 0;
  for (const auto& [hex, time] : fake_.mapping) {
    const std::optional<Lsn> lsn = LsnFromHex(hex);
    if (!lsn) return Refused(current_, "no LSN: " + hex);
    // An entry without change rows is one of an idle database.
    const bool idle = std::none_of(
        fake_.instances.begin(), fake_.instances.end(), [&](const FakeInstance& i) {
          return std::any_of(i.changes.begin(), i.changes.end(),
                             [&](const FakeChange& c) { return c.start_lsn == hex; });
        });
    const DateTimeValue at = FromIsoText(time);
    const Lsn begin = idle ? Lsn{} : lsn->Decremented();
    if (!AddMappingRow(transaction,
                       {*lsn, at, at, idle ? 0 : ++transaction_id, begin})) {
      return Refused(current_, "not stored: " + hex);
    }
  }
  return Unit{};
}

Status Importer::FillTable(WriteTransaction& transaction, const std::string& name,
                           const FakeTable& table) {
  current_ = "tables/" + name + ".json";
  const TablePtr target = transaction.catalog()->FindTable("dbo", name);
  Connection& connection = transaction.connection();
  Statement insert = connection.Prepare(InsertText(*target));
  std::vector<Value> values(target->columns.size());
  std::vector<Cell> cells;
  for (const Json& row : table.rows) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ColumnMeta& column = target->columns[i];
      values[i] = ValueOf(row.contains(column.name) ? row.at(column.name) : Json(),
                          column.type);
    }
    EncodeRow(*target, values, cells);
    BindRow(insert, *target, transaction.catalog()->collation, values, cells);
    if (insert.Run() != Step::kDone) return Refused(current_, connection.LastError());
    transaction.AddRowCount(target->object_id, 1);
  }
  return Unit{};
}

Status Importer::FillInstance(WriteTransaction& transaction, const FakeInstance& fake) {
  CaptureInstance* instance = transaction.Change().FindInstance(fake.name);
  const TablePtr table = transaction.catalog()->TableById(instance->change_table_id);
  instance->start_lsn = LsnFromHex(fake.min_lsn);
  if (!instance->start_lsn) return Refused("min_lsn.json", "no LSN: " + fake.min_lsn);
  if (!fake.created.empty()) instance->create_date = FromIsoText(fake.created);
  for (const auto& [lsn, command] : fake.ddl) {
    DdlEntry entry;
    entry.source_id = instance->source_id;
    entry.change_table_id = instance->change_table_id;
    entry.command = command;
    entry.lsn = LsnFromHex(lsn).value_or(Lsn{});
    // Cleanup may have passed it: then the oldest time that is left.
    bool is_first = true;
    for (const auto& [start, time] : fake_.mapping) {
      if (is_first || start <= lsn) entry.time = FromIsoText(time);
      is_first = false;
    }
    transaction.Change().ddl_history.push_back(std::move(entry));
  }
  current_ = "changes/" + fake.name + ".jsonl";
  Connection& connection = transaction.connection();
  Statement insert = connection.Prepare(InsertText(*table));
  for (std::size_t i = 0; i < fake.changes.size(); ++i) {
    TRY(BindChange(insert, fake, *table, i));
    if (insert.Run() != Step::kDone) return Refused(current_, connection.LastError());
    transaction.AddRowCount(table->object_id, 1);
  }
  return Unit{};
}

// All columns, or of an update's image those in which the other image, beside it,
// differs.
std::string Importer::MaskOf(const FakeInstance& fake, std::size_t index) const {
  const FakeChange& change = fake.changes[index];
  const FakeChange* other = nullptr;
  if (change.operation == 3 && index + 1 < fake.changes.size()) {
    other = &fake.changes[index + 1];
  }
  if (change.operation == 4 && index > 0) other = &fake.changes[index - 1];
  std::vector<std::int32_t> ordinals;
  for (std::size_t i = 0; i < fake.columns.size(); ++i) {
    const std::string& column = fake.columns[i].name;
    if (other == nullptr ||
        change.row.value(column, Json()) != other->row.value(column, Json())) {
      ordinals.push_back(static_cast<std::int32_t>(i) + 1);
    }
  }
  return UpdateMask(ordinals, fake.columns.size());
}

Status Importer::BindChange(Statement& insert, const FakeInstance& fake,
                            const TableMeta& table, std::size_t index) const {
  const FakeChange& change = fake.changes[index];
  const std::optional<Lsn> start = LsnFromHex(change.start_lsn);
  const std::optional<Lsn> seqval = LsnFromHex(change.seqval);
  if (!start || !seqval) return Refused(current_, "no LSN: " + change.start_lsn);
  const std::string mask = MaskOf(fake, index);
  const std::vector<std::string>& computed = fake_.tables.at(fake.table).computed;
  int position = BindChangeHead(insert, {*start, *seqval, change.operation, mask});
  Cell cell;
  for (std::size_t i = 0; i < fake.columns.size(); ++i) {
    const std::string& column = fake.columns[i].name;
    const SqlType& type = table.columns[i + kFirstCaptured].type;
    const Json value =
        Holds(computed, column) ? Json() : change.row.value(column, Json());
    EncodeCell(type, ValueOf(value, type), cell);
    BindCell(insert, position++, cell);
  }
  BindCommandId(insert, table, position, change.command_id);
  return Unit{};
}

}  // namespace

Status ImportFake(SimEngine& engine, const std::string& database,
                  const std::string& directory) {
  TRY_ASSIGN(Fake fake, ReadFake(directory));
  return Importer(engine, database, std::move(fake)).Run();
}

}  // namespace mssql_cdc::sim
