#include "runtime/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/files.h"

namespace mssql_cdc::runtime {
namespace {

// Forms of files that mssql-cdc-pyspark 0.8.0 left under Spark 4.2 (offsets/3 and
// commits/3 of its stream "orders"; of conf's fifteen settings three).
constexpr char kSparkOffsets[] =
    "v1\n"
    R"({"batchWatermarkMs":0,"batchTimestampMs":1795979752738,"conf":{)"
    R"("spark.sql.streaming.stateStore.encodingFormat":"unsaferow",)"
    R"("spark.sql.shuffle.partitions":"4",)"
    R"("spark.sql.streaming.multipleWatermarkPolicy":"min"}})"
    "\n"
    R"({"lsn": "0x0000002A000001000091", "commit_ts": "2026-11-20T10:00:00.000"})";
constexpr char kSparkPending[] =
    "v1\n"
    R"({"batchWatermarkMs":0,"batchTimestampMs":1795979810997,"conf":{)"
    R"("spark.sql.streaming.stateStore.encodingFormat":"unsaferow",)"
    R"("spark.sql.shuffle.partitions":"4",)"
    R"("spark.sql.streaming.multipleWatermarkPolicy":"min"}})"
    "\n"
    R"({"lsn": "0x0000002A0000010000B1", "commit_ts": "2026-11-20T10:20:00.000"})";
constexpr char kSparkCommit[] = "v1\n{\"nextBatchWatermarkMs\":0}";

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest()
      : directory_(testing::TempDir() + "mssql_cdc_checkpoint_" +
                   std::to_string(::getpid())) {
    Fresh();
  }
  ~CheckpointTest() override { std::filesystem::remove_all(directory_); }

