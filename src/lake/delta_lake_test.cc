// What is true of Delta tables only: their features, their log, their files. What any
// lake must do is in lake_contract_test.cc; what other readers make of the tables is in
// tests/delta.

#include "lake/delta_lake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "lake/rows_for_test.h"

namespace mssql_cdc::lake {
namespace {

using columns::BatchReader;
using columns::ColumnBuilder;
using columns::Kind;
using columns::Schema;
using testing::Optional;

namespace fs = std::filesystem;

const Schema kNames{{{"name", {Kind::kUtf8}}}};

std::unique_ptr<BatchReader> Names(std::int64_t count, std::size_t size_bytes = 4) {
  return ReadRows(kNames, count,
                  [=](std::int64_t row, std::size_t, ColumnBuilder& out) {
                    out.AppendBytes(std::to_string(row) + std::string(size_bytes, 'x'));
                  });
}

// Rows that run something before the first of them is read.
class Interrupted final : public BatchReader {
 public:
  Interrupted(std::unique_ptr<BatchReader> rows, std::function<void()> meanwhile)
      : rows_(std::move(rows)), meanwhile_(std::move(meanwhile)) {}

  columns::SchemaPtr schema() const override { return rows_->schema(); }
  Result<std::optional<columns::RecordBatch>> Next() override {
    if (meanwhile_) std::exchange(meanwhile_, nullptr)();
    return rows_->Next();
  }

 private:
  std::unique_ptr<BatchReader> rows_;
  std::function<void()> meanwhile_;
};

class DeltaLakeTest : public testing::Test {
 protected:
  Result<AppendResult> Append(Lake& lake, std::unique_ptr<BatchReader> source,
                              AppendSpec spec = {}) {
    std::vector<std::unique_ptr<BatchReader>> sources;
    sources.push_back(std::move(source));
    return lake.Append(location_, std::move(sources), spec);
  }

  void Create(const Schema& schema) {
    const Status created = lake_.Create(location_, {schema, "", {}});
    ASSERT_TRUE(created.ok()) << created.error().Text();
  }

  // A table as another writer would make it, from its first log entry.
  void WriteLog(std::string_view protocol, std::string_view schema_fields,
                std::string_view partitions = "[]") {
    fs::create_directories(location_ + "/_delta_log");
    std::ofstream log(LogFile(0));
    log << R"({"protocol":)" << protocol << "}\n"
        << R"({"metaData":{"id":"0d5c2e0e-6e5b-4f4e-9f3f-3c7c9f6f1a11","format":{)"
        << R"("provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",)"
        << R"(\"fields\":[)" << schema_fields << R"(]}","partitionColumns":)"
        << partitions << R"(,"configuration":{},"createdTime":1}})" << '\n';
  }

  std::string LogFile(int version) const {
    const std::string digits = std::to_string(version);
    return location_ + "/_delta_log/" + std::string(20 - digits.size(), '0') + digits +
           ".json";
  }

  std::size_t FileCount() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(location_)) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  TestFolder folder_;
  std::string location_ = (folder_.path() / "t").string();
  DeltaLake lake_;
};

constexpr std::string_view kLegacyProtocol =
    R"({"minReaderVersion":1,"minWriterVersion":2})";
constexpr std::string_view kNameField =
    R"({\"name\":\"name\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}})";

TEST_F(DeltaLakeTest, AColumnThatNeedsAProtocolUpgradeIsRefused) {
  const std::vector<columns::Field> refused = {{"at", {Kind::kTimestampNtz}},
                                               {"order id", {Kind::kInt32}}};
  Create(kNames);  // No timestamp_ntz and no special name: reader 1, writer 2.
  for (const columns::Field& field : refused) {
    const Status altered = lake_.Alter(location_, {field}, {});
    ASSERT_FALSE(altered.ok()) << field.name;
    EXPECT_EQ(altered.error().id(), ErrorId::kLakeTableUnsupported);
    EXPECT_EQ(altered.error().Fact("column"), field.name);
    const auto appended = Append(
        lake_,
        ReadRows(Schema{{field}}, 1, [](auto, auto, auto& out) { out.AppendNull(); }),
        {std::nullopt, nullptr, true});
    ASSERT_FALSE(appended.ok()) << field.name;
    EXPECT_EQ(appended.error().id(), ErrorId::kLakeTableUnsupported);
  }
  EXPECT_EQ(lake_.State(location_).value()->version, 0);
}

