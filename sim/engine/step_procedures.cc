// Schema sim: the simulator's control channel. Each procedure is one step that on a
// real server takes time, an operator or an accident; docs/simulator.md lists them.

#include <filesystem>
#include <map>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"
#include "sim/engine/procedure_arguments.h"
#include "sim/engine/procedures.h"
#include "sim/engine/stored_table.h"

namespace mssql_cdc::sim {
namespace {

using Given = std::vector<ProcedureArgument>;

std::int32_t CaptureNow(Session& session, Given& given) {
  const Arguments arguments("capture_now", {"@maxtrans", "@maxscans"}, given);
  RequireNoTransaction(session, "sim.capture_now");
  RequireCdc(session);
  const ScanResult result =
      Capture(session.server(), session.current(),
              static_cast<std::int32_t>(arguments.Int(0).value_or(500)),
              static_cast<std::int32_t>(arguments.Int(1).value_or(1'000'000)));
  session.EndReads();
  if (result.error != 0) RaiseFault(result.error);
  return 0;
}

std::int32_t Cleanup(Session& session, const std::string& name, Given& given) {
  const bool moves = name != "cleanup_delete";
  const bool deletes = name != "cleanup_move";
  const Arguments arguments(name, {moves ? "@retention" : "@rows", "@low_water_mark"},
                            given);
  RequireNoTransaction(session, "sim.cleanup");
  RequireCdc(session);
  Server& server = session.server();
  const std::shared_ptr<Database>& database = session.current();
  if (moves) {
    std::optional<Lsn> mark = arguments.BinaryLsn(1);
    if (!mark) mark = RetentionMark(server, database, arguments.Int(0).value_or(4320));
    if (mark) MoveLowWaterMark(server, database, *mark, std::nullopt);
  }
  if (deletes) {
    DeleteBelowLowWaterMark(server, database, moves ? std::nullopt : arguments.Int(0));
  }
  session.EndReads();
  return 0;
}

std::int32_t CleanupBoth(Session& session, Given& given) {
  return Cleanup(session, "cleanup", given);
}
std::int32_t CleanupMove(Session& session, Given& given) {
  return Cleanup(session, "cleanup_move", given);
}
std::int32_t CleanupDelete(Session& session, Given& given) {
  return Cleanup(session, "cleanup_delete", given);
}

void RequireManualClock(Session& session) {
  if (session.server().manual_clock()) return;
  RaiseSql(50000, 16, 1, "The simulator runs on the system's clock.");
}

std::int32_t SetClock(Session& session, Given& given) {
  const Arguments arguments("set_clock", {"@utc"}, given);
  arguments.Require(0);
  RequireManualClock(session);
  const DateTimeValue at = arguments.Time(0).value_or(DateTimeValue{});
  session.server().SetClock(std::int64_t{at.days - kDaysTo1970} * 86'400'000'000 +
                            at.ticks / 10);
  return 0;
}

std::int32_t AdvanceClock(Session& session, Given& given) {
  const Arguments arguments("advance_clock", {"@milliseconds"}, given);
  arguments.Require(0);
  RequireManualClock(session);
  constexpr std::int64_t kCenturyMs = 36'525LL * 24 * 3'600 * 1'000;
  const std::int64_t duration_ms = arguments.Int(0).value_or(0);
  if (duration_ms > kCenturyMs || duration_ms < -kCenturyMs) {
    RaiseSql(50000, 16, 1, "The clock moves by a century at the most.");
  }
  session.server().AdvanceClock(duration_ms);
  return 0;
}

std::int32_t RunJobs(Session& session, Given& given) {
  const Arguments arguments("run_jobs", {}, given);
  RequireNoTransaction(session, "sim.run_jobs");
  for (const auto& database : session.server().Databases()) {
    RunDueJobs(session.server(), database);
  }
  session.EndReads();
  return 0;
}

std::int32_t FreezeLsn(Session& session, Given& given) {
  const Arguments arguments("freeze_lsn", {"@lsn"}, given);
  std::optional<Lsn> lsn = arguments.BinaryLsn(0);
  if (!lsn) {
    Connection& reader = session.Reader(session.current());
    lsn = MaxLsn(reader, *session.current(), *session.CatalogOf(session.current()));
  }
  session.current()->FreezeMaxLsn(lsn);
  return 0;
}

std::int32_t UnfreezeLsn(Session& session, Given& given) {
  const Arguments arguments("unfreeze_lsn", {}, given);
  session.current()->FreezeMaxLsn(std::nullopt);
  return 0;
}

std::int32_t BreakCapture(Session& session, Given& given) {
  const Arguments arguments("break_capture", {"@number"}, given);
  session.current()->capture_fault =
      static_cast<std::int32_t>(arguments.Int(0).value_or(kScanFailed));
  return 0;
}

std::int32_t MendCapture(Session& session, Given& given) {
  const Arguments arguments("mend_capture", {}, given);
  session.current()->capture_fault = 0;
  return 0;
}

std::int32_t Stall(Session& session, Given& given) {
  const Arguments arguments("stall", {}, given);
  session.server().agent_runs = false;
  return 0;
}

std::int32_t Resume(Session& session, Given& given) {
  const Arguments arguments("resume", {}, given);
  session.server().agent_runs = true;
  return 0;
}

std::int32_t FailReads(Session& session, Given& given) {
  const Arguments arguments("fail_reads", {"@number", "@count", "@rows", "@table"},
                            given);
  Server::ReadFault fault;
  fault.number = static_cast<std::int32_t>(arguments.Int(0).value_or(1222));
  fault.count = static_cast<std::int32_t>(arguments.Int(1).value_or(1));
  fault.row_count = arguments.Int(2).value_or(0);
  fault.table = arguments.Text(3).value_or(std::string());
  session.server().FailNextReads(std::move(fault));
  return 0;
}

std::int32_t FailLogins(Session& session, Given& given) {
  const Arguments arguments("fail_logins", {"@number", "@count"}, given);
  session.server().FailNextLogins(
      static_cast<std::int32_t>(arguments.Int(0).value_or(40613)),
      static_cast<std::int32_t>(arguments.Int(1).value_or(1)));
  return 0;
}

TablePtr TableAt(Session& session, const Arguments& arguments) {
  const std::string text = arguments.RequiredText(0);
  const std::optional<ObjectName> name = ParseObjectName(text);
  const TablePtr table = name ? session.LookUp(session.current(), *name) : nullptr;
  if (table == nullptr) RaiseSql(208, 16, 1, "Invalid object name '" + text + "'.");
  return table;
}

std::int32_t HoldLock(Session& session, Given& given) {
  const Arguments arguments("hold_lock", {"@table"}, given);
  session.current()->HoldLock(TableAt(session, arguments)->object_id);
  return 0;
}

std::int32_t ReleaseLock(Session& session, Given& given) {
  const Arguments arguments("release_lock", {"@table"}, given);
  session.current()->ReleaseLock(TableAt(session, arguments)->object_id);
  return 0;
}

std::int32_t LobAfterImages(Session& session, Given& given) {
  const Arguments arguments("lob_after_images", {"@omit"}, given);
  session.current()->omits_lob_after_images = arguments.Int(0).value_or(1) != 0;
  return 0;
}

std::int32_t OldChangeTables(Session& session, Given& given) {
  const Arguments arguments("old_change_tables", {"@on"}, given);
  session.current()->makes_old_change_tables = arguments.Int(0).value_or(1) != 0;
  return 0;
}

// Where the backup of that name lies: names may hold anything.
std::string BackupFile(const Database& database, const std::string& name) {
  const std::string hex = HexUpper(
      std::span(reinterpret_cast<const std::uint8_t*>(name.data()), name.size()));
  const std::filesystem::path folder =
      std::filesystem::path(database.path()).parent_path();
  return (folder / ("backup_" + std::to_string(database.id()) + "_" + hex + ".db"))
      .string();
}

// Keeps writers out, if it was obtained in time.
class WriterLock {
 public:
  WriterLock(Database& database, std::int64_t timeout_ms, const std::atomic<bool>* stop)
      : database_(database),
        is_held_(database.LockWriter({nullptr, timeout_ms, stop}) ==
                 Database::LockAnswer::kHeld) {}
  ~WriterLock() {
    if (is_held_) database_.UnlockWriter();
  }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

