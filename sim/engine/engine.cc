#include "sim/engine/engine.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"
#include "sim/engine/server.h"
#include "sim/engine/session.h"
#include "sim/engine/stored_table.h"

namespace mssql_cdc::sim {
namespace {

Error NoDatabase(const std::string& database) {
  return Error(ErrorId::kSimulatorFailed)
      .With("database", database)
      .With("reason", "there is no such database");
}

LoginFailure Refused(std::int32_t number, std::uint8_t severity, std::string text) {
  LoginFailure failure;
  failure.message.number = number;
  failure.message.severity = severity;
  failure.message.text = std::move(text);
  return failure;
}

// Keeps the first error and drops everything else.
class ErrorSink final : public ReplySink {
 public:
  bool Columns(const std::vector<ResultColumn>&) override { return true; }
  bool Row(const std::vector<Value>&) override { return true; }
  bool StatementDone(std::optional<std::uint64_t>, std::uint16_t) override {
    return true;
  }
  bool SendMessage(const Message& message) override {
    if (message.severity > 10 && !error) error = message;
    return true;
  }
  bool DatabaseChanged(const std::string&, const std::string&) override { return true; }
  bool TransactionBegan(std::uint64_t) override { return true; }
  bool TransactionEnded(std::uint64_t, bool) override { return true; }
  bool ReturnStatus(std::int32_t) override { return true; }
  bool ReturnValue(const std::string&, const SqlType&, const Value&) override {
    return true;
  }

