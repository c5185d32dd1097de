// One contract, every adapter: each sentence of lake.h that a caller can rely on, asked
// of the Delta lake (in a folder of its own) and of the memory lake.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include "columns/batch.h"
#include "lake/delta_lake.h"
#include "lake/memory_lake.h"
#include "lake/rows_for_test.h"

namespace mssql_cdc::lake {
namespace {

using columns::BatchReader;
using columns::Field;
using columns::Kind;
using columns::RecordBatch;
using columns::Schema;
using columns::SchemaPtr;
using testing::IsEmpty;
using testing::Optional;
using testing::UnorderedElementsAre;

// A lake, and a second one on the same storage for what another writer does.
class Adapter {
 public:
  virtual ~Adapter() = default;
  virtual Lake& lake() = 0;
  virtual Lake& other() = 0;
  virtual std::string Location(const std::string& name) = 0;
  // Data files in the table's folder, where the lake has one.
  virtual std::optional<std::size_t> DataFileCount(const std::string& name) = 0;
};

class MemoryAdapter final : public Adapter {
 public:
  Lake& lake() override { return lake_; }
  Lake& other() override { return lake_; }
  std::string Location(const std::string& name) override { return "memory/" + name; }
  std::optional<std::size_t> DataFileCount(const std::string&) override {
    return std::nullopt;
  }

 private:
  MemoryLake lake_;
};

class DeltaAdapter final : public Adapter {
 public:
  Lake& lake() override { return lake_; }
  Lake& other() override { return other_; }
  std::string Location(const std::string& name) override {
    return (folder_.path() / name).string();
  }
  std::optional<std::size_t> DataFileCount(const std::string& name) override {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(Location(name))) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

 private:
  TestFolder folder_;
  DeltaLake lake_;
  DeltaLake other_;
};

// The value, or a failed test that says why there is none.
template <typename T>
T Must(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  ADD_FAILURE() << result.error().Text();
  return T();
}

class LakeContract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "Delta") {
      adapter_ = std::make_unique<DeltaAdapter>();
    } else {
      adapter_ = std::make_unique<MemoryAdapter>();
    }
    location_ = adapter_->Location("orders");
  }

  Lake& lake() { return adapter_->lake(); }
  Lake& other() { return adapter_->other(); }

  void Create(const Schema& schema) {
    const Status created = lake().Create(location_, {schema, "", {}});
    ASSERT_TRUE(created.ok()) << created.error().Text();
  }

  Result<AppendResult> Append(Lake& lake, std::unique_ptr<BatchReader> source,
                              std::optional<Txn> txn = std::nullopt,
                              bool merge_schema = false) {
    std::vector<std::unique_ptr<BatchReader>> sources;
    sources.push_back(std::move(source));
    return lake.Append(location_, std::move(sources),
                       {std::move(txn), nullptr, merge_schema});
  }

  std::vector<std::string> Rows(const ReadSpec& spec = {}) {
    return RowsOf(lake(), location_, spec);
  }

  std::unique_ptr<Adapter> adapter_;
  std::string location_;
};

const Schema kOrders{{{"id", {Kind::kInt64}}, {"name", {Kind::kUtf8}}}};

std::unique_ptr<BatchReader> Orders(std::int64_t first, std::int64_t count) {
  return ReadRows(
      kOrders, count,
      [=](std::int64_t row, std::size_t column, columns::ColumnBuilder& out) {
        if (column == 0) {
          out.AppendInt64(first + row);
        } else {
          out.AppendBytes("n" + std::to_string(first + row));
        }
      });
}

// A source that runs something before its first batch, and may fail after that batch.
class ScriptedReader final : public BatchReader {
 public:
  ScriptedReader(std::unique_ptr<BatchReader> rows, std::function<void()> before,
                 bool fails = false)
      : rows_(std::move(rows)), before_(std::move(before)), fails_(fails) {}

  SchemaPtr schema() const override { return rows_->schema(); }
  Result<std::optional<RecordBatch>> Next() override {
    if (before_) std::exchange(before_, nullptr)();
    if (fails_ && was_read_) {
      return Error(ErrorId::kConnectionLost).With("host", "example");
    }
    was_read_ = true;
    return rows_->Next();
  }

 private:
  std::unique_ptr<BatchReader> rows_;
  std::function<void()> before_;
  bool fails_;
  bool was_read_ = false;
};

