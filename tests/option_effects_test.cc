// Each option where it changes what a run does: the same source and the same run with
// the option left out (or at another value) and with it. Options go in as texts, as a
// pipeline file gives them. tools/tidy_options.py holds the rows to the option table.

#include <atomic>
#include <thread>

#include "base/text.h"
#include "runtime/snapshot_calls.h"
#include "tests/source_fixture.h"

namespace mssql_cdc {
namespace {

using Options = std::map<std::string, std::string>;

// What a run told.
class Told final : public runtime::StreamObserver {
 public:
  std::function<void(int)> at_idle = [](int) {};
  std::int64_t range_count = 0;
  std::atomic<int> progress_count{0};
  int batch_count = 0;
  int retry_count = 0;
  std::vector<std::int64_t> waits_ms;

  void OnSnapshotStart(std::int64_t count) override { range_count = count; }
  void OnSnapshotProgress(const runtime::SnapshotProgress&) override {
    ++progress_count;
  }
  void OnBatchDone(const runtime::BatchSummary&) override { ++batch_count; }
  void OnRetry(const Error&, std::int64_t, std::int64_t) override { ++retry_count; }
  void OnIdle(const runtime::IdleSummary& summary) override {
    waits_ms.push_back(summary.wait_ms);
    at_idle(static_cast<int>(waits_ms.size()));
  }
};

constexpr const char* kLeftOut = "(left out)";

class OptionEffects : public SourceTest {
 public:
  using SourceTest::Commit;
  using SourceTest::directory_;
  using SourceTest::Each;
  using SourceTest::Enable;
  using SourceTest::lake_;
  using SourceTest::Rows;
  using SourceTest::Sql;

  static std::string NameOf(const Status& status) {
    return status.ok() ? "ok" : std::string(RuleOf(status.error().id()).name);
  }
  // What `options` and those that every run here has are read as.
  static Result<runtime::ParsedOptions> Parse(const Options& options,
                                              const std::string& checkpoint,
                                              runtime::OptionUse use) {
    Options all = {{"captureInstance", "dbo_t"},
                   {"target", "bronze"},
                   {"app_id", "app"},
                   {"checkpoint", checkpoint},
                   {"facts_table", "facts"},
                   {"trigger", "availableNow"},
                   {"numPartitions", "1"},
                   {"retries", "0"}};
    for (const auto& [name, value] : options) {
      if (value == kLeftOut) {
        all.erase(name);
      } else {
        all[name] = value;
      }
    }
    return runtime::ParseStreamOptions(
        all, {{"bronze", "bronze"}, {"facts", "facts"}, {"other", "other"}}, use);
  }
  // The name of the error that a run with `options` ends with, or "ok".
  std::string RunWith(const Options& options) {
    const auto parsed = Parse(options, checkpoint_, runtime::OptionUse::kStream);
    if (!parsed.ok()) return NameOf(parsed.error());
    told_ = std::make_unique<Told>();
    told_->at_idle = [this](int count) {
      if (count == 4) Sql("EXEC sys.sp_cdc_disable_db");  // Ends the run.
    };
    source_->observer = told_.get();
    config_ = parsed.value().config;
    return NameOf(source_->RunOn(config_, *lake_));
  }
  // The same of a snapshot by hand.
  std::string SnapshotWith(const Options& options) {
    const auto parsed =
        Parse(options, checkpoint_, runtime::OptionUse::kSnapshotByHand);
    if (!parsed.ok()) return NameOf(parsed.error());
    config_ = parsed.value().config;
    return NameOf(source_->With(
        *lake_, {}, "life", [&](const runtime::StreamParts& parts) -> Status {
          TRY(runtime::SnapshotCall::Make(config_, parts)->Take(false));
          return Unit{};
        }));
  }
  void ThreeCommits() {
    for (int i = 2; i < 5; ++i) {
      Commit("INSERT dbo.t VALUES (" + std::to_string(i) + ", N'x')");
    }
  }
  // One change is cleaned away before anything reads it, and one after it is there.
  void Lose(int id) {
    Commit("INSERT dbo.t VALUES (" + std::to_string(id) + ", N'lost')");
    Pass(20);
    Pass(20);
    Commit("INSERT dbo.t VALUES (" + std::to_string(id + 1) + ", N'kept')");
    Clean(10);
  }
  void LoseOne() {
    ThreeCommits();
    ASSERT_EQ(RunWith({}), "ok");
    Lose(7);
  }
  int CountOfSnapshotRows() {
    int count = 0;
    Each("bronze", [&](const cdc::RowView& row) {
      count += row.Integer("_operation").value() == 0 ? 1 : 0;
    });
    return count;
  }
  // Columns of the target as "id note ", the sink's own with them where `all`.
  std::string Columns(bool all) {
    std::string names;
    const auto state = lake_->State("bronze").value();
    for (const columns::Field& field : state->schema.fields) {
      if (all || !field.name.starts_with('_')) names += field.name + ' ';
    }
    return names;
  }
  std::string FirstCommitHour() {
    std::string hour;
    Each("bronze", [&](const cdc::RowView& row) {
      hour = IsoMillis(*row.Integer("_commit_ts").value()).substr(11, 2);
    });
    return hour;
  }
  // Lets a lock go that nobody times out on, once a run is under way.
  std::thread UnlockSoon(std::atomic<bool>& is_over) {
    return std::thread([this, &is_over, begun = source_->counters().messages.load()] {
      while (!is_over && source_->counters().messages.load() < begun + 4) {
        std::this_thread::yield();
      }
      Sql("EXEC sim.release_lock N'dbo.t'");
    });
  }

