#include "tests/model/source.h"

#include <filesystem>

#include "net/pipe.h"
#include "runtime/faulty_lake_test.h"

namespace mssql_cdc::model {
namespace {

constexpr std::int64_t kBeginUtcUs = 1'795'161'600'000'000;

}  // namespace

Source::Source(const std::string& directory)
    : now_utc_us_(kBeginUtcUs), clock_(kBeginUtcUs), directory_(directory + "/server") {
  std::filesystem::create_directories(directory);
  Start();
  Sql("CREATE DATABASE life", "master");
  Sql("EXEC sys.sp_cdc_enable_db");
}

Source::~Source() = default;

void Source::Start() {
  sim::EngineOptions options;
  options.state_directory = directory_;
  options.start_utc_us = now_utc_us_;
  options.logins = {{"sa", Secret("Secret-1"), true, ""}};
  auto engine = sim::SimEngine::Open(options);
  if (!engine.ok()) throw Wrong{engine.error().Text()};
  engine_ = std::move(engine).value();
  sim::wire::ServerOptions wire;
  wire.listen = false;
  wire.tls_mode = sim::wire::TlsMode::kNotSupported;
  auto server = sim::wire::Server::Start(wire, engine_);
  if (!server.ok()) throw Wrong{server.error().Text()};
  server_ = std::move(server).value();
}

void Source::Stop() {
  now_utc_us_ = engine_->NowUtcUs();
  server_.reset();
  engine_.reset();
}

void Source::Backup(const std::string& backup) {
  Stop();
  std::filesystem::copy(directory_, backup, std::filesystem::copy_options::recursive);
  Start();
}

void Source::Restore(const std::string& backup) {
  Stop();
  std::filesystem::remove_all(directory_);
  std::filesystem::copy(backup, directory_, std::filesystem::copy_options::recursive);
  Start();
}

void Source::Sql(const std::string& text, const std::string& database) {
  const Status status = engine_->Run(database, text);
  if (!status.ok()) throw Wrong{text + ": " + status.error().Text()};
}

void Source::CaptureAll() {
  const auto captured = engine_->CaptureNow("life");
  if (!captured.ok()) throw Wrong{captured.error().Text()};
}

Status Source::RunOn(const runtime::StreamConfig& config, lake::Lake& lake,
                     const net::TransportFaults& faults, const std::string& database) {
  return With(lake, faults, database, [&](const runtime::StreamParts& parts) -> Status {
    auto stream = runtime::Stream::Open(config, parts);
    if (!stream.ok()) return std::move(stream).error();
    return stream.value()->Run();
  });
}

Status Source::With(lake::Lake& lake, const net::TransportFaults& faults,
                    const std::string& database,
                    const std::function<Status(const runtime::StreamParts&)>& call) {
  const std::unique_ptr<net::Dialer> dialer = MakeDialer(faults);
  runtime::ServerSessions sessions(Login(database), *dialer, clock_);
  return call({&sessions, &lake, &clock_, observer, 1});
}

std::unique_ptr<net::Dialer> Source::MakeDialer(const net::TransportFaults& faults) {
  return std::make_unique<net::InMemoryDialer>(
      [this, faults](const std::string&, std::uint16_t) {
        auto [client, server] = net::MakePipe();
        server_->Serve(std::move(server));
        return Result<std::unique_ptr<net::Transport>>(
            net::MakeFaulty(std::move(client), faults));
      });
}

sqlserver::ConnectOptions Source::Login(const std::string& database) {
  sqlserver::ConnectOptions connect;
  connect.host = "simulator";
  connect.database = database;
  connect.user = "sa";
  connect.password = Secret("Secret-1");
  connect.encrypt = sqlserver::Encrypt::kLoginOnly;
  return connect;
}

RunResult Source::Run(const runtime::StreamConfig& config, lake::MemoryLake& lake,
                      Dice& dice, bool with_fault, KindCounts& counts) {
  const bool cuts = with_fault && dice.Chance(1, 2);
  net::TransportFaults faults;
  if (cuts) faults.lost_after_read_bytes = 200 + dice.Below(20'000);
  runtime::FaultyLake faulty(lake);
  if (with_fault && !cuts) {
    (dice.Chance(1, 2) ? faulty.fail_before : faulty.fail_after) =
        static_cast<std::int64_t>(dice.Below(30));
  }
  RunResult result;
  result.status = RunOn(config, faulty, faults);
  if (result.status.ok()) return result;
  const ErrorId id = result.status.error().id();
  result.was_hit = with_fault && (id == ErrorId::kLakeFailed ||
                                  (cuts && id == ErrorId::kConnectionLost));
  if (result.was_hit) ++counts[cuts ? "cut connection" : "stop around a lake call"];
  return result;
}

}  // namespace mssql_cdc::model