  bool is_held() const { return is_held_; }

 private:
  Database& database_;
  const bool is_held_;
};

std::int32_t BackUp(Session& session, Given& given) {
  const Arguments arguments("back_up", {"@name"}, given);
  RequireNoTransaction(session, "sim.back_up");
  session.EndReads();
  Database& database = *session.current();
  const WriterLock lock(database, session.settings().lock_timeout_ms,
                        &session.EngineSession::stop_requested);
  if (!lock.is_held()) RaiseFault(1222);
  const std::string file = BackupFile(database, arguments.RequiredText(0));
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (!database.BackUp(file).ok()) {
    RaiseSql(3013, 16, 1, "BACKUP DATABASE is terminating abnormally.");
  }
  return 0;
}

void EndOtherSessions(Session& session) {
  ++session.server().era;
  session.Survive();
}

std::int32_t Restore(Session& session, Given& given) {
  const Arguments arguments("restore_to", {"@name", "@keep_cdc"}, given);
  RequireNoTransaction(session, "sim.restore_to");
  session.EndReads();
  const std::shared_ptr<Database> database = session.current();
  const std::string name = arguments.RequiredText(0);
  const std::string file = BackupFile(*database, name);
  if (!std::filesystem::exists(file)) {
    RaiseSql(3201, 16, 2,
             "Cannot open backup device '" + name + "'. It was never backed up.");
  }
  if (Does(Behaviour::kRestoreForksLog)) {
    const WriterLock lock(*database, 0, nullptr);
    if (!lock.is_held()) {
      RaiseSql(
          3101, 16, 1,
          "Exclusive access could not be obtained because the database is in use.");
    }
    if (!database->Restore(file).ok()) {
      RaiseSql(3013, 16, 1, "RESTORE DATABASE is terminating abnormally.");
    }
  }
  EndOtherSessions(session);
  // Restored as another database or on another server, CDC goes unless KEEP_CDC is
  // said (facts 1.10).
  if (arguments.Int(1).value_or(1) == 0 && Does(Behaviour::kKeepCdc)) {
    DisableCdc(session);
  }
  return 0;
}

std::int32_t FailOver(Session& session, Given& given) {
  const Arguments arguments("fail_over", {"@jobs"}, given);
  RequireNoTransaction(session, "sim.fail_over");
  if (Does(Behaviour::kFailoverEndsSessions)) EndOtherSessions(session);
  if (arguments.Int(0).value_or(0) != 0 || !Does(Behaviour::kFailoverLosesJobs)) {
    return 0;
  }
  // The jobs are in msdb, which the new primary has one of its own of (S15).
  for (const auto& database : session.server().Databases()) {
    if (database->catalog()->jobs.empty()) continue;
    session.Write(database).Change().jobs.clear();
  }
  return 0;
}

std::int32_t ReadableSecondary(Session& session, Given& given) {
  const Arguments arguments("readable_secondary", {"@on"}, given);
  session.server().readable_secondary = arguments.Int(0).value_or(1) != 0;
  return 0;
}

using Step = std::int32_t (*)(Session&, Given&);

const std::map<std::string, Step>& Steps() {
  static const auto* const kSteps = new std::map<std::string, Step>{
      {"capture_now", CaptureNow},
      {"run_jobs", RunJobs},
      {"cleanup", CleanupBoth},
      {"cleanup_move", CleanupMove},
      {"cleanup_delete", CleanupDelete},
      {"set_clock", SetClock},
      {"advance_clock", AdvanceClock},
      {"freeze_lsn", FreezeLsn},
      {"unfreeze_lsn", UnfreezeLsn},
      {"break_capture", BreakCapture},
      {"mend_capture", MendCapture},
      {"stall", Stall},
      {"resume", Resume},
      {"fail_reads", FailReads},
      {"fail_logins", FailLogins},
      {"hold_lock", HoldLock},
      {"release_lock", ReleaseLock},
      {"lob_after_images", LobAfterImages},
      {"old_change_tables", OldChangeTables},
      {"back_up", BackUp},
      {"restore_to", Restore},
      {"fail_over", FailOver},
      {"readable_secondary", ReadableSecondary},
  };
  return *kSteps;
}

}  // namespace

std::optional<std::int32_t> StepProcedure(Session& session, const std::string& name,
                                          std::vector<ProcedureArgument>& given) {
  if (!session.is_admin()) {
    RaiseSql(229, 14, 5,
             "The EXECUTE permission was denied on the object '" + name +
                 "', database '" + session.current()->name() + "', schema 'sim'.");
  }
  const auto step = Steps().find(name);
  if (step == Steps().end()) return std::nullopt;
  return step->second(session, given);
}

}  // namespace mssql_cdc::sim
