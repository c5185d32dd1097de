#include "cli/simulator_shell.h"

#include <optional>
#include <variant>

#include "base/text.h"

namespace mssql_cdc::cli {
namespace {

// Keeps the first error and lets everything else pass.
class FirstError final : public sim::ReplySink {
 public:
  bool Columns(const std::vector<sim::ResultColumn>&) override { return true; }
  bool Row(const std::vector<sim::Value>&) override { return true; }
  bool StatementDone(std::optional<std::uint64_t>, std::uint16_t) override {
    return true;
  }
  bool SendMessage(const sim::Message& message) override {
    if (message.severity > 10 && !error_) error_ = message;
    return true;
  }
  bool DatabaseChanged(const std::string&, const std::string&) override { return true; }
  bool TransactionBegan(std::uint64_t) override { return true; }
  bool TransactionEnded(std::uint64_t, bool) override { return true; }
  bool ReturnStatus(std::int32_t) override { return true; }
  bool ReturnValue(const std::string&, const sim::SqlType&,
                   const sim::Value&) override {
    return true;
  }

  const std::optional<sim::Message>& error() const { return error_; }

 private:
  std::optional<sim::Message> error_;
};

Error Refused(const sim::Message& message) {
  return Error(ErrorId::kSimulatorFailed)
      .With("number", std::to_string(message.number))
      .With("message", message.text)
      .With("line", std::to_string(message.line));
}

}  // namespace

std::vector<std::string> SplitAtGo(const std::string& script) {
  std::vector<std::string> batches;
  std::string batch;
  for (std::size_t begin = 0; begin < script.size();) {
    const std::size_t newline = script.find('\n', begin);
    const std::size_t end = newline == std::string::npos ? script.size() : newline;
    const std::string line = script.substr(begin, end - begin);
    begin = end + 1;
    if (!EqualsIgnoringAsciiCase(Trim(line), "go")) {
      batch += line + '\n';
      continue;
    }
    if (!Trim(batch).empty()) batches.push_back(batch);
    batch.clear();
  }
  if (!Trim(batch).empty()) batches.push_back(batch);
  return batches;
}

Result<SimulatorShell> SimulatorShell::Open(std::shared_ptr<sim::Engine> engine,
                                            const std::string& user,
                                            const std::string& password) {
  sim::LoginRequest request;
  request.user = user;
  request.password = password;
  request.application = "mssql-cdc";
  auto login = engine->Login(request);
  if (const auto* failure = std::get_if<sim::LoginFailure>(&login)) {
    return Refused(failure->message);
  }
  return SimulatorShell(
      std::move(engine),
      std::get<std::unique_ptr<sim::EngineSession>>(std::move(login)));
}

Status SimulatorShell::Run(const std::string& batch) {
  FirstError sink;
  session_->Batch(batch, sink);
  if (sink.error()) return Refused(*sink.error());
  return Unit{};
}

Status SimulatorShell::RunScript(const std::string& script) {
  for (const std::string& batch : SplitAtGo(script)) TRY(Run(batch));
  return Unit{};
}

}  // namespace mssql_cdc::cli
