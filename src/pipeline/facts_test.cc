#include "pipeline/facts.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "cdc/cells.h"
#include "pipeline/tables.h"

namespace mssql_cdc::pipeline {
namespace {

cdc::Lsn L(const char* text) { return cdc::Lsn::Parse(text).value(); }
std::int64_t T(const char* text) { return ParseIsoUs(text).value(); }

// Batches 1 and 3 of stream "orders-v1", as the facts table that mssql-cdc-pyspark
// 0.8.0 wrote has them (lag from its own clock).
TEST(BatchFacts, AreWhatTheExistingPackageWrites) {
  const BatchRun run{"orders-v1", "/lake/bronze_orders",
                     1,           T("2026-11-29T19:15:23.572"),
                     1573,        T("2026-11-29T19:15:25.145")};
  const BatchCounts counts{6,
                           L("0x0000002A000001000041"),
                           L("0x0000002A000001000051"),
                           T("2026-11-20T08:40:00"),
                           T("2026-11-20T08:41:00"),
                           1,
                           1,
                           2};
  ReadMetrics metrics;
  metrics.end = {L("0x0000002A000001000061"), T("2026-11-20T09:35:00")};
  metrics.read_seconds = 0.0019;
  metrics.size_bytes = 901;
  metrics.retention_watermark_us = T("2026-11-20T08:00:00");
  metrics.source_max_commit_us = T("2026-11-20T09:35:00");
  metrics.observed_at_us = T("2026-11-29T19:15:24.211");
  const FactsRow row = BatchFacts(run, counts, metrics);
  EXPECT_EQ(row.read_seconds, 0.002);
  EXPECT_EQ(row.read_mb, 9.01e-4);
  EXPECT_EQ(row.retention_headroom_hours, 1.58);
  EXPECT_EQ(row.capture_lag_seconds, 812424.211);
  EXPECT_EQ(row.ingestion_lag_seconds, 0.0);
  EXPECT_EQ(row.end_lsn, "0x0000002A000001000061");
  EXPECT_EQ(row.max_lsn, "0x0000002A000001000051");
  EXPECT_EQ(row.updates, 2);
  EXPECT_EQ(row.source_rtt_ms, std::nullopt);
  EXPECT_EQ(row.event, std::nullopt);
  EXPECT_EQ(row.detail, std::nullopt);
}

TEST(BatchFacts, WithoutMetricsOnlyCountsAreKnown) {
  const FactsRow row = BatchFacts({"a", "t", 0, 1, 2, 3}, {}, std::nullopt);
  FactsRow expected;
  expected.app_id = "a";
  expected.batch_id = expected.rows = 0;
  expected.deletes = expected.inserts = expected.updates = 0;
  expected.started_at = 1;
  expected.duration_ms = 2;
  expected.written_at = 3;
  expected.target = "t";
  EXPECT_EQ(row, expected);
}

TEST(BatchFacts, ThePositionIsTheEndsTimeElseTheLastRows) {
  ReadMetrics metrics;
  metrics.end = {L("0x61"), std::nullopt};
  metrics.retention_watermark_us = 0;
  metrics.source_max_commit_us = 7'200'000'000;
  BatchCounts counts;
  EXPECT_EQ(BatchFacts({}, counts, metrics).retention_headroom_hours, std::nullopt);
  EXPECT_EQ(BatchFacts({}, counts, metrics).ingestion_lag_seconds, std::nullopt);
  counts.max_commit_us = 3'600'000'000;
  EXPECT_EQ(BatchFacts({}, counts, metrics).retention_headroom_hours, 1.0);
  EXPECT_EQ(BatchFacts({}, counts, metrics).ingestion_lag_seconds, 3600.0);
  metrics.retention_watermark_us = 7'200'000'000;
  EXPECT_EQ(BatchFacts({}, counts, metrics).retention_headroom_hours, -1.0);
}

// The right sides are what Python's round() gives.
TEST(RoundTo, RoundsTheBinaryValueHalvesToEven) {
  EXPECT_EQ(RoundTo(0.5, 0), 0.0);
  EXPECT_EQ(RoundTo(1.5, 0), 2.0);
  EXPECT_EQ(RoundTo(2.675, 2), 2.67);
  EXPECT_EQ(RoundTo(0.125, 2), 0.12);
  EXPECT_EQ(RoundTo(-0.0005, 3), -0.001);
  EXPECT_EQ(RoundTo(1e300, 3), 1e300);
}

TEST(Metadata, TextsAreThoseOfTheExistingPackage) {
  const BatchCounts counts{6,
                           L("0x0000002A000001000041"),
                           L("0x0000002A000001000051"),
                           T("2026-11-20T08:40:00"),
                           T("2026-11-20T08:41:00"),
                           1,
                           1,
                           2};
  const std::string text = BatchMetadata(counts, 1, "orders-v1");
  EXPECT_EQ(
      text,
      R"({"rows":6,"min_lsn":"0x0000002A000001000041",)"
      R"("max_lsn":"0x0000002A000001000051",)"
      R"("min_commit_ts":"2026-11-20T08:40:00.000",)"
      R"("max_commit_ts":"2026-11-20T08:41:00.000",)"
      R"("deletes":1,"inserts":1,"updates":2,"batch_id":1,"app_id":"orders-v1"})");
  const auto parsed = ParseBatchMetadata(text);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->counts, counts);
  EXPECT_EQ(parsed->batch_id, 1);

