// Random histories of several tables, read by streams with random options that are
// stopped at random moments, against the generator's own record.
//
// Goal: every change of every commit is in bronze once, in order, whole commits in one
// batch, from the instance that covers it, whatever happens: DML of all shapes, DDL, a
// second capture instance, the first one's end, cleanup, idleness, jumps of the clock,
// stops around every call of the lake, cut connections. Method: a seed draws a history
// and a reader's life; the end is compared. A failure prints the seed and the command
// that replays it. The last lines say how often each kind was drawn, which must be some
// times each, and `N passed, N failed`.

#include <algorithm>

#include "tests/model/bronze.h"
#include "tests/model/history.h"
#include "tests/model/source.h"

namespace mssql_cdc::model {
namespace {

struct Reader {
  runtime::StreamConfig config;
  std::size_t table = 0;
  std::map<std::int64_t, Row> snapshot;
  std::int64_t definition_count = 0;
};

class Life {
 public:
  Life(std::uint64_t seed, const std::string& directory, KindCounts& counts)
      : dice_(seed),
        counts_(counts),
        directory_(directory),
        source_(directory),
        history_(dice_.Next(), 1 + dice_.Below(3), counts) {}

  // Throws Wrong.
  void Live() {
    for (const std::string& sql : history_.Create()) source_.Sql(sql);
    for (const Table& table : history_.tables()) {
      source_.Sql(
          "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = "
          "N'" +
          table.name + "', @role_name = NULL");
    }
    source_.CaptureAll();
    last_made_us_ = source_.engine().NowUtcUs();
    for (std::size_t i = 0; i < history_.tables().size(); ++i) MakeReader(i);
    for (Reader& reader : readers_) {
      if (reader.config.bootstrap) CatchUp(reader);
    }
    const std::uint64_t round_count = 4 + dice_.Below(6);
    for (std::uint64_t round = 0; round < round_count; ++round) Round();
    Finish();
    for (const Reader& reader : readers_) Check(reader);
    if (dice_.Chance(1, 2)) Lose(readers_[dice_.Below(readers_.size())]);
  }

 private:
  void MakeReader(std::size_t table);
  void Round();
  void Transact(std::uint64_t count);
  void Define(std::size_t table);
  void TurnInstances(std::size_t table);
  void PassTime();
  void CleanUp();
  bool RunOnce(Reader& reader, bool with_fault);
  void CatchUp(Reader& reader);
  void Finish();
  void Check(const Reader& reader);
  void Lose(Reader& reader);

