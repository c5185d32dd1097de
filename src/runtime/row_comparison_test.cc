#include "runtime/row_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mssql_cdc::runtime {
namespace {

using columns::Kind;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct Row {
  std::string key;
  std::optional<std::string> v;
};

void Append(columns::ColumnBuilder& out, const std::optional<std::string>& text) {
  if (text) {
    out.AppendBytes(*text);
  } else {
    out.AppendNull();
  }
}

// One batch a row, so that a group can end after any.
std::unique_ptr<columns::BatchReader> Reader(const std::vector<Row>& rows,
                                             bool is_silver) {
  auto schema = std::make_shared<columns::Schema>();
  schema->fields = {{"k", {Kind::kUtf8}}, {"v", {Kind::kUtf8}}};
  if (is_silver) {
    schema->fields.push_back({"_start_lsn", {Kind::kUtf8}});
    schema->fields.push_back({"file", {Kind::kInt32}});
    schema->fields.push_back({"row", {Kind::kInt64}});
  }
  std::vector<columns::RecordBatch> batches;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<columns::ColumnBuilder> out;
    for (const columns::Field& field : schema->fields) out.emplace_back(field.type, 1);
    Append(out[0], rows[i].key);
    Append(out[1], rows[i].v);
    if (is_silver) {
      Append(out[2], "0x0000000000000000000" + std::to_string(i % 10));
      out[3].AppendInt32(static_cast<std::int32_t>(i % 2));
      out[4].AppendInt64(static_cast<std::int64_t>(i / 2));
    }
    columns::RecordBatch batch{schema, 1, {}};
    for (columns::ColumnBuilder& column : out) {
      batch.columns.push_back(std::make_shared<const columns::Column>(column.Finish()));
    }
    batches.push_back(std::move(batch));
  }
  return columns::ReadBatches(schema, std::move(batches));
}

struct Compared {
  std::vector<std::string> found;  // TYPE KEY COLUMNS
  std::int64_t group_count = 0;
};

Compared Compare(const std::vector<Row>& source, const std::vector<Row>& silver,
                 std::size_t size_bytes_max, bool is_whole = true,
                 const std::set<std::string>& moved = {}) {
  RowComparison comparison({"k"}, {"k", "v"}, size_bytes_max);
  const auto rows = Reader(source, false);
  bool has_more = true;
  while (has_more) {
    has_more = comparison.TakeSource(*rows, {"1", "9"}).value();
    const auto held = Reader(silver, true);
    EXPECT_TRUE(comparison.MeetSilver(*held, !has_more && is_whole).ok());
  }
  Compared compared;
  compared.group_count = comparison.group_count();
  for (const Difference& difference : comparison.Differences(moved)) {
    EXPECT_TRUE(comparison.IsDifferent(difference.key));
    EXPECT_EQ(difference.finding.bucket_lo, "1");
    compared.found.push_back(difference.finding.failure_type + " " +
                             difference.finding.key.value_or("") + " " +
                             difference.finding.detail);
  }
  return compared;
}

const std::vector<Row> kSource = {
    {"a", "1"}, {"b", "2"}, {"c", std::nullopt}, {"d", "4"}, {"e", "5"}};

TEST(RowComparison, EqualRowsDifferInNothingInGroupsOfAnySize) {
  const std::vector<Row> shuffled = {
      {"e", "5"}, {"c", std::nullopt}, {"a", "1"}, {"d", "4"}, {"b", "2"}};
  EXPECT_THAT(Compare(kSource, shuffled, 1 << 20).found, IsEmpty());
  const Compared small = Compare(kSource, shuffled, 1);
  EXPECT_THAT(small.found, IsEmpty());
  EXPECT_EQ(small.group_count, 6);  // One a row, and one that is empty.
}

TEST(RowComparison, EveryKindOfDifferenceIsFoundInGroupsOfAnySize) {
  const std::vector<Row> silver = {{"x", "9"}, {"a", "1"},  {"c", ""},
                                   {"e", "5"}, {"d", "44"}, {"e", "5"}};
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{400}, std::size_t{1} << 20}) {
    EXPECT_THAT(
        Compare(kSource, silver, size).found,
        UnorderedElementsAre(
            R"(MISSING_SOURCE {"k":"x"} {"silver_start_lsn":"0x00000000000000000000"})",
            R"(MISSING_TARGET {"k":"b"} {})",
            R"(RECORD_DIFF {"k":"c"} {"silver_start_lsn":"0x00000000000000000002","columns":"v"})",
            R"(RECORD_DIFF {"k":"d"} {"silver_start_lsn":"0x00000000000000000004","columns":"v"})",
            // The second one of a key that silver has twice.
            R"(MISSING_SOURCE {"k":"e"} {"silver_start_lsn":"0x00000000000000000005"})"))
        << size;
  }
}

TEST(RowComparison, APartOfTheSourceDoesNotShowWhatItLacks) {
  const std::vector<Row> part = {{"a", "1"}};
  EXPECT_THAT(Compare(part, kSource, 1, false).found, IsEmpty());
  EXPECT_THAT(Compare(part, kSource, 1, true).found, testing::SizeIs(4));
}

TEST(RowComparison, AKeyThatMovedIsInFlight) {
  const std::vector<Row> silver = {{"a", "old"}};
  RowComparison comparison({"k"}, {"v"}, 1 << 20);
  const auto source = Reader({{"a", "new"}}, false);
  EXPECT_FALSE(comparison.TakeSource(*source, {}).value());
  const auto held = Reader(silver, true);
  ASSERT_TRUE(comparison.MeetSilver(*held, true).ok());
  const std::string key = comparison.Differences({})[0].key;
  EXPECT_EQ(comparison.Differences({})[0].finding.failure_type, "RECORD_DIFF");
  EXPECT_EQ(comparison.Differences({key})[0].finding.failure_type, "IN_FLIGHT");
}

}  // namespace
}  // namespace mssql_cdc::runtime
