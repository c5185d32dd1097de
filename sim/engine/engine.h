// The simulated SQL Server: databases with CDC in a state directory, logins, sessions.
//
// What time does and when capture and cleanup run are explicit steps, so that a run is
// replayed from its seed; each step is a method here and a procedure in schema sim
// (procedures.h) that an administrator may call in T-SQL. The wire (sim/wire) and tests
// drive it through Engine and EngineSession.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "sim/engine/lsn.h"
#include "sim/engine/options.h"
#include "sim/session.h"
#include "sim/value.h"

namespace mssql_cdc::sim {

class Server;

class SimEngine final : public Engine {
 public:
  // Opens the state directory, or creates one. Errors: SimulatorFailed.
  static Result<std::shared_ptr<SimEngine>> Open(EngineOptions options);
  ~SimEngine() override;

  // Engine. Threads: any.
  std::variant<std::unique_ptr<EngineSession>, LoginFailure> Login(
      const LoginRequest& request) override;
  Version version() const override;

  // A session of an administrator, as sa has it, without a password.
  std::unique_ptr<EngineSession> AdminSession(const std::string& database);
  // Runs `sql` as an administrator. The first error's text, if one is raised.
  Status Run(const std::string& database, const std::string& sql);

  // Steps. Errors: SimulatorFailed if there is no such database or it has no CDC.
  // Captures what the log holds, all of it; returns the number of transactions.
  Result<std::int64_t> CaptureNow(const std::string& database);
  // One cycle of the capture job.
  Result<std::int64_t> CaptureCycle(const std::string& database,
                                    std::int32_t transaction_count_max);
  Status MoveLowWaterMark(const std::string& database, std::int64_t retention_minutes);
  Result<std::int64_t> DeleteBelowLowWaterMark(
      const std::string& database, std::optional<std::int64_t> row_count_max);
  // The Agent's jobs that are due by now.
  void RunDueJobs();
  void AdvanceClock(std::int64_t duration_ms);
  void SetClock(std::int64_t utc_us);
  std::int64_t NowUtcUs();
  Result<std::optional<Lsn>> MaxLsn(const std::string& database);

  // One transaction that inserts `count` rows into `table` ("dbo.orders") and, if the
  // table is tracked, writes their changes straight into its change table and the
  // mapping: as if the transaction was captured at once. `value` gives column `column`
  // of row `row`; absent: a made-up value of the column's type that differs by row.
  using BulkValue = std::function<Value(std::int64_t row, std::size_t column)>;
  struct BulkOptions {
    bool source = true;   // Fill the table itself.
    bool changes = true;  // Fill the change tables.
  };
  Status BulkInsert(const std::string& database, const std::string& table,
                    std::int64_t count, BulkOptions options, const BulkValue& value);

  Server& server() { return *server_; }

 private:
  SimEngine();

  struct CaptureThread;
  std::shared_ptr<Server> server_;
  std::unique_ptr<CaptureThread> capture_thread_;
};

}  // namespace mssql_cdc::sim
