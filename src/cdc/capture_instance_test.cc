#include "cdc/capture_instance.h"

#include <gtest/gtest.h>

#include "columns/batch.h"

namespace mssql_cdc::cdc {
namespace {

CaptureInstance Instance(std::string table, std::string name, std::int64_t created_us) {
  return {"dbo", std::move(table), std::move(name), std::nullopt, created_us, {}};
}

TEST(ResolveInstance, Table) {
  const std::vector<CaptureInstance> kInstances = {
      Instance("orders", "dbo_orders", 1), Instance("orders", "dbo_orders_v2", 2),
      Instance("lines", "dbo_lines", 3),   Instance("Mixed", "dbo_Mixed", 4),
      Instance("mixed2", "DBO_MIXED", 5),  Instance("stock", "stock_new", 7),
      Instance("stock", "stock_newer", 6),
  };
  const struct {
    const char* name;
    const char* resolved;  // nullptr: not found.
    const char* fact;
    const char* value;
  } kRows[] = {
      {"dbo_orders", "dbo_orders", "", ""},
      {"DBO_Lines", "dbo_lines", "", ""},
      {"dbo_Mixed", "dbo_Mixed", "", ""},
      {"dbo_mixed", nullptr, "candidates", "dbo_Mixed, DBO_MIXED"},
      {"dbo_stock", "stock_newer", "", ""},
      {"dbo_order", nullptr, "nearest", "dbo_orders, dbo_orders_v2"},
      {"dbo_lins", nullptr, "nearest", "dbo_lines"},
      {"hr_people_archive", nullptr, "visible_count", "7"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.name);
    const Result<CaptureInstance> found = ResolveInstance(kInstances, row.name);
    ASSERT_EQ(found.ok(), row.resolved != nullptr);
    if (found.ok()) {
      EXPECT_EQ(found.value().name, row.resolved);
    } else {
      EXPECT_EQ(found.error().id(), ErrorId::kCaptureInstanceNotFound);
      EXPECT_EQ(found.error().Fact(row.fact), row.value);
    }
  }
}

TEST(ParseColumnList, BracketsAndWhatIsInThem) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(ParseColumnList("[order_id]"), Names{"order_id"});
  EXPECT_EQ(ParseColumnList("[a], [b c], [d]]e]"), (Names{"a", "b c", "d]e"}));
  EXPECT_EQ(ParseColumnList(""), Names{});
  EXPECT_EQ(ParseColumnList("[unfinished"), Names{"unfinished"});
}

TEST(CheckInstanceName, TakesWhatSqlServerTakes) {
  EXPECT_TRUE(CheckInstanceName("dbo_Café").ok());
  EXPECT_TRUE(CheckInstanceName(std::string(100, 'x')).ok());
  for (const std::string& name : {std::string(), std::string("a]b"),
                                  std::string("a\nb"), std::string(101, 'x')}) {
    const Status status = CheckInstanceName(name);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().id(), ErrorId::kOptionInvalid);
  }
}

TEST(ReadCapturedColumns, ComeInCaptureOrder) {
  using columns::ColumnBuilder;
  using columns::Kind;
  const std::vector<std::pair<const char*, Kind>> kFields = {
      {"column_name", Kind::kUtf8},        {"column_id", Kind::kInt32},
      {"column_ordinal", Kind::kInt32},    {"data_type", Kind::kUtf8},
      {"numeric_precision", Kind::kInt16}, {"numeric_scale", Kind::kInt32}};
  auto schema = std::make_shared<columns::Schema>();
  std::vector<ColumnBuilder> builders;
  for (const auto& [name, kind] : kFields) {
    schema->fields.push_back({name, {kind}, true, ""});
    builders.emplace_back(columns::Type{kind}, 2);
  }
  const auto add = [&](const char* name, std::int32_t id, std::int32_t ordinal) {
    builders[0].AppendBytes(name);
    builders[1].AppendInt32(id);
    builders[2].AppendInt32(ordinal);
    builders[3].AppendBytes("decimal");
    builders[4].AppendInt16(18);
    builders[5].AppendNull();
  };
  add("b", 7, 2);
  add("a", 9, 1);
  columns::RecordBatch batch{schema, 2, {}};
  for (ColumnBuilder& builder : builders) {
    batch.columns.push_back(std::make_shared<columns::Column>(builder.Finish()));
  }
  const Result<std::vector<CapturedColumn>> read = ReadCapturedColumns(batch);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().size(), 2u);
  EXPECT_EQ(read.value()[0].name, "a");
  EXPECT_EQ(read.value()[0].column_id, 9);
  EXPECT_EQ(read.value()[0].precision, 18);
  EXPECT_EQ(read.value()[0].scale, std::nullopt);
  // An answer to another question is noticed, not misread.
  EXPECT_EQ(ReadInstances(batch).error().id(), ErrorId::kTdsMalformed);
}

}  // namespace
}  // namespace mssql_cdc::cdc
