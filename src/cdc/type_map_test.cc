#include "cdc/type_map.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cdc {
namespace {

TEST(MapType, Table) {
  const std::optional<std::int64_t> none;
  const struct {
    const char* type;
    std::optional<std::int64_t> precision;
    std::optional<std::int64_t> scale;
    const char* delta;  // nullptr: cannot be read.
  } kRows[] = {
      {"bit", none, none, "boolean"},
      {"tinyint", 3, 0, "short"},
      {"smallint", 5, 0, "short"},
      {"int", 10, 0, "integer"},
      {"bigint", 19, 0, "long"},
      {"real", 24, none, "float"},
      {"float", 53, none, "double"},
      {"decimal", 18, 2, "decimal(18,2)"},
      {"numeric", 38, 38, "decimal(38,38)"},
      {"money", 19, 4, "decimal(19,4)"},
      {"smallmoney", 10, 4, "decimal(10,4)"},
      {"date", none, none, "date"},
      {"datetime", none, none, "timestamp_ntz"},
      {"datetime2", none, none, "timestamp_ntz"},
      {"smalldatetime", none, none, "timestamp_ntz"},
      {"datetimeoffset", none, none, "timestamp"},
      {"time", none, none, "string"},
      {"char", none, none, "string"},
      {"NVarChar", none, none, "string"},
      {"xml", none, none, "string"},
      {"uniqueidentifier", none, none, "string"},
      {"varbinary", none, none, "binary"},
      {"image", none, none, "binary"},
      {"timestamp", none, none, "binary"},
      {"sql_variant", none, none, nullptr},
      {"hierarchyid", none, none, nullptr},
      {"geography", none, none, nullptr},
      {"decimal", 39, 0, nullptr},
      {"decimal", 5, 6, nullptr},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.type);
    const auto type = MapType({"c", 1, row.type, row.precision, row.scale});
    ASSERT_EQ(type.has_value(), row.delta != nullptr);
    if (type) {
      EXPECT_EQ(columns::DeltaTypeName(*type), row.delta);
    }
  }
}

TEST(PlanColumns, KnowsWhatTheTableStillHas) {
  const CaptureInstance instance{"dbo", "orders", "dbo_orders", {}, 0, {"id"}};
  const std::vector<CapturedColumn> captured = {
      {"id", 1, "int", 10, 0},
      {"dropped", 3, "int", 10, 0},
      {"added_again", 4, "int", 10, 0},
  };
  const std::vector<SourceColumn> source = {{"ID", 1, false},
                                            {"added_again", 9, false}};
  const Result<ColumnPlan> plan = PlanColumns(instance, captured, source);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan.value().columns.size(), 3u);
  EXPECT_EQ(plan.value().columns[0].field.name, "id");
  EXPECT_TRUE(plan.value().columns[0].in_source);
  EXPECT_FALSE(plan.value().columns[1].in_source);
  EXPECT_FALSE(plan.value().columns[2].in_source);
}

TEST(PlanColumns, RefusesByName) {
  const CaptureInstance instance{"dbo", "orders", "dbo_orders", {}, 0, {"id"}};
  const struct {
    const char* column;
    const char* type;
    const char* fact;
  } kRows[] = {
      {"where", "geography", "type"},
      {"_Batch_ID", "int", "reserved"},
      {"_command_id", "int", "reserved"},
      {"ID", "int", "reason"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.column);
    const std::string name = row.column;
    const Result<ColumnPlan> plan = PlanColumns(instance,
                                                {{"id", 1, "int", {}, {}},
                                                 {"o`dd", 3, "varchar", {}, {}},
                                                 {name, 4, row.type, {}, {}}},
                                                {{"id", 1, false}, {name, 4, false}});
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.error().id(), ErrorId::kColumnNotReadable);
    EXPECT_EQ(plan.error().Fact("column"), name);
    EXPECT_TRUE(plan.error().Fact(row.fact).has_value());
    EXPECT_EQ(plan.error().Fact("set_columns"), "`id` INT, `o``dd` STRING");
  }
  EXPECT_FALSE(PlanColumns(instance, {}, {}).ok());
}

// Delta compares names as Unicode has it, so one of the two would be lost.
TEST(PlanColumns, RefusesNamesThatDifferInTheCaseOfAnyLetter) {
  const Result<ColumnPlan> plan =
      PlanColumns({"dbo", "t", "dbo_t", {}, 0, {}},
                  {{"Ä", 1, "int", {}, {}}, {"ä", 2, "int", {}, {}}}, {});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().id(), ErrorId::kColumnNotReadable);
  EXPECT_EQ(plan.error().Fact("column"), "ä");
  EXPECT_EQ(plan.error().Fact("set_columns"), "`Ä` INT");
}

TEST(CheckCapturedNames, RefusesThoseThatTheChangeTableHasItself) {
  const CaptureInstance instance{"dbo", "t", "dbo_t", {}, 0, {}};
  for (const char* name : {"__$start_lsn", "__$END_LSN", "__$seqval", "__$operation",
                           "__$update_mask", "__$command_id"}) {
    const Status status = CheckCapturedNames(
        instance, {{"id", 1, "int", {}, {}}, {name, 2, "int", {}, {}}});
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().id(), ErrorId::kColumnNotReadable);
    EXPECT_EQ(status.error().Fact("column"), name);
  }
  EXPECT_TRUE(CheckCapturedNames(instance, {{"__$other", 1, "int", {}, {}}}).ok());
}

}  // namespace
}  // namespace mssql_cdc::cdc
