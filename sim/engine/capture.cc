// The capture job's scan: from the log to the change tables.

#include <algorithm>
#include <map>

#include "base/text.h"
#include "sim/engine/cdc.h"
#include "sim/engine/stored_table.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::int64_t kIdleRowTicks = 300LL * 10'000'000;  // Facts 1.1: 300 s.
constexpr int kFirstCaptured =
    5;  // Columns of a change table before the captured ones.

using Image = std::map<std::int32_t, Cell>;

Image ReadImage(std::string_view bytes) {
  Image image;
  while (bytes.size() > 2) {
    const std::int32_t id =
        static_cast<std::uint8_t>(bytes[0]) | static_cast<std::uint8_t>(bytes[1]) << 8;
    bytes.remove_prefix(2);
    ReadCell(bytes, image[id]);
  }
  return image;
}

// What a scan knows of an instance.
struct Target {
  std::string name;
  std::int32_t source_id = 0;
  TablePtr table;
  bool started = false;
  std::vector<CapturedColumn> columns;
  std::vector<bool> old_lob;  // text, ntext, image.
  std::vector<bool> max_type;
  std::string insert;
  std::string full_mask;
};

std::vector<Target> TargetsOf(const Catalog& catalog) {
  std::vector<Target> targets;
  for (const CaptureInstance& instance : catalog.instances) {
    Target target;
    target.name = instance.name;
    target.source_id = instance.source_id;
    target.table = catalog.TableById(instance.change_table_id);
    target.started = instance.start_lsn.has_value();
    target.columns = instance.columns;
    if (target.table == nullptr) continue;
    std::vector<std::int32_t> all;
    for (std::size_t i = 0; i < target.columns.size(); ++i) {
      const SqlType& type = target.table->columns[i + kFirstCaptured].type;
      target.old_lob.push_back(IsOldLobType(type.id));
      target.max_type.push_back(IsMaxType(type));
      all.push_back(target.columns[i].ordinal);
    }
    target.full_mask = UpdateMask(all, target.columns.size());
    std::string marks;
    for (std::size_t i = 0; i < target.table->columns.size(); ++i) {
      marks += i == 0 ? "?" : ",?";
    }
    target.insert = "INSERT INTO " + target.table->physical + " VALUES(" + marks + ")";
    targets.push_back(std::move(target));
  }
  return targets;
}

struct LoggedTransaction {
  std::int64_t id = 0;
  Lsn commit_lsn;
  Lsn begin_lsn;
  DateTimeValue begin_time;
  DateTimeValue end_time;
};

class Scan {
 public:
  Scan(WriteTransaction& transaction, ScanResult& result)
      : transaction_(transaction),
        connection_(transaction.connection()),
        result_(result),
        targets_(TargetsOf(*transaction.catalog())) {}

  void Take(const LoggedTransaction& logged);
  void AddMapping(const Lsn& start, const DateTimeValue& begin,
                  const DateTimeValue& end, std::int64_t transaction_id,
                  const Lsn& begin_lsn);

 private:
  bool TakeUntilDefinition(std::int64_t transaction_id, std::int64_t& number);
  void TakeChange(LogAction action, std::int32_t table_id, const Lsn& seqval,
                  std::string_view before, std::string_view after);
  void StartInstance(std::string_view name);
  void TakeDefinition(std::int32_t table_id, std::string_view record, const Lsn& lsn);
  void AlterChangeTable(Target& target, std::size_t column, const SqlType& type);
  bool Write(const Target& target, int operation, const Lsn& seqval,
             std::int32_t command_id, const std::string& mask, const Image& image,
             const std::vector<bool>& hidden);

  WriteTransaction& transaction_;
  Connection& connection_;
  ScanResult& result_;
  std::vector<Target> targets_;
  const LoggedTransaction* logged_ = nullptr;
  std::int32_t command_id_ = 0;
  bool wrote_ = false;
};

void Scan::Take(const LoggedTransaction& logged) {
  logged_ = &logged;
  command_id_ = 0;
  wrote_ = false;
  std::int64_t number = 0;
  while (TakeUntilDefinition(logged.id, number)) {
  }
  if (wrote_) {
    AddMapping(logged.commit_lsn, logged.begin_time, logged.end_time, logged.id,
               logged.begin_lsn);
  }
  ++result_.transaction_count;
}

