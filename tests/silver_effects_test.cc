// Each option of silver where it changes what a stream leaves behind: the same source
// and the same run with another value. Options go in as texts, as a pipeline file gives
// them. tools/tidy_options.py holds the rows to the option table.

#include <atomic>
#include <thread>

#include "base/text.h"
#include "runtime/serialized_lake.h"
#include "runtime/silver_keeper.h"
#include "tests/source_fixture.h"

namespace mssql_cdc {
namespace {

using Options = std::map<std::string, std::string>;

constexpr const char* kLeftOut = "(left out)";

class Applies final : public runtime::SilverObserver {
 public:
  std::atomic<int> count{0};
  void OnApplyDone(const runtime::ApplyOutcome&) override { ++count; }
};

class SilverEffects : public SourceTest {
 public:
  using SourceTest::Commit;
  using SourceTest::Each;
  using SourceTest::lake_;
  using SourceTest::Pass;

  // How a stream with silver ends: the error's name, or "ok".
  std::string RunWith(const Options& options) {
    Options all = {{"captureInstance", config_.capture_instance},
                   {"target", "bronze"},
                   {"app_id", "app"},
                   {"checkpoint", directory_ + "/checkpoint"},
                   {"facts_table", "facts"},
                   {"trigger", "availableNow"},
                   {"numPartitions", "1"},
                   {"pollFirstMs", "1"},
                   {"retries", "0"},
                   {"silver", "silver"},
                   {"control_table", "control"}};
    for (const auto& [name, value] : options) {
      if (value == kLeftOut) {
        all.erase(name);
      } else {
        all[name] = value;
      }
    }
    runtime::Catalog catalog;
    for (const char* table : {"bronze", "facts", "silver", "control", "other"}) {
      catalog[table] = table;
    }
    const auto parsed = runtime::ParseStreamOptions(all, catalog);
    if (!parsed.ok()) return NameOf(parsed.error());
    const runtime::StreamConfig& config = parsed.value().config;
    runtime::SerializedLake lake(*lake_);
    idle_ = {};
    applies_.count = 0;
    const Status status =
        source_->With(lake, {}, "life", [&](runtime::StreamParts parts) -> Status {
          runtime::SilverKeeper keeper(config, {.lake = lake,
                                                .sessions = *parts.sessions,
                                                .clock = *parts.clock,
                                                .inner = idle_,
                                                .told = applies_});
          parts.observer = &keeper;
          TRY_ASSIGN(const auto stream, runtime::Stream::Open(config, parts));
          idle_.at_idle = [&](int count) { AtIdle(count, config, *stream); };
          keeper.Start();
          const Status ran = stream->Run();
          TRY(keeper.Finish());
          return ran;
        });
    return NameOf(status);
  }
  std::string Exists(const char* table) {
    return lake_->State(table).value() ? "there" : "none";
  }
  std::string FinalizedMinute() {
    std::string minute;
    Each("control", [&](const cdc::RowView& row) {
      const auto until = row.Integer("finalized_until").value();
      if (until) minute = IsoMillis(*until).substr(14, 2);
    });
    return minute;
  }
  std::string HasVectors() {
    const auto state = lake_->State("silver").value();
    return state->properties.contains(lake::kDeletionVectorsProperty) ? "with"
                                                                      : "without";
  }
  std::string AppliedWhen() const {
    return applies_.count >= 3 ? "after each batch" : "at the end";
  }
  void Heap() {
    Sql("CREATE TABLE dbo.h (id int NULL, note nvarchar(9) NULL)");
    Enable("h", "dbo_h");
    Commit("INSERT dbo.h VALUES (1, N'a')");
    config_.capture_instance = "dbo_h";
  }

 private:
  static std::string NameOf(const Status& status) {
    return status.ok() ? "ok" : std::string(RuleOf(status.error().id()).name);
  }
  // Three batches, each awaited in silver where applies do not wait.
  void AtIdle(int count, const runtime::StreamConfig& config, runtime::Stream& stream) {
    if (count > 3) return stream.Stop();
    if (count > 1 && config.silver_interval_ms == 0) {
      while (applies_.count < count - 1) std::this_thread::yield();
    }
    Commit("INSERT dbo.t VALUES (" + std::to_string(10 + count) + ", N'x')");
  }

  IdleHook idle_;
  Applies applies_;
};

struct Effect {
  const char* option;
  const char* without;  // Another value, or kLeftOut.
  const char* with;
  Options options;  // Of both runs.
  void (*before)(SilverEffects&);
  // What the run is judged by, from how it ended.
  std::string (*look)(SilverEffects&, const std::string&);
  const char* outcome_without;
  const char* outcome_with;
};

void OneCommit(SilverEffects& test) {
  test.Pass(7);
  test.Commit("INSERT dbo.t VALUES (2, N'b')");
}
std::string Ending(SilverEffects&, const std::string& ending) { return ending; }

// clang-format off
const Effect kEffects[] = {
      {"silver", kLeftOut, "other", {}, OneCommit,
       [](SilverEffects& test, const std::string&) { return test.Exists("other"); },
       "none", "there"},
      {"control_table", "control", "other", {}, OneCommit,
       [](SilverEffects& test, const std::string&) { return test.Exists("other"); },
       "none", "there"},
      {"keys", kLeftOut, "id", {}, [](SilverEffects& test) { test.Heap(); }, Ending,
       "SilverKeyInvalid", "ok"},
      {"granularity", kLeftOut, "minute", {}, OneCommit,
       [](SilverEffects& test, const std::string&) { return test.FinalizedMinute(); },
       "00", "07"},
      {"deletionVectors", kLeftOut, "false", {}, OneCommit,
       [](SilverEffects& test, const std::string&) { return test.HasVectors(); },
       "with", "without"},
      {"silverIntervalMs", "3600000", "0", {{"trigger", "continuous"}}, OneCommit,
       [](SilverEffects& test, const std::string&) { return test.AppliedWhen(); },
       "at the end", "after each batch"},
};
// clang-format on

class EachOption : public SilverEffects, public testing::WithParamInterface<Effect> {};

TEST_P(EachOption, ChangesWhatAStreamLeavesBehind) {
  const Effect& effect = GetParam();
  for (const bool with : {false, true}) {
    SCOPED_TRACE(with ? "with" : "without");
    SilverEffects& test = *this;
    Fresh();
    effect.before(test);
    Options options = effect.options;
    options[effect.option] = with ? effect.with : effect.without;
    const std::string ending = RunWith(options);
    EXPECT_EQ(effect.look(test, ending),
              with ? effect.outcome_with : effect.outcome_without)
        << ending;
  }
}

INSTANTIATE_TEST_SUITE_P(Silver, EachOption, testing::ValuesIn(kEffects),
                         [](const auto& test) { return test.param.option; });

}  // namespace
}  // namespace mssql_cdc