TEST_P(LakeContract, ThereIsNothingBeforeTheTable) {
  EXPECT_EQ(Must(lake().State(location_)), std::nullopt);
  EXPECT_EQ(Must(lake().LastTxn(location_, "app")), std::nullopt);
  EXPECT_THAT(Must(lake().History(location_, 0)), IsEmpty());
  EXPECT_EQ(lake().Read(location_, {}).error().id(), ErrorId::kLakeUnreachable);
  EXPECT_EQ(lake().RowCount(location_).error().id(), ErrorId::kLakeUnreachable);
  EXPECT_EQ(Append(lake(), Orders(1, 1)).error().id(), ErrorId::kLakeUnreachable);
  EXPECT_EQ(lake().Alter(location_, {}, {{"a", "b"}}).error().id(),
            ErrorId::kLakeUnreachable);
}

TEST_P(LakeContract, CreateIsOneCommitAndKeepsWhatItIsGiven) {
  const Schema schema{{{"_start_lsn", {Kind::kUtf8}, true, "LSN of the commit"},
                       {"_commit_ts", {Kind::kTimestampNtz}, true, "UTC; \"µs\""},
                       {"amount", {Kind::kDecimal128, 18, 4}}}};
  const Status created = lake().Create(
      location_,
      {schema, "All changes of dbo.orders", {{"mssql_cdc.schema_version", "2"}}});
  ASSERT_TRUE(created.ok()) << created.error().Text();
  const auto state = Must(lake().State(location_));
  ASSERT_TRUE(state);
  EXPECT_EQ(state->version, 0);
  EXPECT_EQ(state->schema, schema);
  EXPECT_EQ(state->properties.at("mssql_cdc.schema_version"), "2");
  EXPECT_EQ(Must(lake().RowCount(location_)), 0);
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_P(LakeContract, CreateLeavesATableThatExistsAlone) {
  ASSERT_TRUE(other().Create(location_, {kOrders, "first", {{"a", "1"}}}).ok());
  ASSERT_TRUE(lake().Create(location_, {Schema{{{"x", {Kind::kBool}}}}, "", {}}).ok());
  const auto state = Must(lake().State(location_));
  ASSERT_TRUE(state);
  EXPECT_EQ(state->version, 0);
  EXPECT_EQ(state->schema, kOrders);
  EXPECT_EQ(state->properties.at("a"), "1");
}

TEST_P(LakeContract, AlterAddsAtTheEndOnceAndIgnoringCase) {
  Create(kOrders);
  const std::vector<Field> add = {{"ID", {Kind::kInt64}},
                                  {"discount", {Kind::kDecimal128, 9, 2}, true, "off"},
                                  {"Discount", {Kind::kUtf8}}};
  ASSERT_TRUE(lake().Alter(location_, add, {{"v", "1"}}).ok());
  auto state = Must(lake().State(location_));
  ASSERT_TRUE(state);
  EXPECT_EQ(state->version, 1);
  Schema expected = kOrders;
  expected.fields.push_back(add[1]);
  EXPECT_EQ(state->schema, expected);
  EXPECT_EQ(state->properties.at("v"), "1");
  // Nothing to do: no commit.
  ASSERT_TRUE(lake().Alter(location_, add, {{"v", "1"}}).ok());
  EXPECT_EQ(Must(lake().State(location_))->version, 1);
  ASSERT_TRUE(lake().Alter(location_, {}, {{"v", "2"}}).ok());
  state = Must(lake().State(location_));
  EXPECT_EQ(state->version, 2);
  EXPECT_EQ(state->properties.at("v"), "2");
  EXPECT_EQ(state->schema, expected);
}

TEST_P(LakeContract, AReplayedAppendChangesNothingAndReadsNothing) {
  Create(kOrders);
  const auto first = Append(lake(), Orders(1, 3), Txn{"app", 5});
  ASSERT_TRUE(first.ok()) << first.error().Text();
  EXPECT_EQ(first.value().outcome, AppendOutcome::kCommitted);
  EXPECT_EQ(first.value().version, 1);
  EXPECT_EQ(first.value().row_count, 3);
  EXPECT_GT(first.value().size_bytes, 0);
  EXPECT_THAT(Must(lake().LastTxn(location_, "app")), Optional(5));
  for (const std::int64_t version : {5, 4}) {
    bool was_read = false;
    const auto again =
        Append(lake(),
               std::make_unique<ScriptedReader>(Orders(1, 3), [&] { was_read = true; }),
               Txn{"app", version});
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again.value().outcome, AppendOutcome::kAlreadyThere);
    EXPECT_EQ(again.value().version, 1);
    EXPECT_FALSE(was_read);
  }
  // Gaps are normal, and applications do not see each other.
  ASSERT_EQ(Must(Append(lake(), Orders(4, 1), Txn{"app", 9})).version, 2);
  ASSERT_EQ(Must(Append(lake(), Orders(5, 1), Txn{"other", 0})).version, 3);
  EXPECT_THAT(Must(lake().LastTxn(location_, "app")), Optional(9));
  EXPECT_THAT(Must(lake().LastTxn(location_, "other")), Optional(0));
  EXPECT_EQ(Must(lake().LastTxn(location_, "third")), std::nullopt);
  EXPECT_EQ(Must(lake().RowCount(location_)), 5);
  EXPECT_THAT(Rows(), UnorderedElementsAre("1|n1", "2|n2", "3|n3", "4|n4", "5|n5"));
}

