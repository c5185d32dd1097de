#include "extension/snapshot_source.h"

#include <gtest/gtest.h>

namespace mssql_cdc::extension {
namespace {

cdc::Lsn L(const char* text) { return cdc::Lsn::Parse(text).value(); }

SnapshotTask Whole() {
  SnapshotTask task;
  task.plan.capture_instance = "dbo_orders";
  task.plan.source_schema = "dbo";
  task.plan.source_table = "or]ders";
  task.plan.columns = {{{"id", {columns::Kind::kInt32}}, true, true},
                       {{"gone", {columns::Kind::kUtf8}}, false, false}};
  task.plan.stamp = {L("0x2A"), 1'000'000};
  return task;
}

struct Case {
  const char* name;
  std::optional<cdc::KeyRange> range;
  std::optional<reader::KeyedSpan> keyed;
  std::optional<int> chunk;
};

TEST(SnapshotTask, TravelsWhole) {
  const Case cases[] = {
      {"whole table", std::nullopt, std::nullopt, std::nullopt},
      {"uniform range", cdc::KeyRange{5, std::nullopt}, std::nullopt, std::nullopt},
      {"span of two columns", std::nullopt,
       reader::KeyedSpan{
           {{"day", "date", "", false}, {"code", "varchar(9)", "C", true}},
           {sqlserver::KeyBound{"2026-01-01", std::nullopt}, std::nullopt}},
       std::nullopt},
      {"chunk open at both ends", std::nullopt,
       reader::KeyedSpan{{{"id", "", "", false}}, {}}, 7},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    SnapshotTask task = Whole();
    if (each.range) {
      task.plan.key = "id";
      task.plan.range = *each.range;
    }
    task.plan.keyed = each.keyed;
    if (each.chunk) {
      task.plan.chunk = reader::ChunkMark{*each.chunk, task.plan.stamp.lsn};
    }
    const auto parsed = SnapshotTask::Parse(task.Json());
    ASSERT_TRUE(parsed.ok());
    const reader::SnapshotPlan& plan = parsed.value().plan;
    EXPECT_EQ(plan.source_table, "or]ders");
    EXPECT_EQ(plan.columns.size(), 2U);
    EXPECT_FALSE(plan.columns[1].in_source);
    EXPECT_TRUE(plan.columns[0].is_widened);
    EXPECT_FALSE(plan.columns[1].is_widened);
    EXPECT_EQ(plan.key, task.plan.key);
    EXPECT_EQ(plan.range.after, task.plan.range.after);
    EXPECT_EQ(plan.range.through, task.plan.range.through);
    ASSERT_EQ(plan.keyed.has_value(), each.keyed.has_value());
    if (each.keyed) {
      ASSERT_EQ(plan.keyed->keys.size(), each.keyed->keys.size());
      for (std::size_t i = 0; i < plan.keyed->keys.size(); ++i) {
        EXPECT_EQ(plan.keyed->keys[i].name, each.keyed->keys[i].name);
        EXPECT_EQ(plan.keyed->keys[i].sql_type, each.keyed->keys[i].sql_type);
        EXPECT_EQ(plan.keyed->keys[i].collation, each.keyed->keys[i].collation);
        EXPECT_EQ(plan.keyed->keys[i].is_binary, each.keyed->keys[i].is_binary);
      }
      EXPECT_EQ(plan.keyed->span.lo, each.keyed->span.lo);
      EXPECT_EQ(plan.keyed->span.hi, each.keyed->span.hi);
    }
    ASSERT_EQ(plan.chunk.has_value(), each.chunk.has_value());
    if (each.chunk) {
      EXPECT_EQ(plan.chunk->number, *each.chunk);
      EXPECT_EQ(plan.chunk->snapshot, task.plan.stamp.lsn);
    }
  }
}

TEST(SnapshotTask, RefusesOtherTexts) {
  for (const char* text : {"", "[]", "{}", "{\"capture_instance\":1}"}) {
    EXPECT_EQ(SnapshotTask::Parse(text).error().id(), ErrorId::kInternalError) << text;
  }
}

}  // namespace
}  // namespace mssql_cdc::extension