  std::optional<Message> error;
};

}  // namespace

struct SimEngine::CaptureThread {
  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;
  std::thread thread;
};

SimEngine::SimEngine() = default;

SimEngine::~SimEngine() {
  if (capture_thread_ == nullptr) return;
  {
    const std::lock_guard lock(capture_thread_->mutex);
    capture_thread_->stop = true;
  }
  capture_thread_->wake.notify_all();
  capture_thread_->thread.join();
}

Result<std::shared_ptr<SimEngine>> SimEngine::Open(EngineOptions options) {
  std::shared_ptr<SimEngine> engine(new SimEngine);
  const std::int64_t interval_ms = options.capture_interval_ms;
  TRY_ASSIGN(engine->server_, Server::Open(std::move(options)));
  if (interval_ms > 0) {
    engine->capture_thread_ = std::make_unique<CaptureThread>();
    CaptureThread* state = engine->capture_thread_.get();
    std::shared_ptr<Server> server = engine->server_;
    state->thread = std::thread([state, server, interval_ms] {
      std::unique_lock lock(state->mutex);
      while (!state->stop) {
        state->wake.wait_for(lock, std::chrono::milliseconds(interval_ms),
                             [&] { return state->stop; });
        if (state->stop) break;
        lock.unlock();
        for (const auto& database : server->Databases()) {
          const CatalogPtr catalog = database->catalog();
          if (const JobMeta* job = RunningCaptureJob(*server, *catalog)) {
            Capture(*server, database, job->maxtrans, job->maxscans);
          }
        }
        lock.lock();
      }
    });
  }
  return engine;
}

Engine::Version SimEngine::version() const { return server_->options().version; }

std::variant<std::unique_ptr<EngineSession>, LoginFailure> SimEngine::Login(
    const LoginRequest& request) {
  const std::optional<std::int32_t> fault = server_->TakeLoginFault();
  if (fault && Does(Behaviour::kLoginFaults)) {
    LoginFailure failure;
    failure.message = FaultMessage(*fault);
    return failure;
  }
  const std::optional<LoginRecord> login = server_->FindLogin(request.user);
  if (!login || request.access_token || !login->enabled ||
      !Server::PasswordMatches(*login, request.password)) {
    return Refused(18456, 14, "Login failed for user '" + request.user + "'.");
  }
  const std::string& name =
      request.database.empty() ? login->default_database : request.database;
  const std::shared_ptr<Database> database = server_->FindDatabase(name);
  const bool taken = database != nullptr && database->stays()->single_user() &&
                     database->stays()->HoldsOthers(0);
  if (database != nullptr && !taken) {
    auto session = std::make_unique<Session>(server_, *login, request, database);
    if (session->UserIn(*database, *database->catalog())) return session;
  }
  // 18456 follows it, with the same end.
  return Refused(4060, 11,
                 "Cannot open database \"" + name +
                     "\" requested by the login. The login failed.");
}

std::unique_ptr<EngineSession> SimEngine::AdminSession(const std::string& database) {
  const std::shared_ptr<Database> home =
      server_->FindDatabase(database.empty() ? "master" : database);
  if (home == nullptr) return nullptr;
  LoginRecord login;
  login.name = "sa";
  login.admin = true;
  login.default_database = home->name();
  LoginRequest request;
  request.user = "sa";
  request.database = home->name();
  request.spid = 51;
  return std::make_unique<Session>(server_, login, request, home);
}

Status SimEngine::Run(const std::string& database, const std::string& sql) {
  const std::unique_ptr<EngineSession> session = AdminSession(database);
  if (session == nullptr) return NoDatabase(database);
  ErrorSink sink;
  session->Batch(sql, sink);
  if (!sink.error) return Unit{};
  return Error(ErrorId::kSimulatorFailed)
      .With("number", std::to_string(sink.error->number))
      .With("message", sink.error->text)
      .With("line", std::to_string(sink.error->line));
}

Result<std::int64_t> SimEngine::CaptureNow(const std::string& database) {
  const std::shared_ptr<Database> found = server_->FindDatabase(database);
  if (found == nullptr) return NoDatabase(database);
  const ScanResult result = Capture(*server_, found, 500, 1'000'000);
  if (result.error != 0) {
    return Error(ErrorId::kSimulatorFailed)
        .With("number", std::to_string(result.error));
  }
  return result.transaction_count;
}

Result<std::int64_t> SimEngine::CaptureCycle(const std::string& database,
                                             std::int32_t transaction_count_max) {
  const std::shared_ptr<Database> found = server_->FindDatabase(database);
  if (found == nullptr) return NoDatabase(database);
  const ScanResult result = CaptureOnce(*server_, found, transaction_count_max);
  if (result.error != 0) {
    return Error(ErrorId::kSimulatorFailed)
        .With("number", std::to_string(result.error));
  }
  return result.transaction_count;
}

Status SimEngine::MoveLowWaterMark(const std::string& database,
                                   std::int64_t retention_minutes) {
  const std::shared_ptr<Database> found = server_->FindDatabase(database);
  if (found == nullptr) return NoDatabase(database);
  const std::optional<Lsn> mark = RetentionMark(*server_, found, retention_minutes);
  if (mark) sim::MoveLowWaterMark(*server_, found, *mark, std::nullopt);
  return Unit{};
}

Result<std::int64_t> SimEngine::DeleteBelowLowWaterMark(
    const std::string& database, std::optional<std::int64_t> row_count_max) {
  const std::shared_ptr<Database> found = server_->FindDatabase(database);
  if (found == nullptr) return NoDatabase(database);
  return sim::DeleteBelowLowWaterMark(*server_, found, row_count_max);
}

void SimEngine::RunDueJobs() {
  for (const auto& database : server_->Databases()) {
    sim::RunDueJobs(*server_, database);
  }
}

void SimEngine::AdvanceClock(std::int64_t duration_ms) {
  server_->AdvanceClock(duration_ms);
}
void SimEngine::SetClock(std::int64_t utc_us) { server_->SetClock(utc_us); }
std::int64_t SimEngine::NowUtcUs() { return server_->NowUtcUs(); }

Result<std::optional<Lsn>> SimEngine::MaxLsn(const std::string& database) {
  const std::shared_ptr<Database> found = server_->FindDatabase(database);
  if (found == nullptr) return NoDatabase(database);
  TRY_ASSIGN(std::unique_ptr<Connection> reader, found->NewReader());
  return sim::MaxLsn(*reader, *found, *found->catalog());
}

}  // namespace mssql_cdc::sim
