// The capture job: cycles of log scans.

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/change_rows.h"
#include "sim/engine/scan.h"
#include "sim/engine/stored_table.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::int64_t kIdleRowTicks = 300LL * 10'000'000;  // Facts 1.1: 300 s.

std::vector<LoggedTransaction> Pending(Connection& connection, std::int32_t count_max) {
  Statement read = connection.Prepare(
      "SELECT id, commit_lsn, begin_lsn, begin_days, begin_ticks, end_days, end_ticks"
      " FROM log_transaction ORDER BY id LIMIT ?");
  const bool limited = Does(Behaviour::kMaxTransPerScan);
  read.BindInt(1, limited ? count_max : std::numeric_limits<std::int32_t>::max());
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
  if (!Does(Behaviour::kIdleRows)) return false;
  if (!Does(Behaviour::kIdleRowsApart)) return true;
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
    const std::size_t place = bit / 8;
    const bool last_first = Does(Behaviour::kMaskLastByteFirst);
    char& byte = mask[last_first ? mask.size() - 1 - place : place];
    byte = static_cast<char>(byte | 1 << bit % 8);
  }
  return mask;
}

namespace {

// Tells sys.dm_cdc_errors and the scan's row in sys.dm_cdc_log_scan_sessions.
void NoteFailure(Server& server, const Database& database, const ScanResult& result,
                 Server::ScanSession session) {
  const DateTimeValue now = server.Now();
  if (result.cause) {
    server.NoteCaptureError(
        {database.name(), now, result.cause->number, result.cause->text});
  }
  server.NoteCaptureError(
      {database.name(), now, result.error, FaultMessage(kScanFailed).text});
  session.end_time = now;
  session.error_count = 1;
  server.NoteScan(session);
}

void Forget(Connection& connection, std::int64_t through) {
  for (const char* table :
       {"log_change WHERE transaction_id", "log_transaction WHERE id"}) {
    Statement remove =
        connection.Prepare(std::string("DELETE FROM ") + table + " <= ?");
    remove.BindInt(1, through);
    remove.Run();
  }
}

}  // namespace

ScanResult CaptureOnce(Server& server, const std::shared_ptr<Database>& database,
                       std::int32_t transaction_count_max) {
  ScanResult result;
  if (!database->catalog()->cdc_enabled) return result;
  Server::ScanSession session;
  session.database = database->name();
  session.start_time = server.Now();
  result.error = database->capture_fault.load();
  if (result.error != 0) {
    NoteFailure(server, *database, result, session);
    return result;
  }
  database->LockWriter({});
  const DateTimeValue now = server.Now();
  std::unique_ptr<WriteTransaction> transaction =
      WriteTransaction::Begin(database, now);
  if (transaction == nullptr) {
    result.error = kScanFailed;
    return result;
  }
  Connection& connection = transaction->connection();
  const std::vector<LoggedTransaction> pending =
      Pending(connection, transaction_count_max);
  Scan scan(*transaction, result);
  const bool taken =
      std::all_of(pending.begin(), pending.end(),
                  [&](const LoggedTransaction& logged) { return scan.Take(logged); });
  scan.Finish();
  if (!taken) {
    transaction->Rollback();
    NoteFailure(server, *database, result, session);
    return result;
  }
  if (!pending.empty()) {
    Forget(connection, pending.back().id);
    session.first_lsn = pending.front().commit_lsn;
    session.last_lsn = pending.back().commit_lsn;
  } else {
    const TablePtr mapping =
        transaction->catalog()->FindTable("cdc", "lsn_time_mapping");
    if (mapping == nullptr || !IdleRowIsDue(connection, *mapping, now)) {
      transaction->Rollback();
      session.end_time = server.Now();
      server.NoteScan(session);
      return result;
    }
    AddMappingRow(*transaction, {database->log().last(), now, now, 0, Lsn{}});
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
  const bool limited = Does(Behaviour::kMaxScansPerCycle);
  for (std::int32_t i = 0; i < scan_count_max || !limited; ++i) {
    const ScanResult one = CaptureOnce(server, database, transaction_count_max);
    total.transaction_count += one.transaction_count;
    total.command_count += one.command_count;
    total.error = one.error;
    if (one.error != 0 || one.transaction_count == 0) break;
  }
  return total;
}

}  // namespace mssql_cdc::sim