TEST_P(LakeContract, AnAppendWithoutTxnIsNotRecognised) {
  Create(kOrders);
  ASSERT_EQ(Must(Append(lake(), Orders(1, 1))).version, 1);
  ASSERT_EQ(Must(Append(lake(), Orders(1, 1))).version, 2);
  EXPECT_EQ(Must(lake().RowCount(location_)), 2);
}

TEST_P(LakeContract, NoRowsMakeNoCommit) {
  Create(kOrders);
  const auto result = Append(lake(), Orders(1, 0), Txn{"app", 1});
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result.value().outcome, AppendOutcome::kNoRows);
  EXPECT_EQ(result.value().version, 0);
  const auto none = lake().Append(location_, {}, {Txn{"app", 1}, nullptr, true});
  ASSERT_TRUE(none.ok()) << none.error().Text();
  EXPECT_EQ(none.value().outcome, AppendOutcome::kNoRows);
  EXPECT_EQ(Must(lake().LastTxn(location_, "app")), std::nullopt);
}

TEST_P(LakeContract, ColumnsMatchByNameIgnoringCaseAndMissingOnesAreNull) {
  Create(Schema{{{"Id", {Kind::kInt64}}, {"b", {Kind::kUtf8}}, {"C", {Kind::kUtf8}}}});
  const Schema rows{{{"c", {Kind::kUtf8}}, {"ID", {Kind::kInt64}}}};
  const auto result =
      Append(lake(), ReadRows(rows, 1, [](std::int64_t, std::size_t column, auto& out) {
               if (column == 0) {
                 out.AppendBytes("see");
               } else {
                 out.AppendInt64(7);
               }
             }));
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_THAT(Rows(), UnorderedElementsAre("7|NULL|see"));
}

TEST_P(LakeContract, ANewColumnNeedsMergeSchema) {
  Create(kOrders);
  ASSERT_TRUE(Append(lake(), Orders(1, 1)).ok());
  const Schema wider{{{"extra", {Kind::kInt32}, true, "new"}, {"id", {Kind::kInt64}}}};
  const auto rows = [&] {
    return ReadRows(wider, 1, [](std::int64_t, std::size_t column, auto& out) {
      if (column == 0) {
        out.AppendInt32(-3);
      } else {
        out.AppendInt64(2);
      }
    });
  };
  const auto refused = Append(lake(), rows(), Txn{"app", 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().id(), ErrorId::kLakeSchemaMismatch);
  EXPECT_EQ(refused.error().Fact("column"), "extra");
  EXPECT_EQ(Must(lake().State(location_))->version, 0 + 1);
  const auto merged = Append(lake(), rows(), Txn{"app", 1}, true);
  ASSERT_TRUE(merged.ok()) << merged.error().Text();
  const auto state = Must(lake().State(location_));
  EXPECT_EQ(state->version, 2);
  ASSERT_EQ(state->schema.fields.size(), 3u);
  EXPECT_EQ(state->schema.fields[2], wider.fields[0]);
  EXPECT_THAT(Rows(), UnorderedElementsAre("1|n1|NULL", "2|NULL|-3"));
}

TEST_P(LakeContract, ATypeThatDiffersIsRefused) {
  Create(kOrders);
  const Schema wrong{{{"id", {Kind::kInt32}}}};
  for (const bool merge_schema : {false, true}) {
    const auto result = Append(
        lake(), ReadRows(wrong, 1, [](auto, auto, auto& out) { out.AppendInt32(1); }),
        std::nullopt, merge_schema);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().id(), ErrorId::kLakeSchemaMismatch);
    EXPECT_EQ(result.error().Fact("column"), "id");
  }
}