// Takes records above `number` up to and including the next DDL record; false: none is
// left. SQLite drops no table while a statement reads, so each DDL record ends the
// read.
bool Scan::TakeUntilDefinition(std::int64_t transaction_id, std::int64_t& number) {
  std::string record;
  std::int32_t definition_table_id = 0;
  Lsn definition_lsn;
  {
    Statement read = connection_.Prepare(
        "SELECT action, table_id, seqval, before, after, number FROM log_change"
        " WHERE transaction_id = ? AND number > ? ORDER BY number");
    read.BindInt(1, transaction_id);
    read.BindInt(2, number);
    while (record.empty()) {
      if (read.Next() != Step::kRow) return false;
      number = read.Int(5);
      const auto action = static_cast<LogAction>(read.Int(0));
      const auto table_id = static_cast<std::int32_t>(read.Int(1));
      const Lsn seqval = LsnFrom(read.Blob(2));
      switch (action) {
        case LogAction::kDelete:
        case LogAction::kInsert:
        case LogAction::kUpdate:
          TakeChange(action, table_id, seqval, read.Blob(3), read.Blob(4));
          break;
        case LogAction::kDefinition:
          record = read.Blob(3);
          definition_table_id = table_id;
          definition_lsn = seqval;
          break;
        case LogAction::kInstance:
          StartInstance(read.Blob(3));
          break;
      }
    }
  }
  TakeDefinition(definition_table_id, record, definition_lsn);
  return true;
}

void Scan::TakeChange(LogAction action, std::int32_t table_id, const Lsn& seqval,
                      std::string_view before, std::string_view after) {
  Image old;
  Image fresh;
  bool read = false;
  std::vector<bool> hidden;
  for (const Target& target : targets_) {
    if (target.source_id != table_id || !target.started) continue;
    if (!read) {
      old = ReadImage(before);
      fresh = ReadImage(after);
      read = true;
    }
    const std::size_t count = target.columns.size();
    if (action != LogAction::kUpdate) {
      const bool insert = action == LogAction::kInsert;
      hidden.assign(count, false);
      if (!insert) hidden = target.old_lob;
      // Each change is a command of its own for each instance, so the ids of one change
      // differ between instances (S5).
      Write(target, insert ? 2 : 1, seqval, ++command_id_, target.full_mask,
            insert ? fresh : old, hidden);
      continue;
    }
    std::vector<std::int32_t> changed;
    hidden.assign(count, false);
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t id = target.columns[i].column_id;
      const bool differs = !(old[id] == fresh[id]);
      if (differs && !target.columns[i].computed) {
        changed.push_back(target.columns[i].ordinal);
      }
      hidden[i] = target.old_lob[i] || (target.max_type[i] && !differs);
    }
    if (changed.empty()) continue;
    const std::string mask = UpdateMask(changed, count);
    ++command_id_;
    Write(target, 3, seqval, command_id_, mask, old, hidden);
    Write(target, 4, seqval, command_id_, mask, fresh, std::vector<bool>(count, false));
  }
}

bool Scan::Write(const Target& target, int operation, const Lsn& seqval,
                 std::int32_t command_id, const std::string& mask, const Image& image,
                 const std::vector<bool>& hidden) {
  Statement insert = connection_.Prepare(target.insert);
  int index = 1;
  insert.BindBlob(index++, logged_->commit_lsn.bytes.data(), 10);
  insert.BindNull(index++);
  insert.BindBlob(index++, seqval.bytes.data(), 10);
  insert.BindInt(index++, operation);
  insert.BindBlob(index++, mask.data(), mask.size());
  for (std::size_t i = 0; i < target.columns.size(); ++i) {
    const auto found = image.find(target.columns[i].column_id);
    // Computed and dropped columns have no cell.
    if (found == image.end() || hidden[i]) {
      insert.BindNull(index++);
    } else {
      BindCell(insert, index++, found->second);
    }
  }
  insert.BindInt(index, command_id);
  wrote_ = true;
  ++result_.command_count;
  transaction_.AddRowCount(target.table->object_id, 1);
  return insert.Run() == Step::kDone;
}

void Scan::AddMapping(const Lsn& start, const DateTimeValue& begin,
                      const DateTimeValue& end, std::int64_t transaction_id,
                      const Lsn& begin_lsn) {
  const TablePtr mapping = transaction_.catalog()->FindTable("cdc", "lsn_time_mapping");
  if (mapping == nullptr) return;
  Statement insert = connection_.Prepare("INSERT OR IGNORE INTO " + mapping->physical +
                                         " VALUES(?, ?, ?, ?, ?)");
  SqlType type = DateTimeType();
  Cell cell;
  insert.BindBlob(1, start.bytes.data(), 10);
  EncodeCell(type, Value{RoundedToDateTime(begin), {}}, cell);
  BindCell(insert, 2, cell);
  EncodeCell(type, Value{RoundedToDateTime(end), {}}, cell);
  BindCell(insert, 3, cell);
  // 0x00: no transaction of a user's.
  std::string id(1, '\0');
  if (transaction_id != 0) {
    id = BigEndian64(static_cast<std::uint64_t>(transaction_id)).substr(2);
  }
  insert.BindBlob(4, id.data(), id.size());
  insert.BindBlob(5, begin_lsn.bytes.data(), 10);
  insert.Run();
  if (connection_.Changes() > 0) transaction_.AddRowCount(mapping->object_id, 1);
}

