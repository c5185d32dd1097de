#include "pipeline/source_events.h"

#include <gtest/gtest.h>

namespace mssql_cdc::pipeline {
namespace {

using cdc::SourceEvent;

constexpr cdc::Lsn L(std::uint8_t last) { return {{0, 0, 0, 1, 0, 0, 0, 2, 0, last}}; }

SourceEvent Event(SourceEvent::Kind kind, std::uint8_t lsn, std::string detail) {
  return {kind, "v1", {L(lsn), lsn * 1'000'000}, std::move(detail), 1, 2};
}

TEST(EventFacts, AreTheBatchsAndHaveNoRows) {
  const BatchRun run{"app", "target", 7, 0, 0, 99};
  const FactsRow ddl =
      EventFacts(run, Event(SourceEvent::Kind::kSchemaChange, 5, "ALTER"));
  EXPECT_EQ(ddl.event, "schema_change");
  EXPECT_EQ(ddl.batch_id, 7);
  EXPECT_EQ(ddl.rows, 0);
  EXPECT_EQ(ddl.end_lsn, "0x00000001000000020005");
  EXPECT_EQ(ddl.min_lsn, ddl.end_lsn);
  EXPECT_EQ(ddl.max_commit_ts, 5'000'000);
  EXPECT_EQ(ddl.lost_from_ts, std::nullopt);
  EXPECT_EQ(ddl.started_at, std::nullopt);
  const FactsRow skip =
      EventFacts(run, Event(SourceEvent::Kind::kDataSkipped, 5, "{}"));
  EXPECT_EQ(skip.event, "data_skipped");
  EXPECT_EQ(skip.lost_from_ts, 1);
  EXPECT_EQ(skip.lost_to_ts, 2);
}

TEST(WarningsDetail, KeepsEachTextOnceAsPythonWouldWriteIt) {
  EXPECT_EQ(WarningsDetail({}), std::nullopt);
  EXPECT_EQ(WarningsDetail({"a \"b\"", "é", "a \"b\""}),
            "{\"warnings\": [\"a \\\"b\\\"\", \"\\u00e9\"]}");
}

TEST(BatchNote, SurvivesItsFile) {
  const BatchNote note{3,
                       {Event(SourceEvent::Kind::kInstanceSwitched, 5, "a -> \"b\""),
                        Event(SourceEvent::Kind::kDataSkipped, 6, "{}")},
                       {"w"}};
  const Result<BatchNote> read = BatchNote::Parse(note.Json());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), note);
  for (const char* text : {"", "[]", "{}", R"({"batch_id": 1, "events": [1]})",
                           R"({"batch_id": 1, "events": [{"event": "odd"}]})"}) {
    EXPECT_EQ(BatchNote::Parse(text).error().id(), ErrorId::kCheckpointUnreadable);
  }
}

TEST(Merge, KeepsWhatOnlyTheEarlierAttemptSaw) {
  const auto skip = [](const char* from, std::uint8_t to) {
    return Event(SourceEvent::Kind::kDataSkipped, to,
                 std::string(R"({"from": ")") + from + R"(", "certain": true})");
  };
  const SourceEvent ddl = Event(SourceEvent::Kind::kSchemaChange, 5, "ALTER");
  const BatchNote earlier{3, {ddl, skip("0x01", 7), skip("0x02", 8)}, {"early"}};
  const BatchNote now{3, {skip("0x01", 9)}, {"late"}};
  EXPECT_EQ(Merge(earlier, now),
            (BatchNote{3, {ddl, skip("0x02", 8), skip("0x01", 9)}, {"early", "late"}}));
  const BatchNote next{4, {}, {}};
  EXPECT_EQ(Merge(earlier, next), next);
}

}  // namespace
}  // namespace mssql_cdc::pipeline
