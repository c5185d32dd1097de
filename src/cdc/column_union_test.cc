#include "cdc/column_union.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cdc {
namespace {

using Captured = std::vector<CapturedColumn>;

CapturedColumn Column(std::string name, std::int64_t id, std::string type) {
  return {std::move(name), id, std::move(type), {}, {}};
}

// "id integer, note string", in order.
std::string TextOf(const ColumnPlan& plan) {
  std::string text;
  for (const ReadColumn& column : plan.columns) {
    if (!text.empty()) text += ", ";
    text += column.field.name + " " + columns::DeltaTypeName(column.field.type);
  }
  return text;
}

TEST(UniteColumns, Table) {
  const struct {
    const char* when;
    Captured older;
    Captured newer;
    const char* united;  // Null: SchemaChanged.
  } kRows[] = {
      {"the same",
       {Column("id", 1, "int"), Column("note", 2, "text")},
       {Column("id", 1, "int"), Column("note", 2, "text")},
       "id integer, note string"},
      {"a new column goes to the end",
       {Column("b", 2, "int"), Column("a", 1, "int")},
       {Column("a", 1, "int"), Column("c", 3, "date"), Column("b", 2, "int")},
       "b integer, a integer, c date"},
      {"one that the newer lacks stays",
       {Column("id", 1, "int"), Column("old", 2, "int")},
       {Column("id", 1, "int")},
       "id integer, old integer"},
      {"the first spelling",
       {Column("Größe", 1, "int")},
       {Column("GRÖßE", 1, "int")},
       "Größe integer"},
      {"a wider type",
       {Column("id", 1, "int")},
       {Column("id", 1, "bigint")},
       "id long"},
      {"a narrower one",
       {Column("id", 1, "bigint")},
       {Column("id", 1, "int")},
       nullptr},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    const std::vector<InstanceColumns> instances = {{{}, row.older, {}},
                                                    {{}, row.newer, {}}};
    const Result<ColumnPlan> plan = UniteColumns(instances, {});
    ASSERT_EQ(plan.ok(), row.united != nullptr);
    if (plan.ok()) {
      EXPECT_EQ(TextOf(plan.value()), row.united);
    } else {
      EXPECT_EQ(plan.error().id(), ErrorId::kSchemaChanged);
    }
  }
}

TEST(PartComputed, GoesByIdNotByName) {
  const InstanceColumns parted =
      PartComputed({}, {Column("id", 1, "int"), Column("sum", 2, "int")},
                   {{"sum", 7, true}, {"id", 1, false}, {"twice", 2, true}});
  ASSERT_EQ(parted.captured.size(), 1u);
  EXPECT_EQ(parted.captured[0].name, "id");
  EXPECT_EQ(parted.computed, std::vector<std::string>{"sum"});
}

TEST(PlanColumnReads, FindsEachWrittenColumnOrNone) {
  const std::vector<columns::Field> fields = {
      {"id", {columns::Kind::kInt64}, true, ""},
      {"gone", {columns::Kind::kUtf8}, true, ""},
      {"Geo", {columns::Kind::kUtf8}, true, ""}};
  const std::vector<ColumnRead> reads =
      PlanColumnReads(fields, {Column("ID", 1, "int"), Column("geo", 2, "geography")});
  EXPECT_EQ(reads,
            (std::vector<ColumnRead>{{"ID", columns::Type{columns::Kind::kInt32}},
                                     {std::nullopt, std::nullopt},
                                     {"geo", std::nullopt}}));
}

}  // namespace
}  // namespace mssql_cdc::cdc