  EXPECT_EQ(BatchMetadata(std::nullopt, 2, "é\""),
            R"({"rows":null,"min_lsn":null,"max_lsn":null,"min_commit_ts":null,)"
            R"("max_commit_ts":null,"deletes":null,"inserts":null,"updates":null,)"
            R"("batch_id":2,"app_id":"\u00e9\""})");
  EXPECT_EQ(ParseBatchMetadata(BatchMetadata(std::nullopt, 2, "a"))->counts,
            std::nullopt);

  const cdc::Offset stamp{L("0x0000002A000001000031"), T("2026-11-20T08:31:00")};
  EXPECT_EQ(SnapshotMetadata("dbo_orders", stamp),
            R"({"snapshot": "dbo_orders", "lsn": "0x0000002A000001000031", )"
            R"("commit_ts": "2026-11-20T08:31:00.000"})");
}

TEST(Metadata, OtherTextsAreNobodys) {
  for (const char* text :
       {"", "null", "[]", "{}", "{\"batch_id\":1}", "{\"app_id\":\"a\"}",
        "{\"batch_id\":\"1\",\"app_id\":\"a\"}", "truncated {"}) {
    EXPECT_FALSE(ParseBatchMetadata(text).has_value()) << text;
  }
  EXPECT_FALSE(ParseSnapshotMetadata("{\"snapshot\": \"x\"}").has_value());
  EXPECT_FALSE(ParseSnapshotMetadata("{\"lsn\": \"0x01\"}").has_value());
  const auto seed = ParseSnapshotMetadata(
      R"({"seed": "dbo_orders", "lsn": "0x31", "commit_ts": ""})");
  ASSERT_TRUE(seed.has_value());
  EXPECT_EQ(seed->capture_instance, "dbo_orders");
  EXPECT_EQ(seed->stamp.commit_us, std::nullopt);
}

TEST(SnapshotFacts, OpenAndBootstrapRows) {
  SnapshotRun run;
  run.app_id = "orders-v1";
  run.target = "/lake/bronze_orders";
  run.stamp = {L("0x0000002A000001000031"), T("2026-11-20T08:31:00")};
  run.written_at_us = 5;
  const FactsRow open = SnapshotOpenFacts(run);
  EXPECT_EQ(open.event, "snapshot_open");
  EXPECT_EQ(open.rows, 0);
  EXPECT_EQ(open.batch_id, std::nullopt);
  EXPECT_EQ(open.detail, R"({"mode": "full", "kind": "bootstrap", "generation": 0, )"
                         R"("lost_from_ts": null, "lost_to_ts": null})");
  EXPECT_EQ(open.min_lsn, open.end_lsn);
  const FactsRow found = BootstrapFacts(run);
  EXPECT_EQ(found.event, "bootstrap");
  EXPECT_EQ(found.rows, std::nullopt);
  EXPECT_EQ(found.detail, std::nullopt);
  run.rows = 30;
  EXPECT_EQ(BootstrapFacts(run).rows, 30);
}

TEST(FactsBatch, EachMemberIsInItsColumn) {
  FactsRow row;
  row.app_id = "a";
  row.network_wait_ms = 7;
  row.source_rtt_ms = 0.5;
  row.written_at = 9;
  const columns::RecordBatch batch = FactsBatch({row, FactsRow{}});
  ASSERT_EQ(batch.columns.size(), 29u);
  const cdc::RowView first(batch, 0);
  EXPECT_EQ(first.Text("app_id").value(), "a");
  EXPECT_EQ(first.Integer("network_wait_ms").value(), 7);
  EXPECT_EQ(first.Integer("written_at").value(), 9);
  EXPECT_EQ(first.Integer("batch_id").value(), std::nullopt);
  EXPECT_EQ(cdc::RowView(batch, 1).Text("app_id").value(), std::nullopt);
  for (std::size_t i = 0; i < batch.columns.size(); ++i) {
    EXPECT_EQ(batch.columns[i]->row_count, 2);
  }
}

}  // namespace
}  // namespace mssql_cdc::pipeline
