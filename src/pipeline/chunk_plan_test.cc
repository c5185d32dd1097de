#include "pipeline/chunk_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>

namespace mssql_cdc::pipeline {
namespace {

// A table with one integer key, as counts: runs of `count` keys from `first`, `step`
// apart. So 100 million rows cost nothing.
struct Run {
  std::int64_t first = 0;
  std::int64_t count = 1;
  std::int64_t step = 1;

  std::int64_t last() const { return first + (count - 1) * step; }
  // How many of its keys lie below `key`.
  Int128 Below(Int128 key) const {
    if (key <= first) return 0;
    const Int128 n = (key - first + step - 1) / step;
    return n < count ? n : count;
  }
};

class Table {
 public:
  explicit Table(std::vector<Run> runs) : runs_(std::move(runs)) {}

  Int128 Below(Int128 key) const {
    Int128 count = 0;
    for (const Run& run : runs_) count += run.Below(key);
    return count;
  }
  std::int64_t Count(Int128 from, Int128 before) const {
    return static_cast<std::int64_t>(Below(before) - Below(from));
  }
  std::int64_t min() const {
    return std::ranges::min_element(runs_, {}, &Run::first)->first;
  }
  std::int64_t max() const {
    return std::ranges::max_element(runs_, {}, &Run::last)->last();
  }
  std::int64_t row_count() const { return Count(min(), Int128{max()} + 1); }

  // The smallest key at or above `key`, the largest below `key`.
  std::int64_t FirstFrom(Int128 key) const {
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (const Run& run : runs_) {
      const Int128 n = run.Below(key);
      if (n < run.count) {
        best = std::min(best, static_cast<std::int64_t>(run.first + n * run.step));
      }
    }
    return best;
  }
  std::int64_t LastBelow(Int128 key) const {
    std::int64_t best = std::numeric_limits<std::int64_t>::min();
    for (const Run& run : runs_) {
      const Int128 n = run.Below(key);
      if (n > 0) {
        best =
            std::max(best, static_cast<std::int64_t>(run.first + (n - 1) * run.step));
      }
    }
    return best;
  }

  // As the server answers CountSlices.
  std::vector<Slice> Answer(const SliceWish& wish) const {
    std::vector<Slice> slices;
    const Int128 width = wish.width;
    Int128 key = FirstFrom(wish.min);
    while (key <= wish.max && Below(Int128{wish.max} + 1) > Below(key)) {
      key = FirstFrom(key);
      const Int128 slice = key >= 0 ? key / width : -((-key + width - 1) / width);
      const Int128 end = std::min<Int128>((slice + 1) * width, Int128{wish.max} + 1);
      slices.push_back({static_cast<std::int64_t>(slice),
                        Count(std::max<Int128>(slice * width, wish.min), end),
                        static_cast<std::int64_t>(key), LastBelow(end)});
      if (Below(end) == Below(Int128{max()} + 1)) break;
      key = FirstFrom(end);
    }
    std::reverse(slices.begin(), slices.end());  // In no order.
    return slices;
  }

