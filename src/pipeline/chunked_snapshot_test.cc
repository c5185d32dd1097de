#include "pipeline/chunked_snapshot.h"

#include <gtest/gtest.h>

#include "pipeline/seed.h"

namespace mssql_cdc::pipeline {
namespace {

cdc::Lsn LsnOf(const char* text) { return cdc::Lsn::Parse(text).value(); }
const cdc::Lsn kS = LsnOf("0x0000002A000001000091");

Key Integer(std::int64_t value) { return {Int128{value}}; }

// The texts as the existing package wrote them: existing-package-0.8.0, dump/.
TEST(ChunkTexts, AreThoseOfTheExistingPackage) {
  ChunkedOpen open;
  open.detail.generation = 0;
  open.detail.switch_batch_id = 3;
  open.keys = {"order_id"};
  open.extent = IntegerExtent{0, 205, 31};
  const DetailTexts opened = OpenTexts(open);
  EXPECT_EQ(opened.detail,
            R"({"mode": "chunked", "kind": "bootstrap", "generation": 0, )"
            R"("lost_from_ts": null, "lost_to_ts": null, "switch_batch_id": 3})");
  EXPECT_EQ(opened.whole,
            R"({"mode": "chunked", "kind": "bootstrap", "generation": 0, )"
            R"("lost_from_ts": null, "lost_to_ts": null, "switch_batch_id": 3, )"
            R"("keys": ["order_id"], )"
            R"("plan": {"kind": "int", "lo": 0, "hi": 205, "rows": 31}})");
  const ChunkPlan plan{8,
                       {{std::nullopt, Integer(8)},
                        {Integer(8), Integer(16)},
                        {Integer(16), Integer(24)},
                        {Integer(24), Integer(206)}}};
  const DetailTexts planned = PlanTexts(kS, open, plan);
  EXPECT_EQ(planned.detail,
            R"({"snapshot": "0x0000002A000001000091", "kind": "int", )"
            R"("keys": ["order_id"], "chunk_rows": 8, "chunk_count": 4})");
  EXPECT_EQ(planned.whole,
            R"({"snapshot": "0x0000002A000001000091", "kind": "int", )"
            R"("keys": ["order_id"], "chunk_rows": 8, "chunks": [[null, 8], [8, 16], )"
            R"([16, 24], [24, 206]], "chunk_count": 4})");
  const DetailTexts chunk = ChunkTexts(kS, 0, {0, plan.chunks[0], false});
  EXPECT_EQ(chunk.detail,
            R"({"snapshot": "0x0000002A000001000091", "wave": 0, "chunk": 0, )"
            R"("last": false})");
  EXPECT_EQ(chunk.whole,
            R"({"snapshot": "0x0000002A000001000091", "wave": 0, "chunk": 0, )"
            R"("lo": null, "hi": 8, "last": false})");
}

TEST(ChunkTexts, ACompositeKeysBoundsAreLists) {
  ChunkedOpen open;
  open.keys = {"order_id", "line"};
  open.extent = SeekExtent{Key{Int128{7}, Int128{2}}};
  EXPECT_NE(OpenTexts(open).whole.find(R"("plan": {"kind": "keyset", "max": [7, 2]}})"),
            std::string::npos);
  open.extent = SeekExtent{};
  EXPECT_NE(OpenTexts(open).whole.find(R"("plan": {"kind": "keyset", "max": null}})"),
            std::string::npos);
}

TEST(ChunkTexts, AWaveIsReadBackAsItWasWritten) {
  WaveRecord record;
  record.txn_app_id = WaveTxn("a", kS);
  record.wave = 4;
  record.stamp = LsnOf("A1");
  record.attempt = "87176e58a185442da8f09c03d3611d9b";
  DoneChunk first;
  first.chunk.range.hi = Key{std::string("x"), KeyValue()};
  first.rows = 7;
  first.high_lsn = LsnOf("A2");
  first.read_seconds = 0.5;
  first.read_mb = 0.25;
  DoneChunk second;
  second.chunk.chunk = 1;
  second.chunk.is_last = true;
  second.chunk.range.lo = Key{Int128{-1}, 2.5};
  record.chunks = {first, second};
  const std::optional<WaveRecord> read = ParseWave(WaveText(record), 2);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->txn_app_id, "a#snap.0x0000002A000001000091");
  EXPECT_EQ(read->wave, 4);
  EXPECT_EQ(read->chunks, record.chunks);
  EXPECT_EQ(SnapshotOfWave(WaveText(record)), (WaveSnapshot{kS, std::nullopt}));
  record.capture_instance = "dbo_t";
  EXPECT_EQ(SnapshotOfWave(WaveText(record)), (WaveSnapshot{kS, "dbo_t"}));
  EXPECT_EQ(ParseWave(WaveText(record), 2)->capture_instance, "dbo_t");
  for (const char* other : {"", "{}", R"({"snapshot": "dbo_t", "lsn": "0x10"})",
                            R"({"backfill": "a#snap.0x10", "wave": 0})"}) {
    EXPECT_FALSE(ParseWave(other, 2).has_value()) << other;
  }
}

SnapshotEvent Event(const char* event, std::string detail, const char* lsn = "91",
                    std::optional<std::int64_t> rows = 0) {
  SnapshotEvent made{
      event,        "a",  LsnOf(("0x0000002A0000010000" + std::string(lsn)).c_str()),
      std::nullopt, rows, std::move(detail)};
  made.min_lsn = made.lsn;
  made.duration_ms = 2000;
  return made;
}

// The rows of a snapshot of four chunks in waves of two, as far as `steps` goes: open,
// plan, wave 0, wave 1, completion; with `notes` one more wave is in the plans table.
struct Recorded {
  std::vector<SnapshotEvent> events;
  std::vector<PlansRow> rows;
};
Recorded Upto(int steps, bool notes = false) {
  Recorded recorded;
  ChunkedOpen open;
  open.keys = {"id"};
  open.extent = IntegerExtent{0, 39, 40};
  const DetailTexts opened = OpenTexts(open);
  recorded.events.push_back(Event("snapshot_open", opened.detail));
  recorded.rows.push_back({"snapshot_open", opened.whole});
  ChunkPlan plan{10, {}};
  for (std::int64_t i = 0; i < 4; ++i) {
    plan.chunks.push_back(
        {i == 0 ? std::optional<Key>() : Integer(10 * i), Integer(10 * i + 10)});
  }
  if (steps >= 1) {
    const DetailTexts planned = PlanTexts(kS, open, plan);
    recorded.events.push_back(Event("snapshot_plan", planned.detail));
    recorded.rows.push_back({"snapshot_plan", planned.whole});
  }
  for (int wave = 0; wave < 2; ++wave) {
    const bool is_done = steps >= 2 + wave;
    const bool is_noted = is_done || (notes && steps == 1 + wave);
    for (const Chunk& chunk : TakeChunks(plan, 2 * wave, 2)) {
      const DetailTexts texts = ChunkTexts(kS, wave, chunk);
      if (is_noted) recorded.rows.push_back({"snapshot_chunk", texts.whole});
      if (is_done) {
        recorded.events.push_back(
            Event("snapshot_chunk", texts.detail, wave == 0 ? "A1" : "B1", 10));
      }
    }
  }
  if (steps >= 4) recorded.events.push_back(Event("bootstrap", "{}"));
  return recorded;
}

ChunkedState StateOf(const Recorded& recorded) {
  const std::optional<OpenedSnapshot> opened = NewestChunked(recorded.events, "a");
  EXPECT_TRUE(opened.has_value());
  const Result<ChunkedState> state =
      ReadChunkedState(*opened, recorded.events, recorded.rows, "t_snapshot_plans");
  EXPECT_TRUE(state.ok()) << state.error().Text();
  return state.value();
}

TEST(NextStep, EveryStopLeadsToTheStepThatIsMissing) {
  EXPECT_EQ(NextStep(StateOf(Upto(0))), ChunkedStep(MakePlan{}));
  EXPECT_EQ(NextStep(StateOf(Upto(1))), ChunkedStep(ReadWave{0, {}}));
  const ChunkedState one = StateOf(Upto(2));
  EXPECT_EQ(NextStep(one), ChunkedStep(ReadWave{1, {}}));
  EXPECT_EQ(one.next_chunk, 2);
  EXPECT_EQ(one.row_count, 20);
  EXPECT_EQ(one.last_wave_chunk_count, 2);
  EXPECT_EQ(NextStep(StateOf(Upto(3))), ChunkedStep(WriteCompletion{}));
  EXPECT_EQ(NextStep(StateOf(Upto(4))), ChunkedStep(NothingLeft{}));
}

// After a stop between plans table and facts: exactly those chunks again.
TEST(NextStep, AWaveThatWasNotedIsReadAsItWas) {
  const ChunkedState state = StateOf(Upto(2, true));
  const ChunkedStep step = NextStep(state);
  ASSERT_TRUE(std::holds_alternative<ReadWave>(step));
  const ReadWave& wave = std::get<ReadWave>(step);
  EXPECT_EQ(wave.wave, 1);
  ASSERT_EQ(wave.noted.size(), 2u);
  EXPECT_EQ(wave.noted[0].chunk, 2);
  EXPECT_EQ(wave.noted[1].range.hi, Integer(40));
  EXPECT_TRUE(wave.noted[1].is_last);
}

TEST(ReadChunkedState, MissesThePlansTableByName) {
  Recorded recorded = Upto(1);
  std::erase_if(recorded.rows,
                [](const PlansRow& row) { return row.event == "snapshot_plan"; });
  const Result<ChunkedState> state =
      ReadChunkedState(*NewestChunked(recorded.events, "a"), recorded.events,
                       recorded.rows, "t_snapshot_plans");
  ASSERT_FALSE(state.ok());
  EXPECT_EQ(state.error().id(), ErrorId::kSnapshotPlanLost);
  EXPECT_EQ(state.error().Fact("table"), "t_snapshot_plans");
}

// Releases before 0.7.0 kept everything in the facts.
TEST(ReadChunkedState, ASnapshotOfOldIsWholeInTheFacts) {
  Recorded recorded = Upto(2);
  for (SnapshotEvent& event : recorded.events) {
    for (const PlansRow& row : recorded.rows) {
      const bool is_same =
          row.event == event.event &&
          (row.event != "snapshot_chunk" ||
           row.detail.find(event.detail.substr(0, 60)) != std::string::npos);
      if (is_same) event.detail = row.detail;
    }
  }
  recorded.rows.clear();
  const ChunkedState state = StateOf(recorded);
  EXPECT_TRUE(state.is_whole_in_facts);
  EXPECT_EQ(NextStep(state), ChunkedStep(ReadWave{1, {}}));
}

TEST(ChunkCountOf, WholeRoundsThatTheTargetHolds) {
  const struct {
    const char* when;
    WaveSizing sizing;
    std::int64_t left;
    std::int64_t count;
  } kRows[] = {
      {"no pace yet", {4, std::nullopt, 300, std::nullopt}, 100, 4},
      {"one round a wave", {4, 10.0, 0, std::nullopt}, 100, 4},
      {"as many as the target holds", {4, 100.0, 300, std::nullopt}, 100, 12},
      {"a round longer than the target", {4, 1000.0, 300, std::nullopt}, 100, 4},
      {"no more than is left of the call", {4, 100.0, 300, 250.0}, 100, 8},
      {"the call is nearly over", {4, 100.0, 300, 1.0}, 100, 4},
      {"no more than the plan", {4, 0.0, 300, std::nullopt}, 10, 10},
      {"fewer chunks than connections", {8, std::nullopt, 300, std::nullopt}, 3, 3},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(ChunkCountOf(row.sizing, row.left), row.count) << row.when;
  }
}

TEST(RebuildChunks, FromTheFirstToTheHighestWithRows) {
  const ChunkPlan plan{1, std::vector<KeyRange>(5)};
  const auto chunks = RebuildChunks(plan, 1, {{0, 9}, {1, 4}, {3, 2}});
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[0].rows, 4);
  EXPECT_EQ(chunks[1].rows, 0);
  EXPECT_EQ(chunks[2].chunk.chunk, 3);
  EXPECT_FALSE(chunks[2].chunk.is_last);
  EXPECT_TRUE(RebuildChunks(plan, 4, {{0, 9}}).empty());
}

TEST(ParseChunksOption, TakesWhatTheReferenceSays) {
  const auto chunks =
      ParseChunksOption(R"([[3, null, ["a", 1]], [4, ["a", 1], null]])", 2);
  ASSERT_TRUE(chunks.ok());
  EXPECT_EQ(chunks.value()[1].chunk, 4);
  EXPECT_EQ(chunks.value()[0].range.hi, chunks.value()[1].range.lo);
  for (const char* wrong : {"", "{}", "[1]", "[[1, 2]]", R"([["a", 1, 2]])",
                            "[[1, [1, 2], null]]", "[[1, {}, 2]]"}) {
    const auto refused = ParseChunksOption(wrong, 1);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.error().id(), ErrorId::kOptionInvalid);
  }
}