TEST_P(LakeContract, SeveralSourcesLandInOneVersion) {
  Create(kOrders);
  std::vector<std::unique_ptr<BatchReader>> sources;
  for (std::int64_t i = 0; i < 5; ++i) sources.push_back(Orders(i * 10, i));
  sources.push_back(ReadRows(Schema{{{"name", {Kind::kUtf8}}}}, 1,
                             [](auto, auto, auto& out) { out.AppendBytes("lone"); }));
  int asked = 0;
  const auto result =
      lake().Append(location_, std::move(sources),
                    {Txn{"app", 1},
                     [&] {
                       ++asked;
                       return std::optional<std::string>("{\"rows\":11}");
                     },
                     false});
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result.value().version, 1);
  EXPECT_EQ(result.value().row_count, 11);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(Must(lake().RowCount(location_)), 11);
  EXPECT_EQ(Rows({{"NAME"}, {{"id", Condition::Operator::kIsNull, ""}}}),
            std::vector<std::string>{"lone"});
}

TEST_P(LakeContract, MetadataIsAskedForAfterTheSourcesWereDrained) {
  Create(kOrders);
  bool was_read = false;
  bool was_read_first = false;
  std::vector<std::unique_ptr<BatchReader>> sources;
  sources.push_back(
      std::make_unique<ScriptedReader>(Orders(1, 1), [&] { was_read = true; }));
  const auto metadata = [&]() -> std::optional<std::string> {
    was_read_first = was_read;
    return std::nullopt;
  };
  ASSERT_TRUE(
      lake()
          .Append(location_, std::move(sources), {std::nullopt, metadata, false})
          .ok());
  EXPECT_TRUE(was_read_first);
  EXPECT_EQ(Must(lake().History(location_, 1)).at(0).user_metadata, std::nullopt);
}

TEST_P(LakeContract, MetadataThatCannotBeHadCommitsNothing) {
  Create(kOrders);
  std::vector<std::unique_ptr<BatchReader>> sources;
  sources.push_back(Orders(1, 1));
  const auto metadata = []() -> Result<std::optional<std::string>> {
    return Error(ErrorId::kFileFailed);
  };
  const auto appended =
      lake().Append(location_, std::move(sources), {Txn{"app", 1}, metadata, false});
  ASSERT_FALSE(appended.ok());
  EXPECT_EQ(appended.error().id(), ErrorId::kFileFailed);
  EXPECT_EQ(Must(other().History(location_, 0)).size(), 1u);
  EXPECT_EQ(Must(other().LastTxn(location_, "app")), std::nullopt);
}

TEST_P(LakeContract, AFailingSourceLeavesNothing) {
  Create(kOrders);
  ASSERT_TRUE(Append(lake(), Orders(1, 1)).ok());
  const auto files_before = adapter_->DataFileCount("orders");
  for (const bool alone : {true, false}) {
    std::vector<std::unique_ptr<BatchReader>> sources;
    if (!alone) sources.push_back(Orders(10, 5));
    sources.push_back(
        std::make_unique<ScriptedReader>(Orders(20, 5), std::function<void()>(), true));
    if (!alone) sources.push_back(Orders(30, 5));
    const auto result = lake().Append(
        location_, std::move(sources),
        {Txn{"app", 1}, [] { return std::optional<std::string>("x"); }, true});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().id(), ErrorId::kConnectionLost);
    EXPECT_EQ(result.error().Fact("host"), "example");
  }
  EXPECT_EQ(Must(lake().State(location_))->version, 1);
  EXPECT_EQ(Must(lake().LastTxn(location_, "app")), std::nullopt);
  EXPECT_EQ(adapter_->DataFileCount("orders"), files_before);
  EXPECT_EQ(Must(lake().RowCount(location_)), 1);
}