void Scan::StartInstance(std::string_view name) {
  for (Target& target : targets_) {
    if (target.name == name) target.started = true;
  }
  CaptureInstance* instance = transaction_.Change().FindInstance(name);
  if (instance == nullptr || instance->start_lsn) return;
  instance->start_lsn = logged_->commit_lsn;
  AddMapping(logged_->commit_lsn, instance->create_date, instance->create_date, 0,
             Lsn{});
}

void Scan::TakeDefinition(std::int32_t table_id, std::string_view record,
                          const Lsn& lsn) {
  Cell cell;
  auto take = [&] {
    cell = Cell{};
    ReadCell(record, cell);
    return cell.integer;
  };
  take();
  DdlEntry entry;
  entry.command = cell.bytes;
  entry.time.days = static_cast<std::int32_t>(take());
  entry.time.ticks = take();
  const auto column_id = static_cast<std::int32_t>(take());
  SqlType type;
  type.id = static_cast<TypeId>(take());
  type.length = static_cast<std::int32_t>(take());
  type.precision = static_cast<std::uint8_t>(take());
  type.scale = static_cast<std::uint8_t>(take());
  take();
  type.collation = cell.bytes;
  entry.source_id = table_id;
  entry.lsn = lsn;
  for (Target& target : targets_) {
    if (target.source_id != table_id || !target.started) continue;
    entry.change_table_id = target.table->object_id;
    entry.required_column_update = false;
    for (std::size_t i = 0; i < target.columns.size(); ++i) {
      if (column_id == 0 || target.columns[i].column_id != column_id) continue;
      const SqlType& held = target.table->columns[i + kFirstCaptured].type;
      if (held == type) continue;
      entry.required_column_update = true;
      AlterChangeTable(target, i, type);
    }
    transaction_.Change().ddl_history.push_back(entry);
  }
}

// Rows of before the change keep their values, in the new type's form.
void Scan::AlterChangeTable(Target& target, std::size_t column, const SqlType& type) {
  TableMeta next = *target.table;
  const std::size_t position = column + kFirstCaptured;
  const SqlType before = next.columns[position].type;
  next.columns[position].type = type;
  next.columns[position].type_name = SystemTypeName(type.id);
  const RebuildResult rebuilt =
      Rebuild(connection_, *transaction_.catalog(), *target.table, next,
              [&](std::size_t at, const std::vector<Value>& old, Value& value) {
                if (at != position || old[at].IsNull()) return false;
                value = old[at];
                if (auto* decimal = std::get_if<Decimal>(&value.held)) {
                  for (; decimal->scale < type.scale; ++decimal->scale)
                    decimal->unscaled *= 10;
                  for (; decimal->scale > type.scale; --decimal->scale)
                    decimal->unscaled /= 10;
                }
                return true;
              });
  (void)rebuilt;
  Catalog& catalog = transaction_.Change();
  catalog.tables[next.object_id] = std::make_shared<TableMeta>(next);
  if (CaptureInstance* instance = catalog.FindInstance(target.name)) {
    instance->columns[column].type_name = SystemTypeName(type.id);
  }
  const bool started = target.started;
  for (Target& fresh : targets_) {
    if (fresh.name != target.name) continue;
    std::vector<Target> all = TargetsOf(catalog);
    for (Target& candidate : all) {
      if (candidate.name == target.name) {
        candidate.started = started;
        fresh = std::move(candidate);
        return;
      }
    }
  }
}

std::vector<LoggedTransaction> Pending(Connection& connection, std::int32_t count_max) {
  Statement read = connection.Prepare(
      "SELECT id, commit_lsn, begin_lsn, begin_days, begin_ticks, end_days, end_ticks"
      " FROM log_transaction ORDER BY id LIMIT ?");
  read.BindInt(1, count_max);
  std::vector<LoggedTransaction> found;
  while (read.Next() == Step::kRow) {
    LoggedTransaction& logged = found.emplace_back();
    logged.id = read.Int(0);
    logged.commit_lsn = LsnFrom(read.Blob(1));
    logged.begin_lsn = LsnFrom(read.Blob(2));
    logged.begin_time.days = static_cast<std::int32_t>(read.Int(3));
    logged.begin_time.ticks = read.Int(4);
    logged.end_time.days = static_cast<std::int32_t>(read.Int(5));
    logged.end_time.ticks = read.Int(6);
  }
  return found;
}

