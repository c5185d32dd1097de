#include "runtime/metrics_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/files.h"

namespace mssql_cdc::runtime {
namespace {

class MetricsFilesTest : public testing::Test {
 protected:
  ~MetricsFilesTest() override { std::filesystem::remove_all(folder_); }

  static cdc::Lsn L(std::uint8_t last) {
    return cdc::Lsn{{0, 0, 0, 1, 0, 0, 0, 2, 0, last}};
  }
  std::string Content(const std::string& name) {
    return ReadFileIfThere(files_.directory() + "/" + name)
        .value()
        .value_or("(not there)");
  }

  const std::string folder_ =
      testing::TempDir() + "mssql_cdc_metrics_" + std::to_string(::getpid());
  MetricsFiles files_{"file://" + folder_, "orders-v1"};
};

TEST_F(MetricsFilesTest, ARangesFileIsTheExistingPackagesAndIsReadBack) {
  RangeMetrics range;
  range.window = {L(5), L(9)};
  range.row_count = 3;
  range.size_bytes = 1000;
  range.read_seconds = 0.25;
  range.rtt_ms = 1.5;
  range.network_wait_ms = 7;
  range.retention_watermark_us = 1'795'161'600'000'000;
  ASSERT_TRUE(files_.WriteRange(range).ok());
  EXPECT_EQ(Content("0x00000001000000020006-0x00000001000000020009.json"),
            R"({"from_lsn":"0x00000001000000020006","to_lsn":"0x00000001000000020009",)"
            R"("rows":3,"bytes":1000,"seconds":0.25,"rtt_ms":1.5,"network_wait_ms":7,)"
            R"("retention_watermark_ts":"2026-11-20T08:00:00.000",)"
            R"("source_max_commit_ts":null})");
  EXPECT_EQ(files_.ReadRanges({L(5), L(9)}).value(), std::vector<RangeMetrics>{range});
  EXPECT_TRUE(files_.ReadRanges({L(6), L(9)}).value().empty());
  EXPECT_TRUE(files_.ReadRanges({L(5), L(8)}).value().empty());
}

TEST_F(MetricsFilesTest, AnEventsFileIsNamedByWhatAReplayFindsAgain) {
  cdc::SourceEvent ddl;
  ddl.capture_instance = "dbo_orders";
  ddl.at = {L(7), 1'795'161'600'000'000};
  ddl.detail = "ALTER TABLE x";
  cdc::SourceEvent skip = cdc::PossibleLoss("a/b", {L(5), L(9)}, L(8), std::nullopt);
  for (int time = 0; time < 2; ++time) {
    ASSERT_TRUE(files_.WriteEvent(ddl).ok());
    ASSERT_TRUE(files_.WriteEvent(skip).ok());
  }
  EXPECT_EQ(Content("event-schema_change-0x00000001000000020007.json"),
            R"({"event":"schema_change","capture_instance":"dbo_orders",)"
            R"("lsn":"0x00000001000000020007","commit_ts":"2026-11-20T08:00:00.000",)"
            R"("detail":"ALTER TABLE x"})");
  EXPECT_NE(Content("event-data_skipped-a_b-0x00000001000000020006.json"),
            "(not there)");
  EXPECT_TRUE(files_.ReadRanges({L(1), L(200)}).value().empty());
}

TEST_F(MetricsFilesTest, ADoneBatchLeavesNone) {
  ASSERT_TRUE(files_.RemoveAll().ok());  // The folder is not there yet.
  ASSERT_TRUE(files_.WriteRange({{L(5), L(9)}, 0, 0, 0, {}, {}, {}, {}}).ok());
  ASSERT_TRUE(ReplaceFile(files_.directory() + "/broken.json", "{").ok());
  ASSERT_TRUE(ReplaceFile(files_.directory() + "/else.txt", "").ok());
  EXPECT_EQ(files_.ReadRanges({L(1), L(200)}).value().size(), 1u);
  ASSERT_TRUE(files_.RemoveAll().ok());
  EXPECT_TRUE(files_.ReadRanges({L(1), L(200)}).value().empty());
  EXPECT_EQ(Content("else.txt"), "");
}

TEST(LocalDirectory, IsAPathOrAFileUri) {
  EXPECT_EQ(LocalDirectory("/m"), "/m");
  EXPECT_EQ(LocalDirectory("C:/m"), "C:/m");
  EXPECT_EQ(LocalDirectory("FILE:///m"), "/m");
  EXPECT_EQ(LocalDirectory("s3://b/m"), std::nullopt);
}

}  // namespace
}  // namespace mssql_cdc::runtime
