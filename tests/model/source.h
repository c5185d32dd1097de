// The simulator and the streams of one seed.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/dice.h"
#include "lake/memory_lake.h"
#include "net/faulty.h"
#include "runtime/stream.h"
#include "sim/engine/engine.h"
#include "sim/wire/server.h"
#include "tests/model/history.h"

namespace mssql_cdc::model {

// Aborts the seed; its text says what is wrong.
using tests::Wrong;

struct RunResult {
  Status status = Unit{};
  bool was_hit = false;  // By a fault of ours.
};

class Source {
 public:
  // Throws Wrong.
  explicit Source(const std::string& directory);
  ~Source();

  void Sql(const std::string& text, const std::string& database = "life");
  void CaptureAll();
  sim::SimEngine& engine() { return *engine_; }
  const sim::wire::Counters& counters() const { return server_->counters(); }
  // Connects in this process, with a server's faults if there are any.
  std::unique_ptr<net::Dialer> MakeDialer(const net::TransportFaults& faults = {});
  // How anybody logs in.
  static sqlserver::ConnectOptions Login(const std::string& database = "life");

  // The server goes down, and its state becomes that of `backup` (Restore) or is copied
  // there (Backup); then it is up again.
  void Backup(const std::string& backup);
  void Restore(const std::string& backup);

  // Runs a stream to its end over TDS.
  Status RunOn(const runtime::StreamConfig& config, lake::Lake& lake,
               const net::TransportFaults& faults = {},
               const std::string& database = "life");
  // Hands what streams and snapshots work with to `call`: sessions of this server, and
  // `lake`. The parts are gone when it returns.
  Status With(lake::Lake& lake, const net::TransportFaults& faults,
              const std::string& database,
              const std::function<Status(const runtime::StreamParts&)>& call);
  // RunOn, with a fault now and then: a call of the lake fails before or after it
  // did its work, or a connection is cut.
  RunResult Run(const runtime::StreamConfig& config, lake::MemoryLake& lake, Dice& dice,
                bool with_fault, KindCounts& counts);

  // Hears the streams; may be null.
  runtime::StreamObserver* observer = nullptr;

 private:
  void Start();
  void Stop();

  std::int64_t now_utc_us_;  // Of the server, while it is down.
  ManualClock clock_;
  std::string directory_;
  std::shared_ptr<sim::SimEngine> engine_;
  std::unique_ptr<sim::wire::Server> server_;
};

}  // namespace mssql_cdc::model