TEST_F(DeltaLakeTest, AFirstTimestampNtzMayComeLaterWhereTheTableHasTheFeature) {
  WriteLog(
      R"({"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["timestampNtz"],)"
      R"("writerFeatures":["timestampNtz"]})",
      kNameField);
  const Status altered = lake_.Alter(location_, {{"at", {Kind::kTimestampNtz}}}, {});
  ASSERT_TRUE(altered.ok()) << altered.error().Text();
  EXPECT_EQ(lake_.State(location_).value()->schema.fields.size(), 2u);
}

TEST_F(DeltaLakeTest, TablesItCannotWriteAreRefusedBeforeAnythingIsRead) {
  struct Case {
    std::string name;
    std::string_view protocol;
    std::string_view fields;
    std::string_view partitions;
  };
  const Case cases[] = {
      {"partitioned", kLegacyProtocol, kNameField, R"(["name"])"},
      {"unknown feature",
       R"({"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["notInvented"]})",
       kNameField, "[]"},
      {"generated columns of a legacy version",
       R"({"minReaderVersion":1,"minWriterVersion":4})", kNameField, "[]"},
  };
  for (const Case& tried : cases) {
    fs::remove_all(location_);
    WriteLog(tried.protocol, tried.fields, tried.partitions);
    bool was_read = false;
    const auto result = Append(
        lake_, std::make_unique<Interrupted>(Names(1), [&] { was_read = true; }));
    ASSERT_FALSE(result.ok()) << tried.name;
    EXPECT_EQ(result.error().id(), ErrorId::kLakeTableUnsupported)
        << tried.name << ": " << result.error().Text();
    EXPECT_FALSE(was_read) << tried.name;
  }
}

TEST_F(DeltaLakeTest, AColumnTypeOutsideOfTheSetIsNamed) {
  WriteLog(
      kLegacyProtocol,
      R"({\"name\":\"tags\",\"type\":{\"type\":\"array\",\"elementType\":\"string\",)"
      R"(\"containsNull\":true},\"nullable\":true,\"metadata\":{}})");
  const auto state = lake_.State(location_);
  ASSERT_FALSE(state.ok());
  EXPECT_EQ(state.error().id(), ErrorId::kLakeTableUnsupported);
  EXPECT_EQ(state.error().Fact("column"), "tags");
  EXPECT_EQ(state.error().Fact("type"), "array");
}

TEST_F(DeltaLakeTest, ARequiredColumnMustBeInTheRows) {
  WriteLog(
      kLegacyProtocol,
      R"({\"name\":\"id\",\"type\":\"long\",\"nullable\":false,\"metadata\":{}},)"
      R"({\"name\":\"name\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}})");
  const auto result = Append(lake_, Names(1));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id(), ErrorId::kLakeSchemaMismatch);
  EXPECT_EQ(result.error().Fact("column"), "id");
}

TEST_F(DeltaLakeTest, ADamagedLogIsReportedAsSuch) {
  Create(kNames);
  std::ofstream(LogFile(1)) << "{\"add\": nonsense\n";
  for (Lake* lake : {static_cast<Lake*>(&lake_), static_cast<Lake*>(new DeltaLake)}) {
    const auto state = lake->State(location_);
    ASSERT_FALSE(state.ok());
    EXPECT_EQ(state.error().id(), ErrorId::kLakeFailed) << state.error().Text();
    if (lake != &lake_) delete lake;
  }
}

