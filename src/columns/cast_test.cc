#include "columns/cast.h"

#include <gtest/gtest.h>

#include <cstring>

namespace mssql_cdc::columns {
namespace {

// Every pair of types and value is compared with pyarrow by
// tests/values/check_casts.py; here is what a single value does not show.

TEST(Cast, NullsStayAndTheFirstValueThatDoesNotFitIsNamed) {
  ColumnBuilder builder({Kind::kUtf8}, 4);
  builder.AppendNull();
  builder.AppendBytes("12");
  builder.AppendNull();
  builder.AppendBytes("-3");
  const CastOutcome outcome = Cast(builder.Finish(), {Kind::kInt16});
  ASSERT_FALSE(outcome.failed_row.has_value());
  EXPECT_EQ(outcome.column.row_count, 4);
  EXPECT_EQ(outcome.column.null_count, 2);
  std::int16_t values[4];
  std::memcpy(values, outcome.column.values.data(), sizeof values);
  EXPECT_EQ(values[1], 12);
  EXPECT_EQ(values[3], -3);

  builder.AppendBytes("1");
  builder.AppendNull();
  builder.AppendBytes("x");
  builder.AppendBytes("y");
  EXPECT_EQ(Cast(builder.Finish(), {Kind::kInt16}).failed_row, 2);
}

TEST(Cast, WhatCouldAlterAValueIsNoCast) {
  const struct {
    Type from;
    Type to;
    CastFit fit;
  } kRows[] = {
      {{Kind::kInt32}, {Kind::kInt32}, CastFit::kSame},
      {{Kind::kDecimal128, 10, 2}, {Kind::kDecimal128, 10, 2}, CastFit::kSame},
      {{Kind::kInt32}, {Kind::kInt64}, CastFit::kPerValue},
      {{Kind::kInt64}, {Kind::kInt16}, CastFit::kPerValue},
      {{Kind::kFloat64}, {Kind::kDecimal128, 18, 2}, CastFit::kLossy},
      {{Kind::kFloat64}, {Kind::kFloat32}, CastFit::kLossy},
      {{Kind::kInt32}, {Kind::kBool}, CastFit::kLossy},
      {{Kind::kDecimal128, 16, 2}, {Kind::kFloat64}, CastFit::kLossy},
      {{Kind::kDecimal128, 15, 2}, {Kind::kFloat64}, CastFit::kPerValue},
      {{Kind::kTimestampNtz}, {Kind::kDate32}, CastFit::kLossy},
      {{Kind::kInt32}, {Kind::kDecimal128, 9, 0}, CastFit::kNever},
      {{Kind::kInt32}, {Kind::kBinary}, CastFit::kNever},
      {{Kind::kBool}, {Kind::kDecimal128, 5, 0}, CastFit::kNever},
      {{Kind::kBinary}, {Kind::kDate32}, CastFit::kNever},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(CastFitOf(row.from, row.to), row.fit)
        << DeltaTypeName(row.from) << " to " << DeltaTypeName(row.to);
  }
}

}  // namespace
}  // namespace mssql_cdc::columns
