#include "driver_session.h"

#include <string>
#include <utility>

#include "extension/batch_text.h"
#include "raised.h"

namespace mssql_cdc::extension {
namespace {

// What an exception of the driver means here.
Error ErrorOf(nb::object exception) {
  const auto [kind, text] = nb::cast<std::pair<std::string, std::string>>(
      nb::module_::import_("mssql_cdc._drivers").attr("told")(exception));
  ErrorId id = ErrorId::kServerError;
  if (kind == "lost") id = ErrorId::kConnectionLost;
  if (kind == "busy") id = ErrorId::kServerBusy;
  if (kind == "denied") id = ErrorId::kPermissionDenied;
  if (kind == "login") id = ErrorId::kLoginFailed;
  return Error(id).With("message", text);
}

// Runs `call` with the GIL; what it raises is an error.
template <typename F>
auto Asked(F call) -> Result<decltype(call())> {
  const nb::gil_scoped_acquire gil;
  try {
    return call();
  } catch (nb::python_error& raised) {
    return ErrorOf(ExceptionOf(raised));
  } catch (const nb::cast_error&) {
    return Error(ErrorId::kInternalError)
        .With("reason", "a driver's answer is of no known form");
  }
}

// Dropped with the GIL, wherever that is.
using Kept = std::shared_ptr<nb::object>;
Kept Keep(nb::object object) {
  return Kept(new nb::object(std::move(object)), [](nb::object* last) {
    const nb::gil_scoped_acquire gil;
    delete last;
  });
}

class DriverReply final : public sqlserver::Reply {
 public:
  DriverReply(Kept driver, bool& clean) : driver_(std::move(driver)), clean_(clean) {
    clean_ = false;
  }

  Result<std::optional<columns::SchemaPtr>> NextResult() override {
    rows_.reset();
    nb::object keeps;
    TRY_ASSIGN(ArrowArrayStream* const stream, Asked([&]() -> ArrowArrayStream* {
                 const nb::object reader = driver_->attr("next_result")();
                 if (reader.is_none()) return nullptr;
                 return StreamOf(reader, keeps);
               }));
    if (stream == nullptr) {
      clean_ = true;
      return std::optional<columns::SchemaPtr>();
    }
    Result<std::unique_ptr<columns::BatchReader>> rows = columns::ImportStream(stream);
    {
      const nb::gil_scoped_acquire gil;
      keeps.reset();
    }
    if (!rows.ok()) return rows.error();
    rows_ = std::move(rows).value();
    return std::optional<columns::SchemaPtr>(rows_->schema());
  }

  Result<std::optional<columns::RecordBatch>> NextBatch() override {
    Result<std::optional<columns::RecordBatch>> batch = rows_->Next();
    if (batch.ok()) return batch;
    // The stream carries a text only; the driver kept what was raised.
    TRY_ASSIGN(const std::optional<Error> told, Asked([&]() -> std::optional<Error> {
                 nb::object failure = driver_->attr("failure");
                 if (failure.is_none()) return std::nullopt;
                 return ErrorOf(std::move(failure));
               }));
    if (told) return *told;
    return batch;
  }

  Status Finish() override {
    rows_.reset();
    TRY(Asked([&] {
      driver_->attr("finish")();
      return Unit{};
    }));
    clean_ = true;
    return Unit{};
  }

 private:
  Kept driver_;
  bool& clean_;
  std::unique_ptr<columns::BatchReader> rows_;
};

class DriverSession final : public sqlserver::Session {
 public:
  DriverSession(Kept driver, sqlserver::ServerFacts facts)
      : driver_(std::move(driver)), facts_(std::move(facts)) {}
  ~DriverSession() override { Close(); }

  Result<std::unique_ptr<sqlserver::Reply>> Execute(
      const sqlserver::Request& request,
      const sqlserver::BatchLimits& limits) override {
    ++request_count_;
    const std::string text = BatchText(request);
    clean_ = false;
    TRY(Asked([&] {
      driver_->attr("execute")(text, limits.row_count_max);
      return Unit{};
    }));
    return std::unique_ptr<sqlserver::Reply>(
        std::make_unique<DriverReply>(driver_, clean_));
  }
  // A driver is asked for its next batch, and that it gives; then a reader stops.
  void Cancel() override {}
  bool clean() const override { return clean_; }
  const sqlserver::ServerFacts& facts() const override { return facts_; }
  std::int64_t request_count() const override { return request_count_; }
  void Close() override {
    if (!driver_) return;
    (void)Asked([&] {
      driver_->attr("close")();
      return Unit{};
    });
    driver_.reset();
  }

 private:
  Kept driver_;
  sqlserver::ServerFacts facts_;
  bool clean_ = true;
  std::int64_t request_count_ = 0;
};

}  // namespace

Result<std::unique_ptr<sqlserver::Session>> OpenDriverSession(nb::handle connect) {
  Kept driver;
  sqlserver::ServerFacts facts;
  TRY(Asked([&] {
    driver = Keep(connect());
    const auto [version, database] =
        nb::cast<std::pair<std::vector<int>, std::string>>(driver->attr("server")());
    facts.product = "Microsoft SQL Server";
    facts.major_version = static_cast<std::uint8_t>(version.at(0));
    facts.minor_version = static_cast<std::uint8_t>(version.at(1));
    facts.build = static_cast<std::uint16_t>(version.at(2));
    facts.database = database;
    facts.encrypted = true;
    return Unit{};
  }));
  return std::unique_ptr<sqlserver::Session>(
      std::make_unique<DriverSession>(std::move(driver), std::move(facts)));
}

}  // namespace mssql_cdc::extension