SnapshotEvent Of(const char* event, const char* app_id, const char* lsn,
                 const char* detail) {
  return {event, app_id, LsnOf(lsn), std::nullopt, 0, detail};
}

constexpr char kFull[] = R"({"mode": "full"})";
constexpr char kChunked[] = R"({"mode": "chunked"})";

struct LockRow {
  const char* when;
  std::vector<SnapshotEvent> events;
  bool full_is_free;
  bool chunked_is_free;
  bool seed_is_free;
};

TEST(CheckModeLock, OneModeUntilItsSnapshotIsComplete) {
  const std::vector<LockRow> kRows = {
      {"nothing", {}, true, true, true},
      {"a full one is open",
       {Of("snapshot_open", "a", "10", kFull)},
       true,
       false,
       false},
      {"a chunked one is open",
       {Of("snapshot_open", "a", "10", kChunked)},
       false,
       true,
       false},
      {"one of no mode is chunked",
       {Of("snapshot_open", "a.g1", "10", "{}")},
       false,
       true,
       false},
      {"complete",
       {Of("snapshot_open", "a", "10", kFull), Of("bootstrap", "a", "10", "")},
       true,
       true,
       true},
      {"made needless by a newer generation's",
       {Of("snapshot_open", "a", "10", kChunked), Of("resnapshot", "a.g1", "20", "")},
       true,
       true,
       true},
      {"another stream's", {Of("snapshot_open", "ab", "10", kFull)}, true, true, true},
      {"a full one that cleanup has passed",
       {Of("snapshot_open", "a", "05", kFull)},
       true,
       true,
       true},
      {"a full one beside a chunked one of its sink",
       {Of("snapshot_open", "a", "10", kFull),
        Of("snapshot_open", "a", "11", kChunked)},
       false,
       true,
       false},
  };
  const IsLost is_lost = [](const cdc::Lsn& lsn) { return lsn < LsnOf("06"); };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    EXPECT_EQ(CheckModeLock(row.events, "a", SnapshotMode::kFull, is_lost).ok(),
              row.full_is_free);
    EXPECT_EQ(CheckModeLock(row.events, "a", SnapshotMode::kChunked, is_lost).ok(),
              row.chunked_is_free);
    const Status any = CheckModeLock(row.events, "a", std::nullopt, is_lost);
    EXPECT_EQ(any.ok(), row.seed_is_free);
    if (!any.ok()) {
      EXPECT_EQ(any.error().id(), ErrorId::kSnapshotModeLocked);
    }
  }
}

