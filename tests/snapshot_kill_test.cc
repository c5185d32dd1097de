// Goal: a snapshot that is stopped on either side of any call of the lake, in any run,
// and rerun, leaves what an undisturbed one leaves: the same rows, plans, facts and
// generation. Method: a story of steps (runs of the stream, of backfills, of the
// writer), each repeated until it gets through; call n of the lake fails before or
// after its work, for every n.

#include "runtime/files.h"
#include "tests/snapshot_fixture.h"

namespace mssql_cdc {
namespace {

// What is left on disk, but for clocks and chance.
struct Left {
  std::multiset<std::string> bronze;
  std::multiset<std::string> facts;
  std::multiset<std::string> plans;
  std::string generation;
  bool operator==(const Left&) const = default;
};

class KillTest : public SnapshotTest {
 protected:
  using Step = std::function<Status(lake::Lake&)>;

  Step Stream() {
    return [this](lake::Lake& lake) { return source_->RunOn(config_, lake); };
  }
  Step Wave(std::int64_t wave_count) {
    return [this, wave_count](lake::Lake& lake) -> Status {
      // A rerun must not go further than the undisturbed run. Two chunks are a wave.
      if (CountOf("snapshot_chunk") >= 2 * wave_count) return Unit{};
      options_.max_waves = wave_count;
      const auto status = Backfill(lake);
      if (!status.ok()) return status.error();
      return Unit{};
    };
  }
  Step AllWaves() {
    return [this](lake::Lake& lake) -> Status {
      options_.max_waves.reset();
      const auto status = Backfill(lake);
      if (!status.ok()) return status.error();
      EXPECT_EQ(status.value().state, runtime::BackfillStatus::State::kDone);
      return Unit{};
    };
  }
  // The writer is not what is stopped.
  Step Writes(std::function<void()> write) {
    return [write = std::move(write)](lake::Lake&) -> Status {
      write();
      return Unit{};
    };
  }

  // A full snapshot of an attempt that died is opened again, by the reference.
  Left LeftBehind() {
    Left left;
    Each("bronze", [&](const cdc::RowView& row) {
      std::string line;
      for (const char* column : {"_start_lsn", "_snapshot", "note"}) {
        line += row.Text(column).value().value_or("-") + " ";
      }
      for (const char* column : {"_operation", "_chunk", "_batch_id", "id"}) {
        const auto value = row.Integer(column).value();
        line += (value ? std::to_string(*value) : "-") + " ";
      }
      left.bronze.insert(line);
    });
    for (const std::string& event : Events()) {
      if (event.find("snapshot_open") != std::string::npos &&
          event.find("\"full\"") != std::string::npos) {
        continue;
      }
      left.facts.insert(event);
    }
    for (const std::string& plan : Plans()) left.plans.insert(plan);
    const auto file =
        runtime::ReadFileIfThere(config_.checkpoint + "/_mssql_cdc_generation.json");
    if (file.ok() && file.value()) {
      auto json = nlohmann::json::parse(*file.value());
      json.erase("at");
      left.generation = json.dump();
    }
    return left;
  }

  // A `bootstrap` row that was written by a rerun which found the rows has no count.
  static std::multiset<std::string> WithoutCounts(
      const std::multiset<std::string>& facts) {
    std::multiset<std::string> lines;
    for (std::string line : facts) {
      for (const char* event : {" bootstrap ", " resnapshot "}) {
        const std::size_t at = line.find(event);
        if (at == std::string::npos || line.find("{") != std::string::npos) continue;
        line.resize(at + std::string(event).size());
      }
      lines.insert(line);
    }
    return lines;
  }

