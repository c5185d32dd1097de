#include "reader/make_columns.h"

#include <gtest/gtest.h>

#include "cdc/cells.h"

namespace mssql_cdc::reader {
namespace {

using columns::ColumnBuilder;
using columns::Kind;

columns::Column Lsns(const std::vector<std::string>& texts) {
  ColumnBuilder builder({Kind::kBinary}, 4);
  for (const std::string& text : texts) {
    const cdc::Lsn lsn = cdc::Lsn::Parse(text).value();
    builder.AppendBytes(
        {reinterpret_cast<const char*>(lsn.bytes.data()), lsn.bytes.size()});
  }
  return builder.Finish();
}

TEST(LsnTexts, AreCanonicalAndTellWhetherTheyAscend) {
  const struct {
    std::vector<std::string> lsns;
    bool ascending;
  } kRows[] = {
      {{}, true},
      {{"0x0000002A0000010000FE"}, true},
      {{"0x01", "0x01", "0x02", "0x0100", "0xFFFFFFFFFFFFFFFFFFFF"}, true},
      {{"0x01", "0x03", "0x02"}, false},
  };
  for (const auto& row : kRows) {
    const columns::Column column = Lsns(row.lsns);
    const Result<LsnColumn> made = LsnTexts(column);
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(made.value().ascending, row.ascending);
    for (std::size_t i = 0; i < row.lsns.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      const cdc::Lsn lsn = cdc::Lsn::Parse(row.lsns[i]).value();
      EXPECT_EQ(cdc::TextCell(*made.value().texts, index).value(), lsn.Text());
      EXPECT_EQ(LsnAt(column, index), lsn);
    }
  }
}

TEST(LsnTexts, OtherBytesAreRefused) {
  ColumnBuilder nine({Kind::kBinary}, 1);
  nine.AppendBytes("123456789");
  EXPECT_FALSE(LsnTexts(nine.Finish()).ok());
  ColumnBuilder null({Kind::kBinary}, 1);
  null.AppendNull();
  EXPECT_FALSE(LsnTexts(null.Finish()).ok());
  ColumnBuilder text({Kind::kUtf8}, 1);
  text.AppendBytes("1234567890");
  EXPECT_FALSE(LsnTexts(text.Finish()).ok());
}

TEST(Constants, HoldTheSameInEveryRow) {
  for (const std::int64_t rows : {1, 7, 8, 9, 1000}) {
    const ColumnPtr text = TextConstant("dbo_Café", rows);
    const ColumnPtr empty = TextConstant("", rows);
    const ColumnPtr number = Int32Constant(-5, rows);
    const ColumnPtr time = TimestampConstant(1'795'161'600'000'000, rows);
    for (const std::int64_t row : {std::int64_t{0}, rows - 1}) {
      EXPECT_EQ(cdc::TextCell(*text, row).value(), "dbo_Café");
      EXPECT_EQ(cdc::TextCell(*empty, row).value(), "");
      EXPECT_EQ(cdc::IntegerCell(*number, row).value(), -5);
      EXPECT_EQ(cdc::IntegerCell(*time, row).value(), 1'795'161'600'000'000);
    }
  }
}

TEST(NullColumn, IsNullInEveryRowOfEveryKind) {
  for (const Kind kind :
       {Kind::kBool, Kind::kInt16, Kind::kInt32, Kind::kInt64, Kind::kFloat32,
        Kind::kFloat64, Kind::kDecimal128, Kind::kDate32, Kind::kTimestampNtz,
        Kind::kTimestampUtc, Kind::kUtf8, Kind::kBinary}) {
    const columns::Type type{kind, 18, 2};
    const ColumnPtr column = NullColumn(type, 9);
    EXPECT_EQ(column->type, type);
    EXPECT_EQ(column->null_count, 9);
    EXPECT_EQ(column->validity.size_bytes(), 2u);
    if (kind == Kind::kUtf8) {
      EXPECT_EQ(cdc::TextCell(*column, 8).value(), std::nullopt);
    }
  }
}

TEST(CommitTimes, AreConvertedAndTheirRangeIsKept) {
  ColumnBuilder builder({Kind::kTimestampNtz}, 4);
  for (const std::int64_t us : {5'003'333, 5'003'333, 3'006'667, 9'000'000}) {
    builder.AppendInt64(us + 60'000'000);
  }
  const cdc::CommitClock clock{cdc::CommitClock::Kind::kFixedOffset, 1, ""};
  const Result<CommitTimes> times = CommitTimesUtc(builder.Finish(), clock);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(times.value().min_us, 3'007'000);
  EXPECT_EQ(times.value().max_us, 9'000'000);
  EXPECT_EQ(cdc::IntegerCell(*times.value().column, 1).value(), 5'003'000);

  ColumnBuilder text({Kind::kUtf8}, 1);
  text.AppendBytes("2026-11-20");
  EXPECT_FALSE(CommitTimesUtc(text.Finish(), clock).ok());
}

}  // namespace
}  // namespace mssql_cdc::reader