TEST_P(LakeContract, TheSameTxnOfAnotherWriterWins) {
  Create(kOrders);
  const auto meanwhile = [&] {
    ASSERT_TRUE(Append(other(), Orders(1, 2), Txn{"app", 1}).ok());
  };
  const auto result = Append(
      lake(), std::make_unique<ScriptedReader>(Orders(1, 2), meanwhile), Txn{"app", 1});
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result.value().outcome, AppendOutcome::kAlreadyThere);
  EXPECT_EQ(result.value().version, 1);
  EXPECT_EQ(Must(lake().RowCount(location_)), 2);
  if (const auto count = adapter_->DataFileCount("orders")) {
    EXPECT_EQ(*count, 1u);
  }
}

TEST_P(LakeContract, ADifferentTxnOfAnotherWriterIsNoHindrance) {
  Create(kOrders);
  const auto meanwhile = [&] {
    ASSERT_TRUE(Append(other(), Orders(1, 2), Txn{"other", 1}).ok());
    ASSERT_TRUE(other().Alter(location_, {{"late", {Kind::kInt32}}}, {}).ok());
  };
  const auto result = Append(
      lake(), std::make_unique<ScriptedReader>(Orders(3, 2), meanwhile), Txn{"app", 1});
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result.value().outcome, AppendOutcome::kCommitted);
  EXPECT_EQ(result.value().version, 3);
  EXPECT_THAT(Must(lake().LastTxn(location_, "other")), Optional(1));
  EXPECT_THAT(Rows(),
              UnorderedElementsAre("1|n1|NULL", "2|n2|NULL", "3|n3|NULL", "4|n4|NULL"));
}

TEST_P(LakeContract, TheSameNewColumnOfAnotherWriterIsNoHindrance) {
  Create(Schema{{{"id", {Kind::kInt64}}}});
  const auto meanwhile = [&] {
    ASSERT_TRUE(other().Alter(location_, {{"name", {Kind::kUtf8}}}, {}).ok());
  };
  const auto result =
      Append(lake(), std::make_unique<ScriptedReader>(Orders(1, 1), meanwhile),
             Txn{"app", 1}, true);
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result.value().version, 2);
  EXPECT_EQ(Must(lake().State(location_))->schema.fields.size(), 2u);
  EXPECT_THAT(Rows(), UnorderedElementsAre("1|n1"));
}

TEST_P(LakeContract, HistoryHasEveryCommitInOrderWithItsMetadata) {
  Create(kOrders);
  for (int i = 1; i <= 12; ++i) {
    std::vector<std::unique_ptr<BatchReader>> sources;
    sources.push_back(Orders(i, 1));
    const auto metadata = [&] {
      return std::optional<std::string>("{\"batch_id\":" + std::to_string(i) +
                                        ",\"text\":\"ä\\\"\"}");
    };
    ASSERT_TRUE(
        lake()
            .Append(location_, std::move(sources), {Txn{"app", i}, metadata, false})
            .ok());
  }
  const auto all = Must(lake().History(location_, 0));
  ASSERT_EQ(all.size(), 13u);
  EXPECT_EQ(all[0].operation, "CREATE TABLE");
  EXPECT_EQ(all[0].user_metadata, std::nullopt);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].version, static_cast<std::int64_t>(i));
    if (i > 0) {
      EXPECT_EQ(all[i].operation, "WRITE");
      EXPECT_GE(all[i].timestamp_ms, all[i - 1].timestamp_ms);
      EXPECT_EQ(all[i].user_metadata,
                "{\"batch_id\":" + std::to_string(i) + ",\"text\":\"ä\\\"\"}");
    }
  }
  const auto since = Must(other().History(location_, 11));
  ASSERT_EQ(since.size(), 2u);
  EXPECT_EQ(since[0].version, 11);
  EXPECT_THAT(Must(other().LastTxn(location_, "app")), Optional(12));
  EXPECT_EQ(Must(other().RowCount(location_)), 12);
}

