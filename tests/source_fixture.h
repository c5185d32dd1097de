// A captured table on the simulator, a stream of it over TDS into a lake in memory, and
// their comparison: what the source tests share.

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "cdc/cells.h"
#include "runtime/faulty_lake_test.h"
#include "tests/model/source.h"

namespace mssql_cdc {

using Lines = std::vector<std::string>;

class Warnings final : public runtime::StreamObserver {
 public:
  Lines texts;
  std::int64_t retry_count = 0;
  void OnWarning(const std::string& text) override { texts.push_back(text); }
  void OnRetry(const Error&, std::int64_t, std::int64_t) override { ++retry_count; }
};

// Does something each time a continuous run has nothing to do.
class IdleHook final : public runtime::StreamObserver {
 public:
  std::function<void(int)> at_idle;
  int count = 0;
  void OnIdle(const runtime::IdleSummary&) override { at_idle(++count); }
};

class SourceTest : public testing::Test {
 protected:
  SourceTest()
      : directory_(testing::TempDir() + "mssql_cdc_source_" +
                   std::to_string(::getpid())) {
    Fresh();
  }
  ~SourceTest() override { std::filesystem::remove_all(directory_); }

  // A table t (id, note) with one row, captured as `instance`.
  void Fresh(const std::string& instance = "dbo_t") {
    source_.reset();
    std::filesystem::remove_all(directory_);
    source_ = std::make_unique<model::Source>(directory_);
    source_->observer = &warnings_;
    warnings_ = {};
    lake_ = std::make_unique<lake::MemoryLake>();
    Sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, note nvarchar(40) NULL)");
    Sql("INSERT dbo.t VALUES (1, N'a')");
    Enable("t", instance);
    config_ = {};
    config_.capture_instance = instance;
    config_.target = config_.target_location = "bronze";
    config_.facts_table = config_.facts_location = "facts";
    config_.app_id = "app";
    config_.checkpoint = directory_ + "/checkpoint";
    config_.trigger.kind = runtime::Trigger::Kind::kAvailableNow;
    config_.num_partitions = 1;
    config_.retry_count_max = 0;
  }
  void Sql(const std::string& text) { source_->Sql(text); }
  void Enable(const std::string& table, const std::string& instance) {
    Sql("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'" +
        table + "', @role_name = NULL, @capture_instance = N'" + instance + "'");
    source_->CaptureAll();
  }
  void Disable(const std::string& instance) {
    Sql("EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N't', "
        "@capture_instance = N'" +
        instance + "'");
  }
  // One transaction, captured.
  void Commit(const std::string& statements) {
    Sql("BEGIN TRAN; " + statements + "; COMMIT TRAN");
    source_->engine().AdvanceClock(1000);
    source_->CaptureAll();
  }
  void Pass(std::int64_t minutes) {
    source_->engine().AdvanceClock(minutes * 60'000);
    source_->CaptureAll();
  }
  void Clean(std::int64_t retention_minutes) {
    ASSERT_TRUE(source_->engine().MoveLowWaterMark("life", retention_minutes).ok());
    ASSERT_TRUE(source_->engine().DeleteBelowLowWaterMark("life", {}).ok());
  }

  Status Run() { return source_->RunOn(config_, *lake_); }
  void RunWell() {
    const Status status = Run();
    ASSERT_TRUE(status.ok()) << status.error().Text();
  }
  void RunInto(ErrorId id, const char* fact = nullptr, const char* value = nullptr) {
    const Lines before = Rows();
    const Status status = Run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(), id) << status.error().Text();
    if (fact != nullptr) {
      EXPECT_EQ(status.error().Fact(fact), value) << status.error().Text();
    }
    if (config_.trigger.kind == runtime::Trigger::Kind::kContinuous) return;
    EXPECT_EQ(Rows(), before);
  }

  // "operation id note", in the order that bronze's columns give.
  Lines Rows(const std::function<std::string(const cdc::RowView&)>& more = {}) {
    std::vector<std::pair<std::string, std::string>> keyed;
    Each("bronze", [&](const cdc::RowView& row) {
      const auto number = [&](const char* name) {
        const auto value = row.Integer(name).value();
        return value ? std::to_string(*value) : std::string("-");
      };
      std::string order = row.Text("_start_lsn").value().value_or("");
      order += std::string(9 - number("_command_id").size(), ' ') +
               number("_command_id") + row.Text("_seqval").value().value_or("") +
               number("_operation");
      keyed.emplace_back(order, number("_operation") + " " + number("id") + " " +
                                    row.Text("note").value().value_or("NULL") +
                                    (more ? " " + more(row) : ""));
    });
    std::ranges::stable_sort(keyed, {}, [](const auto& pair) { return pair.first; });
    Lines lines;
    for (auto& [key, line] : keyed) lines.push_back(std::move(line));
    return lines;
  }
  // Facts as "event: detail", batches as "batch: rows".
  Lines Facts() {
    Lines lines;
    Each("facts", [&](const cdc::RowView& row) {
      const auto event = row.Text("event").value();
      const auto rows = row.Integer("rows").value();
      lines.push_back(event ? *event + ": " + row.Text("detail").value().value_or("")
                            : "batch: " + std::to_string(rows.value_or(-1)));
    });
    return lines;
  }
  void Each(const char* table, const std::function<void(const cdc::RowView&)>& use) {
    auto reader = lake_->Read(table, {});
    while (reader.ok()) {
      auto batch = reader.value()->Next();
      ASSERT_TRUE(batch.ok());
      if (!batch.value()) return;
      for (std::int64_t i = 0; i < batch.value()->row_count; ++i) {
        use(cdc::RowView(*batch.value(), i));
      }
    }
  }
  bool Warned(const std::string& part) const {
    return std::ranges::any_of(warnings_.texts, [&](const std::string& text) {
      return text.find(part) != std::string::npos;
    });
  }

  std::string directory_;
  std::unique_ptr<model::Source> source_;
  std::unique_ptr<lake::MemoryLake> lake_;
  runtime::StreamConfig config_;
  Warnings warnings_;
};

}  // namespace mssql_cdc
