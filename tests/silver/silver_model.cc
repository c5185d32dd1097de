// Random lives of a source table and its bronze, with silver applied at random moments
// and stopped around any call of the lake, against the source's own record.
//
// Silver must equal the source at the LSN that bronze has everything up to, as soon as
// that is above what the newest snapshot saw: with key swaps and shifts, deletes and
// inserts of one key, whole and chunked snapshots that overlap with changes, gaps and
// new generations, switches of the capture instance that bring a column. A failure
// prints the seed and how to replay it; the last line is `N passed, N failed`.

#include <memory>

#include "base/clock.h"
#include "cdc/cells.h"
#include "lake/delta_lake.h"
#include "lake/memory_lake.h"
#include "runtime/apply.h"
#include "runtime/faulty_lake_test.h"
#include "tests/silver/life.h"

namespace mssql_cdc::silver {
namespace {

constexpr int kFaultCountMax = 3;

Rows ReadSilver(lake::Lake& lake, const std::string& location, const Life& life) {
  Rows rows;
  const auto state = lake.State(location);
  if (!state.ok()) throw Wrong{state.error().Text()};
  if (!state.value()) return rows;
  auto reader = lake.Read(location, {});
  if (!reader.ok()) throw Wrong{reader.error().Text()};
  while (true) {
    const auto batch = reader.value()->Next();
    if (!batch.ok()) throw Wrong{batch.error().Text()};
    if (!batch.value()) return rows;
    for (std::int64_t i = 0; i < batch.value()->row_count; ++i) {
      const cdc::RowView row(*batch.value(), i);
      const std::int64_t id = row.Integer("id").value().value_or(-1);
      if (row.Text("r").value() != RegionOf(id)) {
        throw Wrong{"row " + std::to_string(id) + " has a cell of another"};
      }
      const std::string v = row.Text("v").value().value_or("");
      const auto w = row.Text("w");
      const auto lsn = row.Text("_start_lsn").value();
      life.CheckW(std::stoll(lsn.value_or("0x0").substr(2), nullptr, 16), v,
                  w.ok() ? w.value() : std::nullopt);
      if (!rows.emplace(id, v).second) {
        throw Wrong{"key " + std::to_string(id) + " is there twice"};
      }
    }
  }
}

class Trial {
 public:
  Trial(std::uint64_t seed, const std::string& directory, bool on_delta,
        KindCounts& counts)
      : dice_(seed),
        counts_(counts),
        clock_(1'796'000'000'000'000),
        faulty_(Inner(on_delta)) {
    const std::string root = on_delta ? directory : "memory";
    config_.bronze = "bronze";
    config_.bronze_location = root + "/bronze";
    config_.target = "silver";
    config_.target_location = root + "/silver";
    config_.control_location = root + "/control";
    config_.facts_table = "facts";
    config_.facts_location = root + "/facts";
    config_.plans_location = root + "/bronze_snapshot_plans";
    config_.instances = Instances();
    config_.keys = {"id"};
    if (dice_.Chance(1, 3)) config_.keys = {"id", "r"};
    config_.deletion_vectors = dice_.Chance(1, 2);
    // Several passes over a window of a dozen keys: without any, a part has 16 kB.
    if (dice_.Chance(1, 3)) config_.key_size_bytes_max = 17'500;
  }

  void Live() {
    Life life(dice_.Next(), *inner_, config_, counts_);
    const std::uint64_t step_count = 10 + dice_.Below(30);
    for (std::uint64_t i = 0; i < step_count; ++i) {
      life.Step();
      if (dice_.Chance(1, 3)) ApplyAndCompare(life);
    }
    life.Finish();
    ApplyAndCompare(life);
    if (!life.knows_all()) throw Wrong{"the life has no end to compare with"};
    ApplyAgain();
  }

 private:
  lake::Lake& Inner(bool on_delta) {
    if (on_delta) {
      inner_ = std::make_unique<lake::DeltaLake>();
    } else {
      inner_ = std::make_unique<lake::MemoryLake>();
    }
    return *inner_;
  }

  Result<runtime::ApplyOutcome> ApplyOnce() {
    return runtime::Apply(config_, {faulty_, clock_, dice_});
  }

  void ApplyAndCompare(const Life& life) {
    for (int i = 0; i < kFaultCountMax && dice_.Chance(1, 2); ++i) {
      faulty_.call_count = 0;
      const auto call = static_cast<std::int64_t>(dice_.Below(25));
      (dice_.Chance(1, 2) ? faulty_.fail_before : faulty_.fail_after) = call;
      const bool was_hit = !ApplyOnce().ok();
      faulty_.fail_before = faulty_.fail_after = -1;
      if (was_hit) ++counts_["stop around a lake call"];
    }
    const auto outcome = ApplyOnce();
    if (!outcome.ok()) throw Wrong{outcome.error().Text()};
    if (outcome.value().rebuilt) ++counts_["rebuild"];
    Compare(life);
    ++counts_["comparison"];
  }

  void Compare(const Life& life) {
    const Rows silver = ReadSilver(*inner_, config_.target_location, life);
    const Rows& source = life.rows();
    for (const auto& [id, v] : source) {
      if (!life.Knows(id)) continue;
      const auto found = silver.find(id);
      if (found != silver.end() && found->second == v) continue;
      throw Wrong{"at " + LsnText(life.head()) + " key " + std::to_string(id) +
                  " has " + (found == silver.end() ? "no row" : found->second) +
                  " instead of " + v};
    }
    for (const auto& [id, v] : silver) {
      if (life.Knows(id) && !source.contains(id)) {
        throw Wrong{"at " + LsnText(life.head()) + " key " + std::to_string(id) +
                    " is there and should not be"};
      }
    }
  }

  void ApplyAgain() {
    const auto version = [&](const std::string& location) {
      return inner_->State(location).value()->version;
    };
    const std::int64_t silver = version(config_.target_location);
    const std::int64_t control = version(config_.control_location);
    const auto outcome = ApplyOnce();
    if (!outcome.ok()) throw Wrong{outcome.error().Text()};
    if (version(config_.target_location) != silver ||
        version(config_.control_location) != control) {
      throw Wrong{"an apply with nothing to do made a commit"};
    }
  }

  Dice dice_;
  KindCounts& counts_;
  ManualClock clock_;
  std::unique_ptr<lake::Lake> inner_;
  runtime::FaultyLake faulty_;
  runtime::SilverConfig config_;
};

constexpr const char* kKinds[] = {"chunked snapshot",
                                  "chunked snapshot after a switch",
                                  "chunked snapshot complete",
                                  "chunked snapshot superseded",
                                  "comparison",
                                  "deferred key update",
                                  "delete",
                                  "delete and insert of one key",
                                  "gap",
                                  "insert",
                                  "key shift",
                                  "key swap",
                                  "key update",
                                  "new generation, chunked",
                                  "new generation, whole",
                                  "rebuild",
                                  "stop around a lake call",
                                  "switch of the capture instance",
                                  "switch read by the stream",
                                  "update",
                                  "wave",
                                  "whole snapshot",
                                  "whole snapshot after a switch"};

}  // namespace
}  // namespace mssql_cdc::silver

int main(int argc, char** argv) {
  using namespace mssql_cdc;
  tests::SeedTest test;
  test.program = "silver_model";
  test.kinds = silver::kKinds;
  // Every so many seeds live on Delta tables.
  test.options = {{"--delta-every", 10}};
  test.live = [&](std::uint64_t seed, const std::string& directory,
                  tests::KindCounts& counts) {
    const auto delta_every =
        static_cast<std::uint64_t>(test.options.at("--delta-every"));
    const bool on_delta = delta_every != 0 && seed % delta_every == 0;
    silver::Trial(seed, directory, on_delta, counts).Live();
  };
  return tests::RunSeeds(test, argc, argv);
}
