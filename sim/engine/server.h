// The simulated server instance: databases, logins, clock, dice.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/dice.h"
#include "base/error.h"
#include "sim/engine/database.h"
#include "sim/engine/options.h"
#include "sim/kept_rows.h"
#include "sim/value.h"

namespace mssql_cdc::sim {

struct LoginRecord {
  std::string name;
  std::string password_hash;  // "salt:hash", hexadecimal.
  bool admin = false;
  bool enabled = true;
  std::string default_database = "master";
};

class Server {
 public:
  static Result<std::shared_ptr<Server>> Open(EngineOptions options);

  const EngineOptions& options() const { return options_; }
  KeptRows& kept_rows() { return kept_rows_; }

  // Time.
  std::int64_t NowUtcUs();
  DateTimeValue Now();  // Server-local, with its offset.
  void AdvanceClock(std::int64_t duration_ms);
  void SetClock(std::int64_t utc_us);
  bool manual_clock() const { return options_.start_utc_us.has_value(); }
  // Moves a manual clock; really waits otherwise, until `stop`.
  void Wait(std::int64_t duration_ms, const std::atomic<bool>& stop);

  Guid NewGuid();
  double Random();
  std::uint64_t NextTransactionDescriptor() { return ++descriptor_; }

  // Databases, by name without regard to case.
  std::shared_ptr<Database> FindDatabase(const std::string& name);
  std::shared_ptr<Database> FindDatabase(std::int32_t id);
  std::vector<std::shared_ptr<Database>> Databases();
  Result<std::shared_ptr<Database>> CreateDatabase(const std::string& name,
                                                   const std::string& collation);
  Status DropDatabase(const std::string& name);
  Result<std::shared_ptr<Database>> NewTemporaryDatabase();

  // Logins.
  std::optional<LoginRecord> FindLogin(const std::string& name);
  std::vector<LoginRecord> Logins();
  Status PutLogin(const LoginRecord& login);
  Status DropLogin(const std::string& name);
  static std::string HashPassword(const std::string& password, const std::string& salt);
  static bool PasswordMatches(const LoginRecord& login, const std::string& password);
  std::string NewSalt();

  // sys.dm_cdc_errors and sys.dm_cdc_log_scan_sessions.
  struct ScanSession {
    std::string database;
    std::int32_t session_id = 0;
    DateTimeValue start_time;
    DateTimeValue end_time;
    std::int64_t transaction_count = 0;
    std::int64_t command_count = 0;
    Lsn first_lsn;
    Lsn last_lsn;
    std::int32_t error_count = 0;
    bool empty = true;
    std::int32_t empty_count = 0;  // Of such sessions in a row, which are one.
  };
  struct CaptureError {
    std::string database;
    DateTimeValue time;
    std::int32_t number = 0;
    std::string message;
  };
  void NoteScan(ScanSession scan);
  void NoteCaptureError(CaptureError error);
  std::vector<ScanSession> Scans();
  std::vector<CaptureError> CaptureErrors();

  // The next `count` statements that read `table` ("dbo.orders"; empty: any change
  // table or the mapping) fail with the error `number`, as deadlock victims or lock
  // waits do: at once, or after `row_count` rows.
  struct ReadFault {
    std::int32_t number = 0;
    std::int32_t count = 0;
    std::int64_t row_count = 0;
    std::string table;
  };
  void FailNextReads(ReadFault fault);
  // `of_cdc`: it is a change table or the mapping.
  std::optional<ReadFault> TakeReadFault(const std::string& table, bool of_cdc);
  // The next `count` logins are refused with the error `number`.
  void FailNextLogins(std::int32_t number, std::int32_t count);
  std::optional<std::int32_t> TakeLoginFault();

  // The jobs of SQL Server Agent run (the default). Without it nothing captures and
  // nothing complains.
  std::atomic<bool> agent_runs{true};
  std::atomic<bool> readable_secondary{false};
  // A session that began in an earlier era is dead: a failover or a restore ended it.
  std::atomic<std::uint64_t> era{0};

 private:
  explicit Server(EngineOptions options)
      : options_(std::move(options)),
        kept_rows_(options_.kept_rows_size_bytes_max),
        dice_(options_.seed) {}
  Status LoadDatabases();
  Status LoadLogins();
  Result<std::shared_ptr<Database>> OpenFile(const std::string& name, std::int32_t id,
                                             const std::string& collation);
  Status SaveInstance();

  const EngineOptions options_;
  KeptRows kept_rows_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Database>> databases_;  // By lower-case name.
  std::map<std::string, LoginRecord> logins_;
  std::map<std::string, std::string> create_dates_;
  std::int32_t next_database_id_ = 5;
  std::atomic<std::int64_t> manual_now_us_{0};
  SystemClock system_clock_;
  Dice dice_;
  std::atomic<std::uint64_t> descriptor_{0};
  std::atomic<int> temporary_count_{0};
  std::vector<ScanSession> scans_;
  std::vector<CaptureError> capture_errors_;
  ReadFault read_fault_;
  std::int32_t login_fault_number_ = 0;
  std::int32_t login_fault_count_ = 0;
};

// Days from 0001-01-01, where DateTimeValue counts from, to 1970-01-01.
inline constexpr std::int32_t kDaysTo1970 = 719'162;
// A server-local datetime as SQL Server stores it: to 1/300 s.
DateTimeValue RoundedToDateTime(const DateTimeValue& at);
// ISO text "2026-11-20T08:40:00.123" and back.
std::string IsoText(const DateTimeValue& at);
DateTimeValue FromIsoText(const std::string& text);

}  // namespace mssql_cdc::sim