TEST_F(DeltaLakeTest, ALocationThatCannotBeIsRefused) {
  std::ofstream(location_) << "a file";
  const Status below = lake_.Create(location_ + "/t", {kNames, "", {}});
  ASSERT_FALSE(below.ok());
  EXPECT_EQ(below.error().id(), ErrorId::kLakeRefused) << below.error().Text();
  for (const char* bad : {"", "per%20cent"}) {
    const Status created = lake_.Create(bad, {kNames, "", {}});
    ASSERT_FALSE(created.ok()) << bad;
    EXPECT_EQ(created.error().id(), ErrorId::kLakeRefused) << created.error().Text();
  }
  const Status unknown = lake_.Create("nothing://host/t", {kNames, "", {}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().id(), ErrorId::kLakeUnreachable) << unknown.error().Text();
}

TEST_F(DeltaLakeTest, AFullDiskLeavesTheTableAsItWas) {
  Create(kNames);
  ASSERT_TRUE(Append(lake_, Names(1)).ok());
  const auto former_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit former{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &former), 0);
  rlimit small = former;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto result = Append(lake_, Names(2000, 200));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &former), 0);
  std::signal(SIGXFSZ, former_handler);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id(), ErrorId::kLakeUnreachable) << result.error().Text();
  EXPECT_EQ(lake_.State(location_).value()->version, 1);
  EXPECT_EQ(FileCount(), 1u);
  ASSERT_TRUE(Append(lake_, Names(1)).ok());
}

TEST_F(DeltaLakeTest, AFolderThatWasMadeAgainIsSeen) {
  Create(kNames);
  ASSERT_TRUE(Append(lake_, Names(3), {Txn{"app", 1}, nullptr, false}).ok());
  fs::remove_all(location_);
  EXPECT_EQ(lake_.State(location_).value(), std::nullopt);
  DeltaLake other;
  ASSERT_TRUE(other.Create(location_, {kNames, "", {}}).ok());
  ASSERT_TRUE(Append(other, Names(1), {Txn{"app", 0}, nullptr, false}).ok());
  EXPECT_THAT(lake_.LastTxn(location_, "app").value(), Optional(0));
  fs::remove_all(location_);
  ASSERT_TRUE(other.Create(location_, {kNames, "", {}}).ok());
  ASSERT_TRUE(Append(other, Names(2), {Txn{"app", 7}, nullptr, false}).ok());
  EXPECT_THAT(lake_.LastTxn(location_, "app").value(), Optional(7));
  EXPECT_EQ(lake_.RowCount(location_).value(), 2);
}

TEST_F(DeltaLakeTest, AnyPathWillDo) {
  const std::string paths[] = {"with space", "hash#question?", "umlaut ä 😀",
                               "deep/er/still", "slash/"};
  for (const std::string& path : paths) {
    location_ = folder_.path().string() + '/' + path;
    Create(kNames);
    ASSERT_TRUE(Append(lake_, Names(2), {Txn{"app", 1}, nullptr, false}).ok()) << path;
    EXPECT_TRUE(fs::exists(location_ + "/_delta_log")) << path;
    EXPECT_EQ(RowsOf(lake_, location_, {}).size(), 2u) << path;
    EXPECT_EQ(lake_.History(location_, 0).value().size(), 2u) << path;
    EXPECT_EQ(FileCount(), 1u) << path;
  }
}

TEST_F(DeltaLakeTest, EveryTenthVersionHasACheckpoint) {
  {
    DeltaLake lake;
    ASSERT_TRUE(lake.Create(location_, {kNames, "", {}}).ok());
    for (std::int64_t i = 1; i <= 21; ++i) {
      ASSERT_TRUE(Append(lake, Names(1), {Txn{"app", i}, nullptr, false}).ok());
      EXPECT_THAT(lake.LastTxn(location_, "app").value(), Optional(i));
    }
  }
  for (int version = 0; version <= 21; ++version) {
    std::string checkpoint = LogFile(version);
    checkpoint.replace(checkpoint.size() - 4, 4, "checkpoint.parquet");
    EXPECT_EQ(fs::exists(checkpoint), version == 10 || version == 20) << version;
  }
  std::ifstream hint(location_ + "/_delta_log/_last_checkpoint");
  std::string text;
  std::getline(hint, text);
  EXPECT_THAT(text, testing::HasSubstr("\"version\":20"));
  // The log below the checkpoint is not needed any more.
  for (int version = 0; version < 20; ++version) fs::remove(LogFile(version));
  EXPECT_EQ(lake_.RowCount(location_).value(), 21);
  EXPECT_THAT(lake_.LastTxn(location_, "app").value(), Optional(21));
  EXPECT_EQ(lake_.History(location_, 0).value().size(), 2u);
}

