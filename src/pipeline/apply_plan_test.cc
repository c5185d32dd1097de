#include "pipeline/apply_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/key_ranges.h"
#include "pipeline/latest_images.h"
#include "pipeline/row_key.h"

namespace mssql_cdc::pipeline {
namespace {

using testing::ElementsAre;

cdc::Lsn L(int number) {
  cdc::Lsn lsn;
  lsn.bytes[9] = static_cast<std::uint8_t>(number);
  return lsn;
}

using MaybeInt = std::optional<int>;

std::optional<cdc::Lsn> M(const MaybeInt& number) {
  if (!number) return std::nullopt;
  return L(*number);
}

SnapshotChunk Chunk(int number, int wave, int stamp) {
  SnapshotChunk chunk;
  chunk.number = number;
  chunk.wave = wave;
  chunk.stamp = L(stamp);
  return chunk;
}

// What a window says, in one line.
std::string Say(const ApplyWindow& window) {
  const auto number = [](const std::optional<cdc::Lsn>& lsn) {
    return lsn ? std::to_string(lsn->bytes[9]) : std::string("-");
  };
  std::string text = window.rebuild ? "rebuild " : "go on ";
  text += number(window.snapshot) + " changes>" + number(window.changes_above) +
          " rows=" + number(window.snapshot_rows);
  if (window.open) text += " open=" + number(window.open->lsn) + " chunks=";
  for (const SnapshotChunk& chunk : window.chunks) text += std::to_string(chunk.number);
  if (window.echo_from) text += " echo>=" + number(window.echo_from);
  return text;
}

struct PlanCase {
  const char* name;
  MaybeInt applied;
  MaybeInt rebuilt_from;
  MaybeInt position_open;
  MaybeInt wave;
  MaybeInt completion;
  MaybeInt open;
  MaybeInt whole;
  const char* expected;
};

// Section 6.4 of the existing package's behaviour, one line a situation. Chunks 0 and 1
// are of wave 0 with stamps 41 and 42, chunk 2 is of wave 1 with stamp 45.
constexpr PlanCase kPlanCases[] = {
    {"new, no snapshot", {}, {}, {}, {}, {}, {}, {}, "rebuild - changes>- rows=-"},
    {"new, whole", {}, {}, {}, {}, {}, {}, 31, "rebuild 31 changes>31 rows=31"},
    {"new, of an empty table",
     {},
     {},
     {},
     {},
     31,
     {},
     {},
     "rebuild 31 changes>31 rows=31"},
    {"nothing new", 51, 31, {}, {}, 31, {}, {}, "go on 31 changes>51 rows=-"},
    {"a snapshot below what is applied",
     51,
     {},
     {},
     {},
     31,
     {},
     {},
     "rebuild 31 changes>31 rows=31"},
    {"a newer snapshot", 51, 31, {}, {}, 31, {}, 61, "rebuild 61 changes>61 rows=61"},
    {"changes alone so far", 51, {}, {}, {}, {}, {}, {}, "go on - changes>51 rows=-"},
    {"new, chunked",
     {},
     {},
     {},
     {},
     {},
     40,
     {},
     "rebuild - changes>- rows=- open=40 chunks=012 echo>=41"},
    {"chunked, first wave applied",
     43,
     {},
     40,
     0,
     {},
     40,
     {},
     "go on - changes>43 rows=- open=40 chunks=2 echo>=45"},
    {"chunked, all waves applied",
     43,
     {},
     40,
     1,
     {},
     40,
     {},
     "go on - changes>43 rows=- open=40 chunks="},
    {"chunked, superseded",
     43,
     {},
     35,
     7,
     {},
     40,
     {},
     "go on - changes>43 rows=- open=40 chunks=012 echo>=41"},
    {"chunked, nothing applied yet",
     {},
     {},
     40,
     {},
     {},
     40,
     {},
     "go on - changes>- rows=- open=40 chunks=012 echo>=41"},
    {"chunked, complete", 43, {}, 40, 1, 40, 40, {}, "rebuild 40 changes>40 rows=40"},
    {"chunked over a whole one",
     43,
     31,
     {},
     {},
     31,
     40,
     {},
     "go on 31 changes>43 rows=- open=40 chunks=012 echo>=41"},
    {"a whole one above the open one",
     43,
     31,
     {},
     {},
     31,
     40,
     50,
     "rebuild 50 changes>50 rows=50"},
};

TEST(ApplyPlan, SaysWhatIsToBeApplied) {
  for (const PlanCase& c : kPlanCases) {
    ApplyFacts facts;
    facts.position = {M(c.applied), M(c.rebuilt_from), M(c.position_open), {}};
    if (c.wave) facts.position.wave = *c.wave;
    facts.has_facts = true;
    facts.completion = M(c.completion);
    if (c.open) {
      facts.open = OpenSnapshot{
          L(*c.open), {"id"}, {Chunk(0, 0, 41), Chunk(1, 0, 42), Chunk(2, 1, 45)}};
    }
    facts.whole = M(c.whole);
    const Result<ApplyWindow> window = PlanApply(facts);
    ASSERT_TRUE(window.ok()) << c.name;
    EXPECT_EQ(Say(window.value()), c.expected) << c.name;
  }
}

TEST(ApplyPlan, RowsOfAChunkThatNoFactsExplainAreRefused) {
  ApplyFacts facts;
  facts.bronze = "bronze.orders";
  facts.has_chunk_rows = true;
  const Result<ApplyWindow> without = PlanApply(facts);
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().id(), ErrorId::kSnapshotUnexplained);
  EXPECT_THAT(std::string(*without.error().Fact("reason")),
              testing::HasSubstr("facts_table"));
  facts.has_facts = true;
  facts.facts_targets = {"lake/bronze/orders"};
  const Result<ApplyWindow> of_others = PlanApply(facts);
  ASSERT_FALSE(of_others.ok());
  EXPECT_EQ(of_others.error().Fact("targets"), "lake/bronze/orders");
}

TEST(ApplyPlan, EachRowHasItsRole) {
  ApplyFacts facts;
  facts.position = {L(43), std::nullopt, L(40), 0};
  facts.has_facts = true;
  facts.open = OpenSnapshot{L(40), {"id"}, {Chunk(0, 0, 41), Chunk(2, 1, 42)}};
  const ApplyWindow window = PlanApply(facts).value();
  const auto role = [&](int operation, int lsn, MaybeInt snapshot, MaybeInt chunk) {
    RowMark mark{operation, L(lsn), M(snapshot), {}};
    if (chunk) mark.chunk = *chunk;
    return RoleOf(window, mark);
  };
  EXPECT_EQ(role(2, 44, {}, {}), RowRole::kBase);
  EXPECT_EQ(role(2, 43, {}, {}), RowRole::kEcho);
  EXPECT_EQ(role(2, 42, {}, {}), RowRole::kEcho);
  EXPECT_EQ(role(2, 41, {}, {}), RowRole::kNone);
  EXPECT_EQ(role(0, 42, 40, 2), RowRole::kChunk);
  EXPECT_EQ(role(0, 41, 40, 0), RowRole::kNone);  // Applied.
  EXPECT_EQ(role(0, 42, 35, 2), RowRole::kNone);  // Of another snapshot.
  EXPECT_EQ(role(0, 44, 44, {}), RowRole::kNone);
  ASSERT_TRUE(window.LowerBound().has_value());
  EXPECT_EQ(window.LowerBound()->lsn, L(42));
  EXPECT_FALSE(window.LowerBound()->is_exclusive);
}

TEST(ApplyPlan, ThePositionFollowsTheWindow) {
  const SilverPosition before{L(43), std::nullopt, L(40), 0};
  ApplyFacts facts;
  facts.position = before;
  facts.has_facts = true;
  facts.open = OpenSnapshot{L(40), {}, {Chunk(2, 1, 45)}};
  const SilverPosition wave = PositionAfter(PlanApply(facts).value(), before, L(47));
  EXPECT_EQ(wave, (SilverPosition{L(47), std::nullopt, L(40), 1}));
  facts.completion = L(40);
  const SilverPosition done =
      PositionAfter(PlanApply(facts).value(), before, std::nullopt);
  EXPECT_EQ(done, (SilverPosition{L(43), L(40), std::nullopt, std::nullopt}));
}

ChangeOrder Order(int lsn, MaybeInt command, MaybeInt seqval, int operation) {
  ChangeOrder order;
  order.lsn = L(lsn);
  if (command) order.command_id = *command;
  if (seqval) {
    order.has_seqval = true;
    order.seqval = L(*seqval);
  }
  order.operation = operation;
  return order;
}

TEST(LatestImages, OrderChangesAsBronzeDoes) {
  const ChangeOrder ascending[] = {
      Order(1, 9, 9, 4), Order(2, {}, {}, 0), Order(2, 1, 1, 3),  Order(2, 1, 1, 4),
      Order(2, 1, 2, 1), Order(2, 2, 1, 2),   Order(3, {}, {}, 0)};
  for (std::size_t i = 1; i < std::size(ascending); ++i) {
    EXPECT_LT(ascending[i - 1], ascending[i]) << i;
  }
}

TEST(LatestImages, KeepTheNewestOfEachOfManyKeys) {
  LatestImages images;
  for (int round = 0; round < 3; ++round) {
    for (int key = 0; key < 5000; ++key) {
      const std::string text = "key" + std::to_string(key);
      const int lsn = (key + round) % 3;
      images.Offer(HashOf(text), text, Order(lsn, {}, {}, 2), round * 5000 + key,
                   round == 0);
    }
  }
  EXPECT_EQ(images.size(), 5000u);
  for (int key = 0; key < 5000; ++key) {
    const std::string text = "key" + std::to_string(key);
    const LatestImages::Image* image = images.Find(HashOf(text), text);
    ASSERT_NE(image, nullptr);
    EXPECT_EQ(image->order.lsn, L(2));
    EXPECT_TRUE(image->is_of_chunk);
    EXPECT_EQ((key + image->ordinal / 5000) % 3, 2);
  }
  EXPECT_EQ(images.Find(HashOf("none"), "none"), nullptr);
}

struct MeetCase {
  const char* name;
  MaybeInt silver;       // _start_lsn of silver's row.
  MaybeInt chunk_stamp;  // Of a chunk that covers the key.
  MaybeInt image;        // LSN of the newest image; none: no image.
  int operation;
  bool is_of_chunk;
  bool rebuild;
  bool goes;
  bool settles;
};

// Sections 6.6 and 6.7 of the existing package's behaviour.
constexpr MeetCase kMeetCases[] = {
    {"a newer image replaces", 10, {}, 20, 4, false, false, true, false},
    {"an older image does not", 20, {}, 10, 4, false, false, false, true},
    {"the same image does not", 20, {}, 20, 2, false, false, false, true},
    {"a newer delete removes", 10, {}, 20, 1, false, false, true, false},
    {"a changed key removes", 10, {}, 20, 3, false, false, true, false},
    {"an older delete does not", 20, {}, 10, 1, false, false, false, true},
    {"others stay", 10, {}, {}, 0, false, false, false, false},
    {"others go in a rebuild", 10, {}, {}, 0, false, true, true, false},
    {"a chunk without the key removes", 10, 15, {}, 0, false, false, true, false},
    {"an older chunk does not", 20, 15, {}, 0, false, false, false, false},
    {"a chunk with the key does not", 10, 15, 15, 0, true, false, true, false},
    {"a change above the chunk wins", 10, 15, 20, 4, false, false, true, false},
    {"a change at the stamp wins", 10, 15, 15, 4, false, false, true, false},
    {"a change below the stamp does not", 10, 15, 12, 4, false, false, true, true},
    {"a row without an LSN stays", {}, {}, 20, 4, false, false, false, true},
};

TEST(Silver, ARowGivesWayOnlyToWhatIsNewer) {
  for (const MeetCase& c : kMeetCases) {
    SilverRow row{M(c.silver), M(c.chunk_stamp)};
    LatestImages::Image image;
    if (c.image) {
      const bool is_snapshot = c.operation == 0;
      image.order = Order(*c.image, is_snapshot ? MaybeInt() : MaybeInt(1),
                          is_snapshot ? MaybeInt() : MaybeInt(1), c.operation);
    }
    image.is_of_chunk = c.is_of_chunk;
    EXPECT_EQ(Goes(row, c.image ? &image : nullptr, c.rebuild), c.goes) << c.name;
    EXPECT_EQ(image.is_settled, c.settles) << c.name;
  }
}

OpenSnapshot Cut(std::vector<std::string> keys) { return {L(1), std::move(keys), {}}; }

TEST(ChunkRanges, CoverTheKeysBetweenTheirBounds) {
  struct RangeCase {
    columns::Type type;
    const char* lo;
    const char* hi;
    std::optional<std::int64_t> key;
    bool covers;
  };
  const columns::Type kInt{columns::Kind::kInt32};
  const columns::Type kDate{columns::Kind::kDate32};
  const columns::Type kTime{columns::Kind::kTimestampNtz};
  const columns::Type kText{columns::Kind::kUtf8};
  const RangeCase cases[] = {
      {kInt, "8", "16", 8, true},
      {kInt, "8", "16", 15, true},
      {kInt, "8", "16", 16, false},
      {kInt, "[8]", "[16]", 9, true},
      {kInt, nullptr, "16", -5, true},
      {kInt, "8", nullptr, std::nullopt, false},
      {kInt, nullptr, nullptr, std::nullopt, true},
      {kInt, "8", "9223372036854775808", 1'000'000, true},
      {kDate, R"("1970-01-03")", R"("1970-01-05")", 2, true},
      {kDate, R"("1970-01-03")", R"("1970-01-05")", 4, false},
      // A bound of seven digits: the first microsecond that is not below it.
      {kTime, R"("1970-01-01 00:00:00.0000011")", nullptr, 1, false},
      {kTime, R"("1970-01-01 00:00:00.0000011")", nullptr, 2, true},
      {kTime, R"("1970-01-01 00:00:00.0000010")", nullptr, 1, true},
      {kText, R"("a")", R"("b")", 1, false},
  };
  for (const RangeCase& c : cases) {
    SnapshotChunk chunk = Chunk(0, 0, 9);
    if (c.lo != nullptr) chunk.lo = c.lo;
    if (c.hi != nullptr) chunk.hi = c.hi;
    const ChunkRanges ranges(Cut({"id"}), {chunk}, {{"id", c.type}});
    EXPECT_EQ(ranges.StampOf(c.key).has_value(), c.covers)
        << columns::DeltaTypeName(c.type) << " " << (c.lo == nullptr ? "" : c.lo);
  }
  EXPECT_TRUE(ChunkRanges(Cut({"id", "r"}), {Chunk(0, 0, 9)}, {{"id", kInt}}).empty());
  EXPECT_TRUE(ChunkRanges(Cut({"ID"}), {Chunk(0, 0, 9)}, {{"id", kInt}}).empty());
}

SnapshotFact Fact(const char* event, int lsn, const char* detail) {
  return {event, "bronze", L(lsn), L(lsn), 0, detail};
}

SnapshotFact By(const char* app_id, std::int64_t at, SnapshotFact fact) {
  fact.app_id = app_id;
  fact.written_at_us = at;
  return fact;
}

// A target deleted and begun anew on an idle source: both snapshots are at one LSN.
TEST(Snapshots, AnEarlierStreamSaysNothingOfOneAtItsLsn) {
  const std::string chunk = R"({"snapshot": ")" + L(9).Text() + R"("})";
  const SnapshotFact open = Fact("snapshot_open", 9, R"({"mode": "chunked"})");
  const SnapshotFact read = Fact("snapshot_chunk", 9, chunk.c_str());
  const SnapshotFact done = Fact("bootstrap", 9, "");
  const auto left = [](const std::vector<SnapshotFact>& facts) {
    std::vector<std::string> names;
    for (const SnapshotFact& fact : OfNewestStream(facts)) {
      names.push_back(fact.app_id + " " + fact.event);
    }
    return names;
  };
  using testing::ElementsAre;
  EXPECT_THAT(left({By("a", 1, done), By("b", 2, open)}),
              ElementsAre("b snapshot_open"));
  EXPECT_THAT(left({By("b", 4, open), By("a", 1, open), By("a", 2, read),
                    By("a", 3, done), By("b", 5, read)}),
              ElementsAre("b snapshot_open", "b snapshot_chunk"));
  // Its own, a later one, another LSN, and what does not say whose it is.
  EXPECT_THAT(left({By("a", 1, open), By("a", 2, done), By("b", 3, done)}),
              ElementsAre("a snapshot_open", "a bootstrap", "b bootstrap"));
  EXPECT_THAT(left({By("a", 1, Fact("bootstrap", 8, "")), By("b", 2, open)}),
              ElementsAre("a bootstrap", "b snapshot_open"));
  EXPECT_THAT(left({By("", 1, done), By("b", 2, open)}),
              ElementsAre(" bootstrap", "b snapshot_open"));
}

TEST(Snapshots, AreAssembledFromFactsAndPlans) {
  const std::string snapshot = L(9).Text();
  const std::string chunk_fact =
      R"({"snapshot": ")" + snapshot + R"(", "wave": 2, "chunk": 1, "last": true})";
  const std::string chunk_plan = R"({"snapshot": ")" + snapshot +
                                 R"(", "wave": 2, "chunk": 1, "lo": 8, "hi": null})";
  const std::vector<SnapshotFact> facts = {
      Fact("snapshot_open", 3, R"({"mode": "full"})"),
      Fact("snapshot_open", 9, R"({"mode": "chunked"})"),
      Fact("snapshot_chunk", 11, chunk_fact.c_str()), Fact("bootstrap", 3, "")};
  EXPECT_EQ(NewestChunkedOpen(facts), L(9));
  EXPECT_EQ(NewestCompletion(facts), L(3));
  const Result<OpenSnapshot> missing = AssembleSnapshot(L(9), facts, {}, "plans");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().id(), ErrorId::kPlansRowMissing);
  EXPECT_EQ(missing.error().Fact("event"), "snapshot_open");
  const std::vector<PlansRow> plans = {
      {"snapshot_open", R"({"keys": ["id"], "plan": {}})"},
      {"snapshot_chunk", chunk_plan}};
  const Result<OpenSnapshot> open = AssembleSnapshot(L(9), facts, plans, "plans");
  ASSERT_TRUE(open.ok()) << open.error().Text();
  EXPECT_THAT(open.value().keys, ElementsAre("id"));
  ASSERT_EQ(open.value().chunks.size(), 1u);
  EXPECT_EQ(open.value().chunks[0].lo, "8");
  EXPECT_FALSE(open.value().chunks[0].hi.has_value());
  EXPECT_EQ(open.value().chunks[0].wave, 2);
  EXPECT_EQ(open.value().chunks[0].stamp, L(11));
  EXPECT_TRUE(open.value().chunks[0].is_last);
}

