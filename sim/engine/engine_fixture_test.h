// An engine on a manual clock in a directory of its own, and T-SQL in, text out.

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "sim/engine/engine.h"
#include "sim/engine/stored_table.h"

namespace mssql_cdc::sim {

inline constexpr std::int64_t kStartUs = 1'780'000'000'000'000;

// Collects a reply as text: a row is its cells joined by '|', NULL is "NULL".
class TextSink final : public ReplySink {
 public:
  bool Columns(const std::vector<ResultColumn>& columns) override {
    types_.clear();
    names.clear();
    for (const ResultColumn& column : columns) {
      types_.push_back(column.type);
      names.push_back(column.name);
    }
    return true;
  }
  bool Row(const std::vector<Value>& values) override {
    std::string line;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) line += '|';
      line += values[i].IsNull()
                  ? "NULL"
                  : KeyText(values[i].variant_type.value_or(types_[i]), values[i]);
    }
    rows.push_back(line);
    return true;
  }
  bool StatementDone(std::optional<std::uint64_t> count, std::uint16_t) override {
    if (count) row_count = *count;
    return true;
  }
  bool SendMessage(const Message& message) override {
    if (message.severity > 10) errors.push_back(message);
    return true;
  }
  bool DatabaseChanged(const std::string&, const std::string&) override { return true; }
  bool TransactionBegan(std::uint64_t) override { return true; }
  bool TransactionEnded(std::uint64_t, bool) override { return true; }
  bool ReturnStatus(std::int32_t) override { return true; }
  bool ReturnValue(const std::string&, const SqlType&, const Value&) override {
    return true;
  }

  std::vector<std::string> names;
  std::vector<std::string> rows;
  std::vector<Message> errors;
  std::uint64_t row_count = 0;

 private:
  std::vector<SqlType> types_;
};

class EngineTest : public testing::Test {
 protected:
  EngineTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "simXXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    Open();
  }
  ~EngineTest() override {
    session_ = nullptr;
    engine_ = nullptr;
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  EngineOptions Options() const {
    EngineOptions options;
    options.state_directory = directory_;
    options.seed = 7;
    options.start_utc_us = kStartUs;
    options.default_database = "shop";
    options.logins.push_back({"sa", Secret("Sa-1"), true, ""});
    return options;
  }
  void Open() {
    EngineOptions options = Options();
    if (adjust_) adjust_(options);
    auto opened = SimEngine::Open(std::move(options));
    ASSERT_TRUE(opened.ok()) << opened.error().Text();
    engine_ = opened.value();
    session_ = engine_->AdminSession("shop");
  }
  void Reopen() {
    session_ = nullptr;
    engine_ = nullptr;
    Open();
  }
  void ReopenWith(std::function<void(EngineOptions&)> adjust) {
    adjust_ = std::move(adjust);
    Reopen();
  }

  // Rows of the last result; fails the test on an error.
  std::vector<std::string> Run(const std::string& sql) { return RunOn(*session_, sql); }
  static std::vector<std::string> RunOn(EngineSession& session,
                                        const std::string& sql) {
    TextSink sink;
    session.Batch(sql, sink);
    for (const Message& error : sink.errors) {
      ADD_FAILURE() << error.number << ": " << error.text << "\nin: " << sql;
    }
    return sink.rows;
  }
  // The first error's number; 0: none.
  std::int32_t ErrorOf(const std::string& sql) { return ErrorOn(*session_, sql); }
  static std::int32_t ErrorOn(EngineSession& session, const std::string& sql) {
    TextSink sink;
    session.Batch(sql, sink);
    return sink.errors.empty() ? 0 : sink.errors[0].number;
  }
  std::string One(const std::string& sql) {
    const std::vector<std::string> rows = Run(sql);
    return rows.size() == 1 ? rows[0] : std::to_string(rows.size()) + " rows";
  }
  void EnableCdc() { Run("EXEC sys.sp_cdc_enable_db"); }
  void Track(const std::string& table) {
    Run("EXEC sys.sp_cdc_enable_table N'dbo', N'" + table + "', @role_name = NULL");
    Capture();
  }
  void Capture() { ASSERT_TRUE(engine_->CaptureNow("shop").ok()); }
  // A login of its own with a user in shop.
  std::unique_ptr<EngineSession> LoginAs(const std::string& name,
                                         bool read_only = false) {
    LoginRequest request;
    request.read_only_intent = read_only;
    request.user = name;
    request.password = "Pw-1";
    request.database = "shop";
    auto login = engine_->Login(request);
    if (auto* session = std::get_if<std::unique_ptr<EngineSession>>(&login)) {
      return std::move(*session);
    }
    ADD_FAILURE() << std::get<LoginFailure>(login).message.text;
    return nullptr;
  }

  std::string directory_;
  std::function<void(EngineOptions&)> adjust_;
  std::shared_ptr<SimEngine> engine_;
  std::unique_ptr<EngineSession> session_;
};

}  // namespace mssql_cdc::sim