TEST_F(DeltaLakeTest, ManyWritersAllLandOnce) {
  constexpr int kWriterCount = 4;
  constexpr std::int64_t kCommitCount = 8;
  std::vector<std::string> failures(kWriterCount);
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriterCount; ++writer) {
    threads.emplace_back([&, writer] {
      DeltaLake lake;
      const Status created = lake.Create(location_, {kNames, "", {}});
      if (!created.ok())
        failures[static_cast<std::size_t>(writer)] = created.error().Text();
      for (std::int64_t i = 0; i < kCommitCount; ++i) {
        // Writers come in pairs of one application: each of its numbers lands once.
        const Txn txn{"app" + std::to_string(writer / 2), i};
        const auto result = Append(lake, Names(1), {txn, nullptr, false});
        if (!result.ok())
          failures[static_cast<std::size_t>(writer)] = result.error().Text();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(failures, testing::Each(testing::IsEmpty()));
  EXPECT_EQ(lake_.State(location_).value()->version, kWriterCount / 2 * kCommitCount);
  EXPECT_EQ(lake_.RowCount(location_).value(), kWriterCount / 2 * kCommitCount);
  EXPECT_EQ(FileCount(), static_cast<std::size_t>(kWriterCount / 2 * kCommitCount));
}

TEST_F(DeltaLakeTest, AReplacedTableIsAConflict) {
  Create(kNames);
  const auto meanwhile = [&] {
    fs::remove_all(location_);
    DeltaLake other;
    ASSERT_TRUE(other.Create(location_, {kNames, "", {}}).ok());
    ASSERT_TRUE(Append(other, Names(1)).ok());
  };
  const auto result = Append(lake_, std::make_unique<Interrupted>(Names(1), meanwhile));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id(), ErrorId::kLakeConflict) << result.error().Text();
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(DeltaLakeTest, NewMappedColumnsThatLoseAreAConflict) {
  Create(Schema{{{"the name", {Kind::kUtf8}}}});
  DeltaLake other;
  const auto meanwhile = [&] {
    ASSERT_TRUE(other.Alter(location_, {}, {{"a", "b"}}).ok());
  };
  const auto append = [&](std::function<void()> before) {
    return Append(lake_, std::make_unique<Interrupted>(Names(1), std::move(before)),
                  {std::nullopt, nullptr, true});
  };
  const auto lost = append(meanwhile);
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().id(), ErrorId::kLakeConflict) << lost.error().Text();
  ASSERT_TRUE(append(nullptr).ok());
  EXPECT_EQ(RowsOf(lake_, location_, {}), std::vector<std::string>{"NULL|0xxxx"});
}

TEST_F(DeltaLakeTest, DeltasOwnPropertiesAreNotSet) {
  const Status created =
      lake_.Create(location_, {kNames, "", {{"delta.enableChangeDataFeed", "true"}}});
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().id(), ErrorId::kLakeTableUnsupported);
  EXPECT_EQ(lake_.State(location_).value(), std::nullopt);
}

TEST_F(DeltaLakeTest, LongRowsBecomeSeveralRowGroupsAndStayWhole) {
  Create(kNames);
  std::vector<columns::RecordBatch> batches;
  for (int i = 0; i < 8; ++i) batches.push_back(*Names(5, 1 << 20)->Next().value());
  const auto result = Append(
      lake_,
      columns::ReadBatches(std::make_shared<const Schema>(kNames), std::move(batches)));
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result.value().row_count, 40);
  const auto rows = RowsOf(lake_, location_, {});
  ASSERT_EQ(rows.size(), 40u);
  for (const std::string& row : rows) EXPECT_EQ(row.size(), (1u << 20) + 1);
}

}  // namespace
}  // namespace mssql_cdc::lake