  void Try(const std::function<void()>& begin,
           const std::function<std::vector<Step>()>& story, const char* name) {
    begin();
    for (const Step& step : story()) {
      const Status status = step(*lake_);
      ASSERT_TRUE(status.ok()) << status.error().Text();
    }
    const Left whole = LeftBehind();
    std::int64_t stop_count = 0;
    std::int64_t call_count = 0;
    for (const bool after : {false, true}) {
      for (std::int64_t n = 0;; ++n) {
        SCOPED_TRACE(std::string(name) + ", stopped " + (after ? "after" : "before") +
                     " call " + std::to_string(n));
        begin();
        runtime::FaultyLake lake(*lake_);
        (after ? lake.fail_after : lake.fail_before) = n;
        bool stopped = false;
        for (const Step& step : story()) {
          Status status = step(lake);
          for (int again = 0; !status.ok() && again < 2; ++again) {
            ASSERT_EQ(status.error().id(), ErrorId::kLakeFailed)
                << status.error().Text();
            stopped = true;
            status = step(lake);
          }
          ASSERT_TRUE(status.ok()) << status.error().Text();
        }
        if (!stopped) {
          call_count = n;
          break;
        }
        ++stop_count;
        const Left left = LeftBehind();
        EXPECT_EQ(left.bronze, whole.bronze);
        EXPECT_EQ(WithoutCounts(left.facts), WithoutCounts(whole.facts));
        EXPECT_EQ(left.plans, whole.plans);
        EXPECT_EQ(left.generation, whole.generation);
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(stop_count, 20);
    std::printf("%s: %lld calls of the lake, stopped %lld times\n", name,
                static_cast<long long>(call_count), static_cast<long long>(stop_count));
  }
};

TEST_F(KillTest, AFullSnapshot) {
  Try(
      [&] {
        Chunked(12);
        config_.snapshot = pipeline::SnapshotMode::kFull;
      },
      [&] { return std::vector<Step>{Stream()}; }, "full");
}

TEST_F(KillTest, AChunkedSnapshot) {
  Try([&] { Chunked(30); },
      [&] {
        return std::vector<Step>{Stream(),
                                 Wave(1),
                                 Writes([&] {
                                   Put(3, "x");
                                   Put(100, "new");
                                   Remove(20);
                                   Pass(1);
                                 }),
                                 Stream(),
                                 AllWaves(),
                                 Stream()};
      },
      "chunked");
}

// Its key is not an integer, and one wave has no rows.
TEST_F(KillTest, AChunkedSnapshotOfSeeks) {
  Try(
      [&] {
        Chunked(30);
        config_.snapshot_keys = {"note"};
      },
      [&] {
        return std::vector<Step>{Stream(), Wave(1), Writes([&] {
                                   for (int i = 10; i < 20; ++i) {
                                     if (rows_.contains(i)) Remove(i);
                                   }
                                   Pass(1);
                                 }),
                                 AllWaves(), Stream()};
      },
      "chunked by seeks");
}

TEST_F(KillTest, ARecoveryInBothModes) {
  for (const auto mode :
       {pipeline::SnapshotMode::kFull, pipeline::SnapshotMode::kChunked}) {
    const bool is_chunked = mode == pipeline::SnapshotMode::kChunked;
    Try(
        [&] {
          Chunked(12);
          config_.snapshot = mode;
          config_.on_data_loss = runtime::OnDataLoss::kResnapshot;
          RunWell();
          options_.max_waves.reset();
          if (is_chunked) BackfillToTheEnd();
          Put(1, "lost");
          Pass(100);
          Put(3, "kept");
          Pass(1);
          Clean(10);
        },
        [&] {
          std::vector<Step> steps = {Stream()};
          if (is_chunked) steps.push_back(AllWaves());
          steps.push_back(Writes([&] {
            Put(4, "on");
            Pass(1);
          }));
          steps.push_back(Stream());
          return steps;
        },
        is_chunked ? "re-snapshot, chunked" : "re-snapshot, full");
  }
}

TEST_F(KillTest, AChunkedSnapshotAfterASwitch) {
  Try(
      [&] {
        Chunked(12);
        config_.snapshot_on_switch = true;
        RunWell();
        options_.max_waves.reset();
        BackfillToTheEnd();
        Enable("t", "dbo_t_v2");
        Pass(1);
        Put(1, "x");
        Pass(1);
      },
      [&] { return std::vector<Step>{Stream(), AllWaves(), Stream()}; },
      "switch, chunked");
}

TEST_F(KillTest, AFullSnapshotAfterASwitch) {
  Try(
      [&] {
        Chunked(12);
        config_.snapshot = pipeline::SnapshotMode::kFull;
        config_.snapshot_on_switch = true;
        RunWell();
        Enable("t", "dbo_t_v2");
        Pass(1);
        Put(1, "x");
        Pass(1);
      },
      [&] { return std::vector<Step>{Stream(), Stream()}; }, "switch, full");
}

TEST_F(KillTest, ASeedAndANewerOne) {
  std::string as_of;
  const auto seed = [&](bool reseed) {
    return [this, &as_of, reseed](lake::Lake& lake) -> Status {
      const auto status = Call(
          [&](auto& call) { return call.Seed({"copy", as_of, false, reseed}); }, lake);
      if (!status.ok()) return status.error();
      return Unit{};
    };
  };
  const auto copied = [&] {
    return Writes([&] {
      as_of = NowText();
      lake_->Drop("copy");
      Copy("copy");
      Pass(5);
      Put(4, "after the copy " + as_of);
      Remove(5);
      Put(5, "again");
      Pass(1);
    });
  };
  Try(
      [&] {
        Chunked(12);
        config_.snapshot = pipeline::SnapshotMode::kFull;
      },
      [&] {
        return std::vector<Step>{copied(), seed(false), Stream(),
                                 copied(), seed(true),  Stream()};
      },
      "seed");
}

}  // namespace
}  // namespace mssql_cdc