TEST(KeyRanges, AreCutAtTheWidestGaps) {
  LatestImages images;
  for (const std::int64_t key : {1, 2, 3, 100, 101, 5000, -7}) {
    columns::ColumnBuilder builder({columns::Kind::kInt64}, 1);
    builder.AppendInt64(key);
    auto schema = std::make_shared<columns::Schema>();
    schema->fields = {{"id", {columns::Kind::kInt64}}};
    columns::RecordBatch batch{schema, 1, {}};
    batch.columns.push_back(std::make_shared<const columns::Column>(builder.Finish()));
    RowKeys keys = RowKeys::Of(batch, {"ID"}).value();
    const std::string_view bytes = keys.At(0);
    images.Offer(HashOf(bytes), bytes, Order(1, {}, {}, 2), 0, false);
  }
  const auto ranges = RangesOf(images, {columns::Kind::kInt64}, 3);
  ASSERT_TRUE(ranges.has_value());
  EXPECT_THAT(ranges->numbers,
              ElementsAre(std::pair<std::int64_t, std::int64_t>(-7, 3),
                          std::pair<std::int64_t, std::int64_t>(100, 101),
                          std::pair<std::int64_t, std::int64_t>(5000, 5000)));
  EXPECT_FALSE(RangesOf(LatestImages(), {columns::Kind::kInt64}, 3).has_value());
}

}  // namespace
}  // namespace mssql_cdc::pipeline
