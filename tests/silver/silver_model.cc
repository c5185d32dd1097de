// Random lives of a source table and its bronze, with silver applied at random moments
// and stopped around any call of the lake, against the source's own record.
//
// Silver must equal the source at the LSN that bronze has everything up to, as soon as
// that is above what the newest snapshot saw: with key swaps and shifts, deletes and
// inserts of one key, whole and chunked snapshots that overlap with changes, gaps and
// new generations. A failure prints the seed and how to replay it; the last line is
// `N passed, N failed`.

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/text.h"
#include "cdc/cells.h"
#include "lake/delta_lake.h"
#include "lake/memory_lake.h"
#include "runtime/apply.h"
#include "runtime/faulty_lake_test.h"
#include "tests/silver/life.h"

namespace mssql_cdc::silver {
namespace {

constexpr int kFaultCountMax = 3;

Rows ReadSilver(lake::Lake& lake, const std::string& location) {
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
      if (!rows.emplace(id, row.Text("v").value().value_or("")).second) {
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
    config_.instances = {"dbo_t"};
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
    const Rows silver = ReadSilver(*inner_, config_.target_location);
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

// What 50 seeds must have met this often at least.
constexpr std::int64_t kKindCountMin = 5;
constexpr const char* kKinds[] = {"chunked snapshot",
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
                                  "rebuild",
                                  "stop around a lake call",
                                  "update",
                                  "wave",
                                  "whole snapshot"};

std::int64_t CountMissing(KindCounts& counts, std::int64_t seed_count) {
  std::int64_t missing = 0;
  for (const char* kind : kKinds) {
    if (seed_count < 50 || counts[kind] >= kKindCountMin) continue;
    std::printf("FAILED coverage: \"%s\" was met too seldom\n", kind);
    ++missing;
  }
  return missing;
}

bool RunSeed(std::uint64_t seed, const std::string& folder, std::int64_t delta_every,
             KindCounts& counts) {
  const std::string directory = folder + "/" + std::to_string(seed);
  const bool on_delta =
      delta_every != 0 && seed % static_cast<std::uint64_t>(delta_every) == 0;
  bool passed = true;
  try {
    Trial(seed, directory, on_delta, counts).Live();
  } catch (const Wrong& wrong) {
    passed = false;
    std::printf(
        "FAILED seed %llu\n  %s\n  replay: silver_model --first %llu --seeds 1 "
        "--delta-every %lld\n",
        static_cast<unsigned long long>(seed), wrong.text.c_str(),
        static_cast<unsigned long long>(seed), static_cast<long long>(delta_every));
    std::fflush(stdout);
  }
  std::filesystem::remove_all(directory);
  return passed;
}

}  // namespace
}  // namespace mssql_cdc::silver

int main(int argc, char** argv) {
  using namespace mssql_cdc;
  std::int64_t first = 1;
  std::int64_t seed_count = 50;
  std::int64_t delta_every = 10;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::optional<std::int64_t> value = ParseInt64(argv[i + 1]);
    if (!value) return 2;
    if (std::strcmp(argv[i], "--first") == 0) first = *value;
    if (std::strcmp(argv[i], "--seeds") == 0) seed_count = *value;
    if (std::strcmp(argv[i], "--delta-every") == 0) delta_every = *value;
  }
  const char* shared = "/dev/shm";
  const std::string folder =
      (::access(shared, W_OK) == 0 ? std::string(shared)
                                   : std::filesystem::temp_directory_path().string()) +
      "/mssql_cdc_silver_" + std::to_string(::getpid());
  silver::KindCounts counts;
  std::int64_t failed = 0;
  for (std::int64_t seed = first; seed < first + seed_count; ++seed) {
    failed +=
        !silver::RunSeed(static_cast<std::uint64_t>(seed), folder, delta_every, counts);
  }
  std::filesystem::remove_all(folder);
  failed += silver::CountMissing(counts, seed_count);
  for (const auto& [kind, count] : counts) {
    std::printf("%8lld  %s\n", static_cast<long long>(count), kind.c_str());
  }
  std::printf("%lld passed, %lld failed\n", static_cast<long long>(seed_count - failed),
              static_cast<long long>(failed));
  return failed == 0 ? 0 : 1;
}