SeedFacts Seed(const char* as_of) {
  SeedFacts facts;
  facts.as_of = ParseAsOf(as_of).value();
  facts.server_max = LsnOf("50");
  facts.instances = {{"dbo", "t", "dbo_t", LsnOf("20"), 0, {}}};
  return facts;
}

TEST(PlanSeed, EveryRule) {
  const auto plan_of = [](const SeedFacts& facts) { return PlanSeed(facts); };
  EXPECT_EQ(plan_of(Seed("0x30")).value(), SeedPlan(AppendSeed{LsnOf("30")}));
  // The change right after it is still there.
  EXPECT_EQ(plan_of(Seed("0x1F")).value(), SeedPlan(AppendSeed{LsnOf("1F")}));
  EXPECT_EQ(plan_of(Seed("0x1E")).error().id(), ErrorId::kDataLoss);
  EXPECT_EQ(plan_of(Seed("0x51")).error().id(), ErrorId::kOptionInvalid);

  SeedFacts rerun = Seed("0x30");
  rerun.whole = {{LsnOf("30"), 5}, {LsnOf("40"), 6}};
  EXPECT_EQ(plan_of(rerun).value(), SeedPlan(SeedIsThere{{LsnOf("30"), 5}}));
  SeedFacts other = Seed("0x30");
  other.whole = {{LsnOf("28"), 5}};
  EXPECT_EQ(plan_of(other).error().id(), ErrorId::kSnapshotExists);
  other.reseed = true;
  EXPECT_EQ(plan_of(other).value(), SeedPlan(AppendSeed{LsnOf("30")}));
  other.chunked = {LsnOf("31")};
  EXPECT_EQ(plan_of(other).error().id(), ErrorId::kSnapshotExists);

  SeedFacts time = Seed("2026-09-30T04:00:00+02:00");
  EXPECT_EQ(time.as_of, AsOf(std::int64_t{1'790'733'600'000'000}));
  EXPECT_EQ(plan_of(time).error().id(), ErrorId::kDataLoss);
  time.whole = {{LsnOf("10"), 1'790'733'600'000'000},
                {LsnOf("12"), 1'790'733'600'000'001}};
  EXPECT_EQ(plan_of(time).value(),
            SeedPlan(SeedIsThere{{LsnOf("10"), 1'790'733'600'000'000}}));
  time.reseed = true;
  EXPECT_EQ(plan_of(time).error().id(), ErrorId::kDataLoss);
  time.lsn = LsnOf("30");
  EXPECT_EQ(plan_of(time).value(), SeedPlan(AppendSeed{LsnOf("30")}));
}

TEST(ParseAsOf, AnLsnOrATime) {
  EXPECT_EQ(ParseAsOf(" 0x2a ").value(), AsOf(LsnOf("2A")));
  EXPECT_EQ(ParseAsOf("2026-09-30T02:00:00").value(),
            ParseAsOf("2026-09-30T02:00:00Z").value());
  for (const char* wrong : {"", "0x", "0xZZ", "yesterday", "2A", "2026-13-30"}) {
    const auto refused = ParseAsOf(wrong);
    EXPECT_FALSE(refused.ok()) << wrong;
  }
}

}  // namespace
}  // namespace mssql_cdc::pipeline