  const std::string checkpoint_ = directory_ + "/checkpoint";
  std::unique_ptr<Told> told_;
};

struct Effect {
  const char* option;
  const char* without;  // Another value, or kLeftOut; {} is the test's folder.
  const char* with;
  Options options;  // Of both runs.
  void (*before)(OptionEffects&);
  // What the run is judged by, from how it ended.
  std::string (*look)(OptionEffects&, const std::string&);
  const char* outcome_without;
  const char* outcome_with;
};

void Nothing(OptionEffects&) {}
void ThreeCommits(OptionEffects& test) { test.ThreeCommits(); }
void HoldLock(OptionEffects& test) { test.Sql("EXEC sim.hold_lock N'dbo.t'"); }
std::string Ending(OptionEffects&, const std::string& ending) { return ending; }
std::string RowCount(OptionEffects& test, const std::string&) {
  return std::to_string(test.Rows().size());
}
std::string BatchCount(OptionEffects& test, const std::string&) {
  return std::to_string(test.told_->batch_count);
}
std::string Ranges(OptionEffects& test, const std::string&) {
  return std::to_string(test.told_->range_count) + " ranges, " +
         std::to_string(test.Rows().size()) + " rows";
}
std::string Waits(OptionEffects& test, const std::string&) {
  std::string text;
  for (const std::int64_t wait : test.told_->waits_ms)
    text += std::to_string(wait) + ' ';
  return text;
}

std::string SnapshotRows(OptionEffects& test, const std::string& ending) {
  return ending + ", " + std::to_string(test.CountOfSnapshotRows());
}
std::string FirstLsn(OptionEffects& test, const std::string& ending) {
  std::string lsn;
  test.Each("bronze", [&](const cdc::RowView& row) {
    lsn = row.Text("_start_lsn").value().value_or("");
  });
  return ending + (lsn == "0x0000000000000000002A" ? ", as given" : ", the newest");
}

const Options kSnapshot = {{"bootstrap", "true"}};
const Options kContinuous = {{"trigger", "continuous"}};

// clang-format off
const Effect kEffects[] = {
      {"captureInstance", "dbo_t", "dbo_o", {},
       [](OptionEffects& test) {
         test.Sql("CREATE TABLE dbo.o (id int NOT NULL PRIMARY KEY, note nvarchar(9))");
         test.Enable("o", "dbo_o");
         test.Commit("INSERT dbo.o VALUES (5, N'o'), (6, N'o')");
       },
       RowCount, "0", "2"},
      {"columns", kLeftOut, "note STRING", {}, Nothing,
       [](OptionEffects& test, const std::string&) { return test.Columns(false); },
       "id note ", "note "},
      {"includeCommandId", kLeftOut, "false", {}, Nothing,
       [](OptionEffects& test, const std::string&) {
         const bool has = test.Columns(true).find("_command_id") != std::string::npos;
         return std::string(has ? "with" : "without");
       },
       "with", "without"},
      {"startingLsn", kLeftOut, "latest", {}, ThreeCommits, RowCount, "3", "0"},
      {"maxCommitsPerBatch", kLeftOut, "2", {}, ThreeCommits, BatchCount, "1", "2"},
      {"numPartitions", "1", "3", kSnapshot, ThreeCommits, Ranges, "1 ranges, 4 rows",
       "3 ranges, 4 rows"},
      {"arrowBatchSize", kLeftOut, "1", kSnapshot, ThreeCommits,
       [](OptionEffects& test, const std::string&) {
         return std::to_string(test.told_->progress_count.load());
       },
       "2", "5"},
      {"failOnDataLoss", kLeftOut, "false", {},
       [](OptionEffects& test) { test.LoseOne(); }, Ending, "DataLoss", "ok"},
      {"schemaChangePolicy", kLeftOut, "fail", {},
       [](OptionEffects& test) {
         ASSERT_EQ(test.RunWith({}), "ok");
         test.Sql("ALTER TABLE dbo.t ADD extra int NULL");
         test.Commit("INSERT dbo.t VALUES (2, N'b', 1)");
       },
       Ending, "ok", "SchemaChanged"},
      {"metricsPath", kLeftOut, "file://{}/metrics", {}, ThreeCommits,
       [](OptionEffects& test, const std::string&) {
         const bool made = std::filesystem::exists(test.directory_ + "/metrics/app");
         return std::string(made ? "made" : "none");
       },
       "none", "made"},
      {"snapshotKeys", kLeftOut, "[\"ID\"]",
       {{"bootstrap", "true"}, {"captureInstance", "dbo_h"}, {"numPartitions", "4"}},
       [](OptionEffects& test) {
         test.Sql("CREATE TABLE dbo.h (id int NULL, note nvarchar(9) NULL)");
         test.Enable("h", "dbo_h");
         test.Commit("INSERT dbo.h VALUES (1, N'a'), (2, N'b'), (NULL, N'n'), (9, N'c')");
       },
       Ranges, "1 ranges, 4 rows", "4 ranges, 4 rows"},
      {"isolationLevel", kLeftOut, "snapshot",
       {{"bootstrap", "true"}, {"lockTimeoutMs", "1"}, {"numPartitions", "4"}},
       [](OptionEffects& test) {
         test.Sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON");
         HoldLock(test);
       },
       Ending, "ServerBusy", "ok"},
      {"lockTimeoutMs", kLeftOut, "1", kSnapshot, HoldLock, Ending, "ok", "ServerBusy"},
      {"sourceTimeZone", kLeftOut, "Tokyo Standard Time", {}, ThreeCommits,
       [](OptionEffects& test, const std::string&) { return test.FirstCommitHour(); },
       "08", "23"},
      {"target", "bronze", "other", {}, ThreeCommits,
       [](OptionEffects& test, const std::string&) {
         return std::string(test.lake_->State("other").value() ? "other" : "none");
       },
       "none", "other"},
      {"app_id", "app", "b", {}, ThreeCommits,
       [](OptionEffects& test, const std::string&) {
         return std::string(test.lake_->LastTxn("bronze", "b").value() ? "b" : "other");
       },
       "other", "b"},
      {"checkpoint", "{}/checkpoint", "{}/elsewhere", {}, ThreeCommits,
       [](OptionEffects& test, const std::string&) {
         const bool made = std::filesystem::exists(test.directory_ + "/elsewhere/offsets");
         return std::string(made ? "elsewhere" : "none");
       },
       "none", "elsewhere"},
      {"facts_table", kLeftOut, "facts", {}, ThreeCommits,
       [](OptionEffects& test, const std::string&) {
         return std::string(test.lake_->State("facts").value() ? "facts" : "none");
       },
       "none", "facts"},
      {"bootstrap", kLeftOut, "true", {}, ThreeCommits, RowCount, "3", "4"},
      {"on_data_loss", kLeftOut, "resnapshot", {},
       [](OptionEffects& test) { test.LoseOne(); }, SnapshotRows, "DataLoss, 0", "ok, 6"},
      {"resnapshot_interval_days", kLeftOut, "0", {{"on_data_loss", "resnapshot"}},
       [](OptionEffects& test) {
         test.LoseOne();
         ASSERT_EQ(test.RunWith({{"on_data_loss", "resnapshot"}}), "ok");
         test.Lose(9);
       },
       SnapshotRows, "DataLoss, 6", "ok, 14"},
      {"snapshot_on_switch", kLeftOut, "true", {},
       [](OptionEffects& test) {
         test.ThreeCommits();
         ASSERT_EQ(test.RunWith({}), "ok");
         test.Sql("ALTER TABLE dbo.t ADD extra int NULL");
         test.Enable("t", "dbo_t_v2");
         test.Commit("INSERT dbo.t VALUES (5, N'x', 1)");
       },
       SnapshotRows, "ok, 0", "ok, 5"},
      {"snapshot", kLeftOut, "chunked", kSnapshot, ThreeCommits, SnapshotRows, "ok, 4",
       "ok, 0"},
      {"trigger", "availableNow", "once", {{"maxCommitsPerBatch", "1"}}, ThreeCommits,
       BatchCount, "4", "1"},
      {"pollFirstMs", kLeftOut, "3", kContinuous, Nothing, Waits, "10 20 40 80 ",
       "3 6 12 24 "},
      {"pollMaxMs", kLeftOut, "30", kContinuous, Nothing, Waits, "10 20 40 80 ",
       "10 20 30 30 "},
      {"retries", "0", "2", {},
       [](OptionEffects& test) {
         test.ThreeCommits();
         test.Sql("EXEC sim.fail_reads 1205, 2");
       },
       Ending, "ServerBusy", "ok"},
};
// Of a snapshot by hand.
const Effect kEffectsByHand[] = {
      {"snapshotLsn", kLeftOut, "0x0000000000000000002A", {}, ThreeCommits, FirstLsn,
       "ok, the newest", "ok, as given"},
      {"snapshotChunks", kLeftOut, "[[3, null, 2], [4, 4, 9]]", {}, ThreeCommits,
       SnapshotRows, "ok, 4", "ok, 2"},
};
// clang-format on

TEST_F(OptionEffects, EachChangesWhatASnapshotByHandDoes) {
  for (const Effect& effect : kEffectsByHand) {
    for (const bool with : {false, true}) {
      SCOPED_TRACE(std::string(effect.option) + (with ? " with" : " without"));
      Fresh();
      effect.before(*this);
      const std::string ending =
          SnapshotWith({{effect.option, with ? effect.with : effect.without}});
      EXPECT_EQ(effect.look(*this, ending),
                with ? effect.outcome_with : effect.outcome_without);
    }
  }
}

TEST_F(OptionEffects, EachChangesWhatARunDoes) {
  for (const Effect& effect : kEffects) {
    for (const bool with : {false, true}) {
      SCOPED_TRACE(std::string(effect.option) + (with ? " with" : " without"));
      Fresh();
      effect.before(*this);
      std::string value = with ? effect.with : effect.without;
      if (const std::size_t folder = value.find("{}"); folder != std::string::npos) {
        value.replace(folder, 2, directory_);
      }
      Options options = effect.options;
      options[effect.option] = value;
      std::atomic<bool> is_over{false};
      std::thread unlock;
      if (!with && effect.before == HoldLock) unlock = UnlockSoon(is_over);
      const std::string ending = RunWith(options);
      is_over = true;
      if (unlock.joinable()) unlock.join();
      EXPECT_EQ(effect.look(*this, ending),
                with ? effect.outcome_with : effect.outcome_without)
          << ending;
    }
  }
}

// Of each option's errors the id, the option that is named and what it takes are in
// src/cdc/source_options_test.cc and src/runtime/stream_config_test.cc; here those that
// only a source can tell.
TEST_F(OptionEffects, WhatASourceRefuses) {
  const struct {
    const char* option;
    const char* value;
    const char* error;
  } kRows[] = {
      {"captureInstance", "dbo_tt", "CaptureInstanceNotFound"},
      {"columns", "nowhere INT", "OptionInvalid"},
      {"columns", "id BOOLEAN", "OptionInvalid"},
      {"columns", "note INT", "ValueNotConvertible"},
      {"snapshotKeys", "[\"nowhere\"]", "OptionInvalid"},
      {"sourceTimeZone", "Nowhere Standard Time", "OptionInvalid"},
      {"startingLsn", "0x01", "DataLoss"},
      {"isolationLevel", "snapshot", "OptionInvalid"},
      {"facts_table", "nowhere", "OptionInvalid"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(std::string(row.option) + " = " + row.value);
    Fresh();
    ThreeCommits();
    Options options = {{row.option, row.value}};
    const std::string_view option = row.option;
    if (option == "isolationLevel" || option == "snapshotKeys") {
      options["bootstrap"] = "true";
    }
    EXPECT_EQ(RunWith(options), row.error);
  }
}

// The read of the changes waits for no lock of the source table, whatever it says.
TEST_F(OptionEffects, ALockOnTheSourceDoesNotHinderItsChanges) {
  ThreeCommits();
  Sql("EXEC sim.hold_lock N'dbo.t'");
  EXPECT_EQ(RunWith({{"lockTimeoutMs", "0"}}), "ok");
  EXPECT_EQ(Rows().size(), 3u);
}

// Nor does what is asked of the keys before they are read.
TEST_F(OptionEffects, ChunksAreOpenedBesideALockAtIsolationSnapshot) {
  ThreeCommits();
  Sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON");
  Sql("EXEC sim.hold_lock N'dbo.t'");
  Options options = {
      {"bootstrap", "true"}, {"snapshot", "chunked"}, {"lockTimeoutMs", "1"}};
  EXPECT_EQ(RunWith(options), "ServerBusy");
  options["isolationLevel"] = "snapshot";
  EXPECT_EQ(RunWith(options), "ok");
}

// One that times out is tried again, and lost nothing.
TEST_F(OptionEffects, ALockThatGoesAwayEndsInOneSnapshot) {
  ThreeCommits();
  Sql("EXEC sim.hold_lock N'dbo.t'");
  EXPECT_EQ(RunWith({{"bootstrap", "true"}, {"lockTimeoutMs", "1"}}), "ServerBusy");
  EXPECT_EQ(Rows().size(), 0u);
  Sql("EXEC sim.release_lock N'dbo.t'");
  EXPECT_EQ(RunWith({{"bootstrap", "true"}, {"lockTimeoutMs", "1"}}), "ok");
  EXPECT_EQ(Rows().size(), 4u);
}

}  // namespace
}  // namespace mssql_cdc