  Dice dice_;
  KindCounts& counts_;
  std::string directory_;
  Source source_;
  History history_;
  lake::MemoryLake lake_;
  std::vector<Reader> readers_;
  std::int64_t last_made_us_ = 0;
};

void Life::MakeReader(std::size_t table) {
  Reader reader;
  reader.table = table;
  runtime::StreamConfig& config = reader.config;
  const std::string name = history_.table(table).name;
  config.capture_instance = dice_.Chance(1, 2) ? "dbo_" + name : "DBO_" + name;
  config.target = config.target_location = "bronze_" + name;
  config.facts_table = config.facts_location = "facts";
  config.app_id = "app-" + name;
  config.checkpoint = directory_ + "/checkpoint_" + name;
  config.bootstrap = dice_.Chance(1, 2);
  config.trigger.kind = dice_.Chance(1, 4) ? runtime::Trigger::Kind::kOnce
                                           : runtime::Trigger::Kind::kAvailableNow;
  if (dice_.Chance(2, 3)) config.max_commits_per_batch = 1 + dice_.Below(5);
  config.num_partitions = 1 + dice_.Below(3);
  config.arrow_batch_size = dice_.Chance(1, 2) ? 1 + dice_.Below(4) : 10'000;
  config.include_command_id = !dice_.Chance(1, 5);
  config.fail_on_data_loss = dice_.Chance(1, 2);
  if (dice_.Chance(1, 4)) {
    config.schema_change_policy = cdc::SchemaChangePolicy::kFail;
  }
  config.retry_count_max = static_cast<std::int64_t>(dice_.Below(2)) * 2;
  if (config.bootstrap) reader.snapshot = history_.table(table).rows;
  ++counts_[config.bootstrap ? "bootstrap" : "start at the earliest"];
  readers_.push_back(std::move(reader));
}

void Life::Round() {
  Transact(dice_.Below(7));
  const std::size_t table = dice_.Below(history_.tables().size());
  if (dice_.Chance(1, 3)) Define(table);
  if (dice_.Chance(1, 3)) TurnInstances(table);
  Transact(dice_.Below(3));
  PassTime();
  if (dice_.Chance(1, 5)) {
    const auto captured = source_.engine().CaptureCycle(
        "life", static_cast<std::int32_t>(1 + dice_.Below(4)));
    if (!captured.ok()) throw Wrong{captured.error().Text()};
    ++counts_["capture of a part"];
  } else if (!dice_.Chance(1, 8)) {
    source_.CaptureAll();
  }
  for (Reader& reader : readers_) {
    if (dice_.Chance(1, 4)) continue;
    (void)RunOnce(reader, dice_.Chance(1, 2));
  }
  if (dice_.Chance(1, 6)) CleanUp();
}

void Life::Transact(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) source_.Sql(history_.Transaction());
}

void Life::Define(std::size_t table) {
  const std::optional<std::string> sql = history_.Definition(table);
  if (!sql) return;
  source_.Sql(*sql);
  ++readers_[table].definition_count;
}

void Life::TurnInstances(std::size_t table) {
  if (const std::optional<std::string> sql = history_.SecondInstance(table)) {
    source_.Sql(*sql);
    last_made_us_ = source_.engine().NowUtcUs();
    return;
  }
  // Whoever disables an instance must have seen that it is read.
  source_.CaptureAll();
  CatchUp(readers_[table]);
  if (const auto sql = history_.DropOlder(table)) source_.Sql(*sql);
}

void Life::PassTime() {
  switch (dice_.Below(5)) {
    case 0:
      ++counts_["idle entries"];
      for (int i = 0; i < 3; ++i) {
        source_.engine().AdvanceClock(301'000);
        source_.CaptureAll();
      }
      break;
    case 1:
      ++counts_["clock set back"];
      // Not to before an instance was made: instances are ordered by that.
      source_.engine().SetClock(std::max(
          last_made_us_, source_.engine().NowUtcUs() -
                             static_cast<std::int64_t>(dice_.Below(3'600'000'000))));
      break;
    case 2:
      ++counts_["clock set forward"];
      source_.engine().AdvanceClock(static_cast<std::int64_t>(dice_.Below(86'400'000)));
      break;
    default:
      source_.engine().AdvanceClock(static_cast<std::int64_t>(dice_.Below(2'000)));
  }
}

// Behind the readers: everything captured was read.
void Life::CleanUp() {
  source_.CaptureAll();
  for (Reader& reader : readers_) CatchUp(reader);
  ++counts_["cleanup behind the readers"];
  const Status moved = source_.engine().MoveLowWaterMark(
      "life", static_cast<std::int64_t>(dice_.Below(30)));
  if (!moved.ok()) throw Wrong{moved.error().Text()};
  if (dice_.Chance(1, 3)) return;
  std::optional<std::int64_t> row_count;
  if (dice_.Chance(1, 2)) row_count = 1 + dice_.Below(5);
  const auto deleted = source_.engine().DeleteBelowLowWaterMark("life", row_count);
  if (!deleted.ok()) throw Wrong{deleted.error().Text()};
}

// Whether the run came to its own end. What may end it otherwise: a fault of ours, and
// a change of the schema, which the next run goes past.
bool Life::RunOnce(Reader& reader, bool with_fault) {
  const RunResult result =
      source_.Run(reader.config, lake_, dice_, with_fault, counts_);
  if (result.status.ok()) return true;
  const Error& error = result.status.error();
  if (result.was_hit) return false;
  if (error.id() == ErrorId::kSchemaChanged) {
    // Reading on under kFail takes one run with kClassify, as the reference says.
    if (error.Fact("policy")) {
      ++counts_["DDL under policy fail"];
      runtime::StreamConfig once = reader.config;
      once.schema_change_policy = cdc::SchemaChangePolicy::kClassify;
      (void)source_.Run(once, lake_, dice_, false, counts_);
      return false;
    }
    ++counts_["restart for new columns"];
    // An older instance's columns are altered only when the capture gets there.
    source_.CaptureAll();
    return false;
  }
  throw Wrong{reader.config.app_id + ": " + error.Text()};
}

void Life::CatchUp(Reader& reader) {
  for (int attempt = 0; attempt < 40; ++attempt) {
    Reader all = reader;
    all.config.trigger.kind = runtime::Trigger::Kind::kAvailableNow;
    if (RunOnce(all, attempt < 2 && dice_.Chance(1, 3))) return;
  }
  throw Wrong{reader.config.app_id + " does not come to an end"};
}

void Life::Finish() {
  // Entries above the last DDL, so that it is inside a batch.
  for (std::size_t i = 0; i < 3 * history_.tables().size(); ++i) Transact(1);
  source_.Sql(history_.Touch());
  source_.CaptureAll();
  for (Reader& reader : readers_) CatchUp(reader);
}

void Life::Check(const Reader& reader) {
  const Table& table = history_.table(reader.table);
  Bronze bronze = ReadBronze(lake_, reader.config);
  CheckSnapshot(bronze, reader.snapshot);
  CheckCommits(bronze, table, 0);
  CheckFacts(ReadFacts(lake_, reader.config), bronze, table, reader.definition_count);
  counts_["commits compared"] += static_cast<std::int64_t>(table.commits.size());
}

// The end of a seed: cleanup passes the position. With failOnDataLoss the stream stops
// and writes nothing, without it what is lost is told, and everything else is there.
void Life::Lose(Reader& reader) {
  const Table& table = history_.table(reader.table);
  const std::size_t before = CountShown(table, 0, table.commits.size());
  std::string mark;
  for (int i = 0; i < 6; ++i) {
    Transact(2);
    source_.Sql(history_.Touch());
    source_.CaptureAll();
    if (i == 3) mark = source_.engine().MaxLsn("life").value()->Hex();
  }
  source_.Sql("EXEC sim.cleanup_move @low_water_mark = " + mark);
  if (dice_.Chance(1, 2)) {
    (void)source_.engine().DeleteBelowLowWaterMark("life", std::nullopt);
  }
  const RunResult result = source_.Run(reader.config, lake_, dice_, false, counts_);
  Bronze bronze = ReadBronze(lake_, reader.config);
  if (reader.config.fail_on_data_loss) {
    ++counts_["loss that stops"];
    if (result.status.ok() || result.status.error().id() != ErrorId::kDataLoss) {
      throw Wrong{"a gap did not stop the stream"};
    }
    if (bronze.commits.size() != before) throw Wrong{"rows came after a gap"};
    return;
  }
  ++counts_["loss that is skipped"];
  CatchUp(reader);
  bronze = ReadBronze(lake_, reader.config);
  CheckSkip(bronze, ReadFacts(lake_, reader.config), table, before);
}

constexpr const char* kKinds[] = {"DDL under policy fail",
                                  "added column",
                                  "bootstrap",
                                  "capture of a part",
                                  "cleanup behind the readers",
                                  "clock set back",
                                  "clock set forward",
                                  "commits compared",
                                  "cut connection",
                                  "delete",
                                  "delete and insert of one key",
                                  "delete of several rows",
                                  "dropped column",
                                  "dropped instance",
                                  "idle entries",
                                  "insert",
                                  "insert of several rows",
                                  "key update",
                                  "key update of several rows",
                                  "loss that is skipped",
                                  "loss that stops",
                                  "narrower integer",
                                  "rollback",
                                  "second instance",
                                  "start at the earliest",
                                  "stop around a lake call",
                                  "transaction over several tables",
                                  "update",
                                  "update of several rows",
                                  "wider text"};

}  // namespace
}  // namespace mssql_cdc::model

int main(int argc, char** argv) {
  using namespace mssql_cdc;
  tests::SeedTest test;
  test.program = "model_test";
  test.kinds = model::kKinds;
  test.live = [](std::uint64_t seed, const std::string& directory,
                 tests::KindCounts& counts) {
    model::Life(seed, directory, counts).Live();
  };
  return tests::RunSeeds(test, argc, argv);
}
