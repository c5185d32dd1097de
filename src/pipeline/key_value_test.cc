#include "pipeline/key_value.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "pipeline/json_text.h"

namespace mssql_cdc::pipeline {
namespace {

using cdc::KeyForm;
using columns::ColumnBuilder;
using columns::Kind;

// The text of one value read with a form, and what a bound of it is.
struct Case {
  const char* what;
  KeyForm form;
  columns::Type type;
  std::function<void(ColumnBuilder&)> append;
  const char* json;
  const char* bound;
};

const std::vector<Case> kCases = {
    {"smallint",
     KeyForm::kInteger,
     {Kind::kInt16},
     [](ColumnBuilder& b) { b.AppendInt16(-7); },
     "-7",
     "-7"},
    {"bigint's smallest",
     KeyForm::kInteger,
     {Kind::kInt64},
     [](ColumnBuilder& b) { b.AppendInt64(std::numeric_limits<std::int64_t>::min()); },
     "-9223372036854775808",
     "-9223372036854775808"},
    {"bit",
     KeyForm::kBool,
     {Kind::kBool},
     [](ColumnBuilder& b) { b.AppendBool(true); },
     "true",
     "1"},
    {"float",
     KeyForm::kReal,
     {Kind::kFloat64},
     [](ColumnBuilder& b) { b.AppendFloat64(1.5e-7); },
     "1.5e-07",
     "1.5e-7"},
    {"nvarchar",
     KeyForm::kText,
     {Kind::kUtf8},
     [](ColumnBuilder& b) { b.AppendBytes("Ä\"b"); },
     R"("\u00c4\"b")",
     "Ä\"b"},
    {"decimal",
     KeyForm::kDecimal,
     {Kind::kDecimal128, 9, 4},
     [](ColumnBuilder& b) { b.AppendDecimal(-15); },
     R"("-0.0015")",
     "-0.0015"},
    {"decimal without places",
     KeyForm::kDecimal,
     {Kind::kDecimal128, 9, 0},
     [](ColumnBuilder& b) { b.AppendDecimal(0); },
     R"("0")",
     "0"},
    {"varbinary",
     KeyForm::kBinary,
     {Kind::kBinary},
     [](ColumnBuilder& b) { b.AppendBytes(std::string_view("\x00\xAB", 2)); },
     R"("0x00ab")",
     "0x00ab"},
    {"date",
     KeyForm::kDate,
     {Kind::kDate32},
     [](ColumnBuilder& b) { b.AppendInt32(20'454); },
     R"("2026-01-01")",
     "2026-01-01"},
    // datetime counts 1/300 s: its .0033333 and .0066667 are written .003 and .007.
    {"datetime",
     KeyForm::kMillis,
     {Kind::kTimestampNtz},
     [](ColumnBuilder& b) { b.AppendInt64(1'767'225'600'006'667); },
     R"("2026-01-01T00:00:00.007")",
     "2026-01-01T00:00:00.007"},
    {"datetime before 1970",
     KeyForm::kMillis,
     {Kind::kTimestampNtz},
     [](ColumnBuilder& b) { b.AppendInt64(-996'667); },
     R"("1969-12-31T23:59:59.003")",
     "1969-12-31T23:59:59.003"},
    {"datetime2",
     KeyForm::kMicros,
     {Kind::kTimestampNtz},
     [](ColumnBuilder& b) { b.AppendInt64(1'767'225'600'123'456); },
     R"("2026-01-01T00:00:00.123456")",
     "2026-01-01T00:00:00.123456"},
    {"datetimeoffset",
     KeyForm::kInstant,
     {Kind::kTimestampUtc},
     [](ColumnBuilder& b) { b.AppendInt64(1'767'225'600'000'000); },
     R"("2026-01-01T00:00:00.000000+00:00")",
     "2026-01-01T00:00:00.000000+00:00"},
    {"NULL",
     KeyForm::kText,
     {Kind::kUtf8},
     [](ColumnBuilder& b) { b.AppendNull(); },
     "null",
     nullptr},
};

TEST(ReadKey, EveryForm) {
  for (const Case& row : kCases) {
    SCOPED_TRACE(row.what);
    ColumnBuilder builder(row.type, 1);
    row.append(builder);
    auto schema = std::make_shared<columns::Schema>();
    schema->fields.push_back({"k", row.type});
    columns::RecordBatch batch{schema, 1, {}};
    batch.columns.push_back(std::make_shared<const columns::Column>(builder.Finish()));
    const Result<Key> key = ReadKey(batch, 0, {{"k", "x", "", row.form}});
    ASSERT_TRUE(key.ok()) << key.error().Text();
    EXPECT_EQ(JsonText(KeyJson(key.value())), row.json);
    const std::optional<std::string> bound = BoundText(key.value()[0]);
    EXPECT_EQ(bound.has_value(), row.bound != nullptr);
    if (bound) {
      EXPECT_EQ(*bound, row.bound);
    }
    if (!bound) continue;  // null alone is an open end.
    const auto parsed = ParseKey(KeyJson(key.value()), 1);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed.value(), key.value());
  }
}

TEST(ReadKey, AnotherTypeThanPlannedIsNoKey) {
  ColumnBuilder builder({Kind::kInt32}, 1);
  builder.AppendInt32(1);
  auto schema = std::make_shared<columns::Schema>();
  schema->fields.push_back({"k", {Kind::kInt32}});
  columns::RecordBatch batch{schema, 1, {}};
  batch.columns.push_back(std::make_shared<const columns::Column>(builder.Finish()));
  for (const KeyForm form : {KeyForm::kBool, KeyForm::kReal, KeyForm::kText,
                             KeyForm::kDecimal, KeyForm::kBinary, KeyForm::kDate,
                             KeyForm::kMillis, KeyForm::kMicros, KeyForm::kInstant}) {
    EXPECT_FALSE(ReadKey(batch, 0, {{"k", "x", "", form}}).ok());
  }
}

TEST(ParseKey, OneAboveBigintsLargestAndCompositeKeys) {
  const Key above = {Int128{std::numeric_limits<std::int64_t>::max()} + 1};
  EXPECT_EQ(JsonText(KeyJson(above)), "9223372036854775808");
  EXPECT_EQ(ParseKey(KeyJson(above), 1).value(), above);
  const Key composite = {Int128{7}, KeyValue(), std::string("x")};
  EXPECT_EQ(JsonText(KeyJson(composite)), R"([7, null, "x"])");
  EXPECT_EQ(ParseKey(KeyJson(composite), 3).value(), composite);
  EXPECT_EQ(ParseKey(KeyJson(composite), 2).error().id(),
            ErrorId::kCheckpointUnreadable);
  EXPECT_EQ(ParseKey(KeyJson(std::nullopt), 2).value(), std::nullopt);
}

}  // namespace
}  // namespace mssql_cdc::pipeline
