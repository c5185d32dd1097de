#include "reader/cast_reader.h"

#include <gtest/gtest.h>

#include "cdc/cells.h"
#include "cdc/output_columns.h"
#include "reader/make_columns.h"

namespace mssql_cdc::reader {
namespace {

using columns::Kind;

// One batch of texts in the target's shape, each row with an LSN of its own.
std::unique_ptr<columns::BatchReader> Rows(const std::vector<std::string>& texts) {
  auto schema = std::make_shared<const columns::Schema>(
      cdc::OutputSchema({{"amount", {Kind::kUtf8}}, {"note", {Kind::kUtf8}}}, true));
  const auto count = static_cast<std::int64_t>(texts.size());
  columns::ColumnBuilder lsns({Kind::kUtf8}, count);
  columns::ColumnBuilder amounts({Kind::kUtf8}, count);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    lsns.AppendBytes("0x0000000000000000000" + std::to_string(i));
    amounts.AppendBytes(texts[i]);
  }
  columns::RecordBatch batch{schema, count, {}};
  for (const columns::Field& field : schema->fields) {
    batch.columns.push_back(NullColumn(field.type, count));
  }
  batch.columns[1] = std::make_shared<const columns::Column>(lsns.Finish());
  batch.columns[6] = std::make_shared<const columns::Column>(amounts.Finish());
  return columns::ReadBatches(schema, {std::move(batch)});
}

const std::vector<columns::Field> kWritten = {{"Amount", {Kind::kInt32}},
                                              {"note", {Kind::kUtf8}}};

TEST(CastReader, GivesTheNamesAndTypesThatWereAskedFor) {
  CastReader reader(Rows({"5", "-7"}), "dbo_orders", kWritten);
  EXPECT_EQ(*reader.schema(), cdc::OutputSchema(kWritten, true));
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.ok()) << batch.error().Text();
  EXPECT_EQ(*batch.value()->schema, *reader.schema());
  EXPECT_EQ(cdc::RowView(*batch.value(), 1).Integer("Amount").value(), -7);
  EXPECT_EQ(cdc::RowView(*batch.value(), 1).Text("note").value(), std::nullopt);
  const auto end = reader.Next();
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end.value().has_value());
}

TEST(CastReader, AValueThatDoesNotFitIsNamedByItsPlaceOnly) {
  CastReader reader(Rows({"5", "canary", "6"}), "dbo_orders", kWritten);
  const auto batch = reader.Next();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().id(), ErrorId::kValueNotConvertible);
  EXPECT_EQ(batch.error().Fact("column"), "Amount");
  EXPECT_EQ(batch.error().Fact("start_lsn"), "0x00000000000000000001");
  EXPECT_EQ(batch.error().Fact("from"), "string");
  EXPECT_EQ(batch.error().Text().find("canary"), std::string::npos);
}

}  // namespace
}  // namespace mssql_cdc::reader