// An idle database gets a mapping row of its own, at most one in 300 s, so that readers
// see time pass.
bool IdleRowIsDue(Connection& connection, const TableMeta& mapping,
                  const DateTimeValue& now) {
  Statement newest = connection.Prepare("SELECT MAX(" + mapping.columns[2].physical +
                                        ") FROM " + mapping.physical);
  if (newest.Next() != Step::kRow || newest.IsNull(0)) return true;
  Cell cell;
  EncodeCell(DateTimeType(), Value{RoundedToDateTime(now), {}}, cell);
  return cell.integer - newest.Int(0) >= kIdleRowTicks;
}

}  // namespace

Lsn LsnFrom(std::string_view bytes) {
  Lsn lsn;
  for (std::size_t i = 0; i < lsn.bytes.size() && i < bytes.size(); ++i) {
    lsn.bytes[i] = static_cast<std::uint8_t>(bytes[i]);
  }
  return lsn;
}

std::string UpdateMask(const std::vector<std::int32_t>& ordinals, std::size_t count) {
  std::string mask((count + 7) / 8, '\0');
  for (const std::int32_t ordinal : ordinals) {
    const auto bit = static_cast<std::size_t>(ordinal - 1);
    char& byte = mask[mask.size() - 1 - bit / 8];
    byte = static_cast<char>(byte | 1 << bit % 8);
  }
  return mask;
}

ScanResult CaptureOnce(Server& server, const std::shared_ptr<Database>& database,
                       std::int32_t transaction_count_max) {
  ScanResult result;
  if (!database->catalog()->cdc_enabled) return result;
  Server::ScanSession session;
  session.database = database->name();
  session.start_time = server.Now();
  if (const std::int32_t fault = database->capture_fault.load(); fault != 0) {
    result.error = fault;
    server.NoteCaptureError(
        {database->name(), server.Now(), fault,
         "Log Scan process failed in processing log records. Refer to "
         "previous errors in the current session to identify the "
         "cause and correct any associated problems."});
    session.end_time = server.Now();
    session.error_count = 1;
    server.NoteScan(session);
    return result;
  }
  database->LockWriter(-1, nullptr);
  const DateTimeValue now = server.Now();
  std::unique_ptr<WriteTransaction> transaction =
      WriteTransaction::Begin(database, now);
  if (transaction == nullptr) {
    result.error = 22859;
    return result;
  }
  Connection& connection = transaction->connection();
  const std::vector<LoggedTransaction> pending =
      Pending(connection, transaction_count_max);
  Scan scan(*transaction, result);
  for (const LoggedTransaction& logged : pending) scan.Take(logged);
  if (!pending.empty()) {
    for (const char* table :
         {"log_change WHERE transaction_id", "log_transaction WHERE id"}) {
      Statement remove =
          connection.Prepare(std::string("DELETE FROM ") + table + " <= ?");
      remove.BindInt(1, pending.back().id);
      remove.Run();
    }
    session.first_lsn = pending.front().commit_lsn;
    session.last_lsn = pending.back().commit_lsn;
  } else {
    const TablePtr mapping =
        transaction->catalog()->FindTable("cdc", "lsn_time_mapping");
    if (mapping == nullptr || !IdleRowIsDue(connection, *mapping, now)) {
      transaction->Rollback();
      return result;
    }
    scan.AddMapping(database->log().last(), now, now, 0, Lsn{});
  }
  transaction->Commit(server.Now());
  session.end_time = server.Now();
  session.transaction_count = result.transaction_count;
  session.command_count = result.command_count;
  session.empty = pending.empty();
  server.NoteScan(session);
  return result;
}

ScanResult Capture(Server& server, const std::shared_ptr<Database>& database,
                   std::int32_t transaction_count_max, std::int32_t scan_count_max) {
  ScanResult total;
  for (std::int32_t i = 0; i < scan_count_max; ++i) {
    const ScanResult one = CaptureOnce(server, database, transaction_count_max);
    total.transaction_count += one.transaction_count;
    total.command_count += one.command_count;
    total.error = one.error;
    if (one.error != 0 || one.transaction_count == 0) break;
  }
  return total;
}

}  // namespace mssql_cdc::sim