TEST_P(LakeContract, ReadSelectsColumnsAndRows) {
  Create(Schema{
      {{"app", {Kind::kUtf8}}, {"event", {Kind::kUtf8}}, {"n", {Kind::kInt32}}}});
  // Two versions, so that files can be told apart by their statistics too.
  for (const std::string app : {"a", "b"}) {
    const Schema schema{
        {{"app", {Kind::kUtf8}}, {"event", {Kind::kUtf8}}, {"n", {Kind::kInt32}}}};
    ASSERT_TRUE(
        Append(lake(), ReadRows(schema, 4,
                                [&](std::int64_t row, std::size_t column, auto& out) {
                                  if (column == 0) {
                                    out.AppendBytes(app);
                                  } else if (column == 2) {
                                    out.AppendInt32(static_cast<int>(row));
                                  } else if (row < 2) {
                                    out.AppendNull();
                                  } else {
                                    out.AppendBytes(row == 2 ? "x" : "");
                                  }
                                }))
            .ok());
  }
  using Op = Condition::Operator;
  const std::vector<std::tuple<std::string, ReadSpec, std::vector<std::string>>> cases =
      {
          {"all",
           {},
           {"a|NULL|0", "a|NULL|1", "a|x|2", "a||3", "b|NULL|0", "b|NULL|1", "b|x|2",
            "b||3"}},
          {"columns in the order asked",
           {{"N", "app"}, {{"event", Op::kEqual, "x"}}},
           {"2|a", "2|b"}},
          {"equal is not null", {{"n"}, {{"event", Op::kEqual, ""}}}, {"3", "3"}},
          {"null",
           {{"app", "n"}, {{"EVENT", Op::kIsNull, ""}, {"app", Op::kEqual, "b"}}},
           {"b|0", "b|1"}},
          {"not null",
           {{"n"}, {{"event", Op::kIsNotNull, ""}, {"app", Op::kEqual, "a"}}},
           {"2", "3"}},
          {"none", {{"n"}, {{"app", Op::kEqual, "c"}}}, {}},
      };
  for (const auto& [name, spec, expected] : cases) {
    EXPECT_THAT(Rows(spec), testing::UnorderedElementsAreArray(expected)) << name;
  }
  for (const ReadSpec& spec :
       {ReadSpec{{"gone"}, {}}, ReadSpec{{}, {{"gone", Op::kIsNull, ""}}},
        ReadSpec{{}, {{"n", Op::kEqual, "1"}}}}) {
    EXPECT_EQ(lake().Read(location_, spec).error().id(), ErrorId::kLakeSchemaMismatch);
  }
}

TEST_P(LakeContract, AReadOutlivesLaterCommitsAndTheRestOfItMayBeLeft) {
  Create(kOrders);
  ASSERT_TRUE(Append(lake(), Orders(1, 3)).ok());
  auto reader = Must(lake().Read(location_, {}));
  ASSERT_TRUE(Append(lake(), Orders(4, 1)).ok());
  const auto batch = reader->Next();
  ASSERT_TRUE(batch.ok() && batch.value());
  EXPECT_EQ(batch.value()->row_count, 3);
  reader.reset();
  EXPECT_EQ(Must(lake().RowCount(location_)), 4);
}

TEST_P(LakeContract, EveryKindKeepsItsExtremesAndNull) {
  Create(EveryKindSchema());
  const auto result = Append(lake(), EveryKindRows());
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(Must(lake().State(location_))->schema, EveryKindSchema());
  EXPECT_EQ(Rows(), TextOf(*EveryKindRows()));
  EXPECT_EQ(Rows().size(), 4u);
}

TEST_P(LakeContract, ManyBatchesOfManyRowsArrive) {
  Create(kOrders);
  constexpr std::int64_t kBatchCount = 20;
  const auto schema = std::make_shared<const Schema>(kOrders);
  std::vector<RecordBatch> batches;
  for (std::int64_t i = 0; i < kBatchCount; ++i) {
    batches.push_back(*Orders(i * 5000, 5000)->Next().value());
  }
  ASSERT_EQ(Append(lake(), columns::ReadBatches(schema, std::move(batches)))
                .value()
                .row_count,
            kBatchCount * 5000);
  EXPECT_EQ(Must(lake().RowCount(location_)), kBatchCount * 5000);
  const auto rows = Rows({{"id"}, {}});
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(kBatchCount * 5000));
  EXPECT_TRUE(std::ranges::find(rows, "99999") != rows.end());
}

INSTANTIATE_TEST_SUITE_P(Adapters, LakeContract, testing::Values("Memory", "Delta"),
                         [](const auto& adapter) { return adapter.param; });

}  // namespace
}  // namespace mssql_cdc::lake