 private:
  std::vector<Run> runs_;
};

struct Cost {
  std::int64_t statement_count = 0;
  std::int64_t answer_row_count = 0;
};

std::vector<KeyRange> Plan(const Table& table, std::int64_t estimate,
                           std::int64_t chunk_rows, Cost* cost) {
  SlicePlanner planner(table.min(), table.max(), estimate, chunk_rows);
  while (const std::optional<SliceWish> wish = planner.Next()) {
    std::vector<Slice> slices = table.Answer(*wish);
    ++cost->statement_count;
    cost->answer_row_count += static_cast<std::int64_t>(slices.size());
    const Status answered = planner.Answer(std::move(slices));
    EXPECT_TRUE(answered.ok()) << answered.error().Text();
    if (!answered.ok() || cost->statement_count > 10'000) break;
  }
  return planner.Chunks();
}

Int128 IntegerOf(const Key& key) { return std::get<Int128>(key.at(0)); }

// The chunks tile the keys up to the largest, and each holds at most `chunk_rows`.
void ExpectGood(const Table& table, const std::vector<KeyRange>& chunks,
                std::int64_t chunk_rows) {
  ASSERT_FALSE(chunks.empty());
  EXPECT_FALSE(chunks.front().lo.has_value());
  ASSERT_TRUE(chunks.back().hi.has_value());
  EXPECT_EQ(IntegerOf(*chunks.back().hi), Int128{table.max()} + 1);
  Int128 from = Int128{table.min()};
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (i > 0) {
      EXPECT_EQ(chunks[i].lo, chunks[i - 1].hi);
    }
    const Int128 before = IntegerOf(*chunks[i].hi);
    ASSERT_LT(from, before);
    const std::int64_t rows = table.Count(from, before);
    EXPECT_LE(rows, chunk_rows) << "chunk " << i;
    EXPECT_GT(rows, 0) << "chunk " << i;
    from = before;
  }
}

struct TableRow {
  const char* name;
  std::vector<Run> runs;
};

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();

std::vector<TableRow> Shapes(std::int64_t rows) {
  return {
      {"uniform", {{0, rows, 1}}},
      {"every hundredth", {{-7, rows, 100}}},
      {"a dense cluster in a wide space",
       {{0, rows / 100, 1'000'000}, {500'000'000'000, rows, 1}}},
      {"a sentinel far above", {{0, rows, 1}, {kLargest, 1, 1}}},
      {"sentinels on both ends", {{kSmallest, 1, 1}, {0, rows, 1}, {kLargest, 1, 1}}},
      {"below zero", {{-rows, rows, 1}}},
      {"sparse", {{kSmallest / 2, rows, kLargest / rows}}},
      {"three clusters",
       {{0, rows / 3, 1}, {1LL << 40, rows / 3, 2}, {1LL << 60, rows / 3, 3}}},
  };
}

// Goal: whatever the keys' spread, chunks are within their limit, none is empty, and
// planning costs few statements. Method: tables of up to 100 million rows as generated
// counts, answered as the server answers.
TEST(SlicePlanner, ChunksFollowTheRowsNotTheKeys) {
  for (const std::int64_t rows : {1'000LL, 100'000LL, 10'000'000LL, 100'000'000LL}) {
    for (const TableRow& shape : Shapes(rows)) {
      SCOPED_TRACE(std::string(shape.name) + ", " + std::to_string(rows) + " rows");
      const Table table(shape.runs);
      const std::int64_t chunk_rows = std::max<std::int64_t>(10, rows / 100);
      Cost cost;
      const std::vector<KeyRange> chunks =
          Plan(table, table.row_count(), chunk_rows, &cost);
      ExpectGood(table, chunks, chunk_rows);
      const std::int64_t least = (table.row_count() + chunk_rows - 1) / chunk_rows;
      EXPECT_LE(static_cast<std::int64_t>(chunks.size()), least * 5 / 4 + 5);
      // A slice with too many rows costs one more statement; there are few of those.
      EXPECT_LE(cost.statement_count, 150);
      EXPECT_LE(cost.answer_row_count, 40 * least + 3'000);
      if (rows >= 10'000'000) {
        std::printf("%-34s %11lld rows: %zu chunks, %lld statements, %lld rows\n",
                    shape.name, static_cast<long long>(table.row_count()),
                    chunks.size(), static_cast<long long>(cost.statement_count),
                    static_cast<long long>(cost.answer_row_count));
      }
    }
  }
}

TEST(SlicePlanner, AWrongEstimateOnlyCostsStatements) {
  const Table table({{0, 1'000'000, 1}});
  for (const std::int64_t estimate : {0LL, 1LL, 5'000LL, 4'000'000'000LL}) {
    Cost cost;
    const auto chunks = Plan(table, estimate, 10'000, &cost);
    ExpectGood(table, chunks, 10'000);
    EXPECT_LE(cost.statement_count, 110) << estimate;
  }
}

// As the existing package plans it: facts file on its spec, section 8.5.
TEST(SlicePlanner, ASentinelGetsNoEmptyChunks) {
  const Table table({{0, 100, 1}, {1'000'000'000, 1, 1}});
  Cost cost;
  const auto chunks = Plan(table, 101, 10, &cost);
  ASSERT_EQ(chunks.size(), 11u);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(table.Count(i == 0 ? 0 : IntegerOf(*chunks[i].lo),
                          std::min<Int128>(IntegerOf(*chunks[i].hi), 100)),
              10);
  }
  EXPECT_EQ(IntegerOf(*chunks[10].hi), 1'000'000'001);
}

TEST(SlicePlanner, OneKeyAndNoRow) {
  Cost cost;
  const auto one = Plan(Table({{7, 1, 1}}), 1, 10, &cost);
  EXPECT_EQ(one, (std::vector<KeyRange>{{std::nullopt, Key{Int128{8}}}}));
  // Deleted since the extent was asked for.
  SlicePlanner planner(3, 9, 100, 10);
  ASSERT_TRUE(planner.Next().has_value());
  ASSERT_TRUE(planner.Answer({}).ok());
  EXPECT_FALSE(planner.Next().has_value());
  EXPECT_EQ(planner.Chunks(), (std::vector<KeyRange>{{std::nullopt, Key{Int128{10}}}}));
}

TEST(SlicePlanner, AnswersToAnotherQuestionAreRefused) {
  const std::vector<std::vector<Slice>> kAnswers = {
      {{0, 5, 3, 200}},              // Beyond the largest key.
      {{7, 5, 3, 9}},                // Not its slice.
      {{0, 5, 9, 3}},                // The wrong way round.
      {{0, 2, 3, 4}, {0, 2, 5, 6}},  // The same slice twice.
  };
  for (const auto& answer : kAnswers) {
    SlicePlanner planner(3, 100, 1, 10);
    const Status answered = planner.Answer(answer);
    ASSERT_FALSE(answered.ok());
    EXPECT_EQ(answered.error().id(), ErrorId::kTdsMalformed);
  }
}

// A table with a key of texts, sorted; NULL is "".
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> keys) : keys_(std::move(keys)) {
    std::sort(keys_.begin(), keys_.end());
  }
  std::optional<Key> max() const {
    if (keys_.empty()) return std::nullopt;
    return KeyOf(keys_.back());
  }
  std::optional<Key> Answer(const SeekWish& wish) const {
    const std::size_t at =
        Place(wish.range.lo, 0) + static_cast<std::size_t>(wish.skip_count);
    if (at >= Place(wish.range.hi, keys_.size())) return std::nullopt;
    return KeyOf(keys_[at]);
  }
  std::size_t Count(const KeyRange& range) const {
    return Place(range.hi, keys_.size()) - Place(range.lo, 0);
  }

 private:
  static Key KeyOf(const std::string& text) {
    if (text.empty()) return {KeyValue()};
    return {text};
  }
  std::size_t Place(const std::optional<Key>& bound, std::size_t open) const {
    if (!bound) return open;
    const std::string text =
        bound->at(0).index() == 0 ? "" : std::get<std::string>(bound->at(0));
    return static_cast<std::size_t>(std::lower_bound(keys_.begin(), keys_.end(), text) -
                                    keys_.begin());
  }
  std::vector<std::string> keys_;
};

std::vector<KeyRange> Plan(const TextTable& table, bool is_unique,
                           std::int64_t chunk_rows) {
  SeekPlanner planner(table.max(), is_unique, chunk_rows);
  for (int i = 0; i < 10'000; ++i) {
    const std::optional<SeekWish> wish = planner.Next();
    if (!wish) return planner.Chunks();
    planner.Answer(table.Answer(*wish));
  }
  ADD_FAILURE() << "planning does not end";
  return {};
}

void ExpectTiles(const TextTable& table, const std::vector<KeyRange>& chunks,
                 std::size_t row_count) {
  EXPECT_FALSE(chunks.front().lo || chunks.back().hi);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (i > 0) {
      EXPECT_EQ(chunks[i].lo, chunks[i - 1].hi);
    }
    EXPECT_GT(table.Count(chunks[i]), 0u) << i;
    sum += table.Count(chunks[i]);
  }
  EXPECT_EQ(sum, row_count);
}

TEST(SeekPlanner, EveryChunkButTheLastHasSoManyRows) {
  std::vector<std::string> keys;
  for (int i = 0; i < 1003; ++i) keys.push_back("k" + std::to_string(10'000 + i));
  const TextTable table(keys);
  const auto chunks = Plan(table, true, 100);
  ExpectTiles(table, chunks, 1003);
  ASSERT_EQ(chunks.size(), 11u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(table.Count(chunks[i]), 100u);
}

// Goal: a value is never split, nothing is left out and planning ends, for any numbers
// of equal values, NULLs among them. Method: all small tables of up to four values.
TEST(SeekPlanner, AValueIsNeverSplit) {
  int table_count = 0;
  for (int shape = 0; shape < 6 * 6 * 6 * 6; ++shape) {
    std::vector<std::string> keys;
    std::map<std::string, std::size_t> counts;
    int rest = shape;
    for (const char* value : {"", "a", "b", "c"}) {
      for (int i = 0; i < rest % 6; ++i) keys.emplace_back(value);
      counts[value] = static_cast<std::size_t>(rest % 6);
      rest /= 6;
    }
    if (keys.empty()) continue;
    const TextTable table(keys);
    for (const std::int64_t chunk_rows : {1, 2, 3, 7}) {
      SCOPED_TRACE("shape " + std::to_string(shape) + ", chunks of " +
                   std::to_string(chunk_rows));
      const auto chunks = Plan(table, false, chunk_rows);
      if (counts["a"] + counts["b"] + counts["c"] == 0) {
        EXPECT_EQ(chunks.size(), 1u);  // The largest key is NULL.
        continue;
      }
      ExpectTiles(table, chunks, keys.size());
      const std::size_t most =
          std::max({counts[""], counts["a"], counts["b"], counts["c"]});
      for (std::size_t i = 0; i + 1 < chunks.size(); ++i) {
        EXPECT_LE(
            table.Count(chunks[i]),
            std::max<std::size_t>(static_cast<std::size_t>(chunk_rows),
                                  2 * most + static_cast<std::size_t>(chunk_rows)));
      }
      ++table_count;
    }
  }
  EXPECT_GT(table_count, 5'000);
}

// Rows of a composite key (a, b): runs of values of a, each with so many of b from 0.
struct PairRun {
  std::int64_t first_a = 0;
  std::int64_t a_count = 1;
  std::int64_t a_step = 1;
  std::int64_t b_count = 1;

  std::int64_t row_count() const { return a_count * b_count; }
};

// What planning a table of two key columns costs: one statement a wish, of whose answer
// one row crosses the network.
TEST(SeekPlanner, ACompositeKeyCostsOneSeekAChunk) {
  const struct {
    const char* name;
    std::vector<PairRun> runs;
  } kShapes[] = {
      {"uniform", {{0, 100'000, 1, 100}}},
      {"a dense cluster", {{0, 1'000, 1, 10}, {1'000, 1, 1, 9'990'000}}},
      {"a sentinel far above", {{0, 10'000'000, 1, 1}, {kLargest, 1, 1, 1}}},
      {"sparse", {{-kLargest, 10'000'000, 1'000'000'000, 1}}},
  };
  for (const auto& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    std::int64_t row_count = 0;
    for (const PairRun& run : shape.runs) row_count += run.row_count();
    const auto key_of = [&](std::int64_t rank) -> std::optional<Key> {
      for (const PairRun& run : shape.runs) {
        if (rank < run.row_count()) {
          return Key{Int128{run.first_a} + rank / run.b_count * run.a_step,
                     Int128{rank % run.b_count}};
        }
        rank -= run.row_count();
      }
      return std::nullopt;
    };
    const auto rank_of = [&](const Key& key) {
      std::int64_t rank = 0;
      for (const PairRun& run : shape.runs) {
        const Int128 a = (std::get<Int128>(key[0]) - run.first_a) / run.a_step;
        if (std::get<Int128>(key[0]) >= run.first_a && a < run.a_count) {
          return rank + static_cast<std::int64_t>(a) * run.b_count +
                 static_cast<std::int64_t>(std::get<Int128>(key[1]));
        }
        rank += run.row_count();
      }
      return rank;
    };
    const std::int64_t chunk_rows = 100'000;
    SeekPlanner planner(key_of(row_count - 1), true, chunk_rows);
    std::int64_t statement_count = 0;
    while (const std::optional<SeekWish> wish = planner.Next()) {
      ++statement_count;
      ASSERT_LT(statement_count, 1'000);
      const std::int64_t rank =
          (wish->range.lo ? rank_of(*wish->range.lo) : 0) + wish->skip_count;
      planner.Answer(rank < row_count - 1 ? key_of(rank) : std::nullopt);
    }
    const std::vector<KeyRange> chunks = planner.Chunks();
    for (std::size_t i = 0; i + 1 < chunks.size(); ++i) {
      EXPECT_EQ(rank_of(*chunks[i].hi), static_cast<std::int64_t>(i + 1) * chunk_rows);
    }
    EXPECT_EQ(statement_count, (row_count + chunk_rows - 2) / chunk_rows);
    std::printf("composite, %-23s %11lld rows: %zu chunks, %lld statements, %zu rows\n",
                shape.name, static_cast<long long>(row_count), chunks.size(),
                static_cast<long long>(statement_count), chunks.size() - 1);
  }
}

TEST(SeekPlanner, WithoutALargestKeyThereIsOneChunk) {
  SeekPlanner planner(std::nullopt, true, 10);
  EXPECT_FALSE(planner.Next().has_value());
  EXPECT_EQ(planner.Chunks(), std::vector<KeyRange>(1));
}

TEST(SeekPlanner, ABoundThatWasCutOffToTheBeginningIsLookedForFurtherOn) {
  SeekPlanner planner(Key{std::string("9")}, true, 2);
  planner.Answer(Key{std::string("1")});
  ASSERT_TRUE(planner.Next().has_value());
  planner.Answer(Key{std::string("1")});  // Another key of the same microsecond.
  ASSERT_TRUE(planner.Next().has_value());
  EXPECT_EQ(planner.Next()->skip_count, 4);
  planner.Answer(Key{std::string("5")});
  planner.Answer(std::nullopt);
  EXPECT_EQ(planner.Chunks().size(), 3u);
}

}  // namespace
}  // namespace mssql_cdc::pipeline