  void Fresh() { std::filesystem::remove_all(directory_); }
  void Put(const std::string& name, const std::string& content) {
    const std::filesystem::path path = directory_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  std::string Get(const std::string& name) {
    return ReadFileIfThere(directory_ + "/" + name).value().value_or("(none)");
  }

  const std::string directory_;
};

cdc::Offset At(const char* lsn) { return {cdc::Lsn::Parse(lsn).value(), std::nullopt}; }

TEST_F(CheckpointTest, ANewOneGoesThroughItsStates) {
  Result<Checkpoint> opened = Checkpoint::Open(directory_);
  ASSERT_TRUE(opened.ok()) << opened.error().Text();
  Checkpoint& checkpoint = opened.value();
  EXPECT_EQ(checkpoint.state().position(), std::nullopt);
  EXPECT_EQ(Get("metadata").size(), std::string(R"({"id":""})").size() + 36);

  ASSERT_TRUE(checkpoint.SetInitial(At("10")).ok());
  EXPECT_EQ(checkpoint.state().position(), At("10"));
  EXPECT_EQ(checkpoint.state().next_batch_id(), 0);
  ASSERT_TRUE(checkpoint.Begin(At("20"), 1'795'979'752'738).ok());
  EXPECT_EQ(Get("offsets/0"),
            "v1\n{\"batchWatermarkMs\":0,\"batchTimestampMs\":1795979752738,"
            "\"conf\":{\"spark.sql.shuffle.partitions\":\"200\"}}\n"
            "{\"lsn\": \"0x00000000000000000020\", \"commit_ts\": \"\"}");
  EXPECT_EQ(checkpoint.state().pending, At("20"));
  EXPECT_EQ(checkpoint.state().position(), At("10"));
  ASSERT_TRUE(checkpoint.Commit().ok());
  EXPECT_EQ(Get("commits/0"), kSparkCommit);
  EXPECT_EQ(checkpoint.state().position(), At("20"));
  EXPECT_EQ(checkpoint.state().next_batch_id(), 1);

  const CheckpointState before = checkpoint.state();
  ASSERT_TRUE(checkpoint.Reload().ok());
  EXPECT_EQ(checkpoint.state().position(), before.position());
  EXPECT_EQ(checkpoint.state().committed_batch_id, 0);
}

TEST_F(CheckpointTest, ACheckpointThatWentAwayIsNotTakenForANewOne) {
  Result<Checkpoint> opened = Checkpoint::Open(directory_);
  ASSERT_TRUE(opened.ok()) << opened.error().Text();
  Checkpoint& checkpoint = opened.value();
  ASSERT_TRUE(checkpoint.SetInitial(At("10")).ok());
  const std::filesystem::path all = directory_;
  for (const auto& entry : std::filesystem::directory_iterator(all)) {
    std::filesystem::remove_all(entry.path());
  }
  const Status reloaded = checkpoint.Reload();
  ASSERT_FALSE(reloaded.ok());
  EXPECT_EQ(reloaded.error().id(), ErrorId::kCheckpointRewound);
  EXPECT_EQ(checkpoint.state().position(), At("10"));
}

TEST_F(CheckpointTest, ABatchThatSparkBeganIsPendingAndItsSettingsAreCarriedOn) {
  Put("metadata", R"({"id":"00b65f24-b716-4688-b8a4-b3c2d0cbe14a"})");
  Put("offsets/3", kSparkOffsets);
  Put("offsets/4", kSparkPending);
  Put("offsets/.4.crc", "crc");
  Put("commits/3", kSparkCommit);
  Result<Checkpoint> opened = Checkpoint::Open(directory_);
  ASSERT_TRUE(opened.ok()) << opened.error().Text();
  Checkpoint& checkpoint = opened.value();
  EXPECT_EQ(checkpoint.state().committed_batch_id, 3);
  EXPECT_EQ(
      checkpoint.state().position()->Json(),
      R"({"lsn": "0x0000002A000001000091", "commit_ts": "2026-11-20T10:00:00.000"})");
  EXPECT_EQ(checkpoint.state().pending->lsn.Text(), "0x0000002A0000010000B1");
  EXPECT_EQ(Get("metadata"), R"({"id":"00b65f24-b716-4688-b8a4-b3c2d0cbe14a"})");
  EXPECT_EQ(Get("offsets/4"), kSparkPending);

  ASSERT_TRUE(checkpoint.Commit().ok());
  ASSERT_TRUE(checkpoint.Begin(At("2A0000010000C1"), 1).ok());
  EXPECT_EQ(Get("offsets/5"),
            "v1\n{\"batchWatermarkMs\":0,\"batchTimestampMs\":1,\"conf\":{"
            "\"spark.sql.streaming.stateStore.encodingFormat\":\"unsaferow\","
            "\"spark.sql.shuffle.partitions\":\"4\","
            "\"spark.sql.streaming.multipleWatermarkPolicy\":\"min\"}}\n"
            "{\"lsn\": \"0x0000002A0000010000C1\", \"commit_ts\": \"\"}");
}

TEST_F(CheckpointTest, TheLiveGenerationIsContinued) {
  Put("offsets/4", kSparkPending);
  Put("_mssql_cdc_generation.json",
      R"({"generation": 2, "snapshot_lsn": "0x0000002A0000010000E1", )"
      R"("commit_ts": "2026-11-20T10:50:00.000", "at": "2026-11-29T19:17:50+00:00"})");
  Result<Checkpoint> opened = Checkpoint::Open(directory_);
  ASSERT_TRUE(opened.ok()) << opened.error().Text();
  EXPECT_EQ(opened.value().state().generation, 2);
  EXPECT_EQ(opened.value().state().position()->lsn.Text(), "0x0000002A0000010000E1");
  EXPECT_EQ(opened.value().state().next_batch_id(), 0);
  ASSERT_TRUE(opened.value().Begin(At("FF"), 1).ok());
  EXPECT_NE(Get("_generations/2/offsets/0"), "(none)");
}

// The checkpoints themselves, where they are at hand.
TEST_F(CheckpointTest, TheExistingPackagesCheckpointsAreRead) {
  const std::string data = std::string(MSSQL_CDC_SOURCE_DIR) +
                           "/../shared/data/existing-package-0.8.0/ckpt/";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no " << data;
  const struct {
    const char* name;
    std::int64_t generation;
    std::int64_t committed_batch_id;
    const char* position;
  } kRows[] = {
      {"lines", 0, 1, nullptr},
      {"orders", 2, 0, nullptr},
      {"orders/_generations/1", 0, 1, nullptr},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.name);
    Fresh();
    std::filesystem::copy(data + row.name, directory_,
                          std::filesystem::copy_options::recursive);
    Result<Checkpoint> opened = Checkpoint::Open(directory_);
    ASSERT_TRUE(opened.ok()) << opened.error().Text();
    EXPECT_EQ(opened.value().state().generation, row.generation);
    EXPECT_EQ(opened.value().state().committed_batch_id, row.committed_batch_id);
    EXPECT_TRUE(opened.value().state().position()->commit_us.has_value());
    EXPECT_EQ(opened.value().state().pending, std::nullopt);
    ASSERT_TRUE(opened.value().Begin(At("FFFF0000000000000000"), 1).ok());
    ASSERT_TRUE(opened.value().Commit().ok());
  }
}

TEST_F(CheckpointTest, WhatCannotBeUnderstoodIsRefused) {
  const struct {
    const char* when;
    std::vector<std::pair<const char*, std::string>> files;
  } kRows[] = {
      {"another log version", {{"offsets/0", "v2\n{}\n{\"lsn\": \"0x01\"}"}}},
      {"no version", {{"offsets/0", ""}}},
      {"cut off", {{"offsets/0", "v1\n{}"}}},
      {"metadata is no object", {{"offsets/0", "v1\n[]\n{\"lsn\": \"0x01\"}"}}},
      {"no offset", {{"offsets/0", "v1\n{}\n-"}}},
      {"commit of another version",
       {{"offsets/0", kSparkOffsets}, {"commits/0", "v9\n{}"}}},
      {"commit without its offsets", {{"commits/7", kSparkCommit}}},
      {"a batch in between was never done",
       {{"offsets/0", kSparkOffsets},
        {"commits/0", kSparkCommit},
        {"offsets/2", kSparkOffsets}}},
      {"generation without a number",
       {{"_mssql_cdc_generation.json", "{\"generation\": \"two\"}"}}},
      {"initial offset is damaged", {{"_mssql_cdc_initial_offset.json", "{"}}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    Fresh();
    for (const auto& [name, content] : row.files) Put(name, content);
    const Result<CheckpointState> state = ReadCheckpoint(directory_);
    ASSERT_FALSE(state.ok());
    EXPECT_EQ(state.error().id(), ErrorId::kCheckpointUnreadable)
        << state.error().Text();
  }
}

TEST_F(CheckpointTest, SomebodyElsesBatchIsNotOverwritten) {
  Result<Checkpoint> opened = Checkpoint::Open(directory_);
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(opened.value().SetInitial(At("10")).ok());
  Put("offsets/0", kSparkOffsets);
  const Status begun = opened.value().Begin(At("20"), 1);
  ASSERT_FALSE(begun.ok());
  EXPECT_EQ(begun.error().id(), ErrorId::kCheckpointInUse);
  EXPECT_EQ(Get("offsets/0"), kSparkOffsets);
}

TEST_F(CheckpointTest, KeepsAHundredBatches) {
  Result<Checkpoint> opened = Checkpoint::Open(directory_);
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(opened.value().SetInitial(At("10")).ok());
  Put("offsets/.0.crc", "crc");
  for (std::int64_t i = 0; i < 103; ++i) {
    ASSERT_TRUE(opened.value().Begin(At("20"), i).ok());
    ASSERT_TRUE(opened.value().Commit().ok());
  }
  const std::vector<std::int64_t> offsets =
      NumberedFiles(directory_ + "/offsets").value();
  EXPECT_EQ(offsets.size(), 100u);
  EXPECT_EQ(offsets.front(), 3);
  EXPECT_EQ(NumberedFiles(directory_ + "/commits").value(), offsets);
  EXPECT_EQ(Get("offsets/.0.crc"), "(none)");
}

TEST_F(CheckpointTest, LeftoversOfAKillAreNobodysBatch) {
  Put("offsets/.0.mssql-cdc.tmp", "v1\nhal");
  Put("offsets/.1.1f0a.tmp", "v1");
  Result<Checkpoint> opened = Checkpoint::Open(directory_);
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.value().state().pending, std::nullopt);
  ASSERT_TRUE(opened.value().Begin(At("20"), 1).ok());
}

TEST_F(CheckpointTest, FilesThatCannotBeWrittenAreErrors) {
  Put("a-file", "x");
  const std::string below_a_file = directory_ + "/a-file/checkpoint";
  const Result<Checkpoint> opened = Checkpoint::Open(below_a_file);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().id(), ErrorId::kFileRefused);
  EXPECT_FALSE(ReplaceFile(directory_ + "/missing/name", "x").ok());
  EXPECT_TRUE(CheckWritable(directory_ + "/new/folder").ok());
  const Status refused = CheckWritable(below_a_file);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().id(), ErrorId::kFileRefused);
  EXPECT_EQ(refused.error().Fact("path"), directory_ + "/a-file");
}

}  // namespace
}  // namespace mssql_cdc::runtime
