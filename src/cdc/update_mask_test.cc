#include "cdc/update_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mssql_cdc::cdc {
namespace {

using columns::Kind;
using testing::ElementsAre;

CapturedColumn Captured(std::string name, std::string type, std::int64_t ordinal,
                        std::optional<std::int64_t> length = std::nullopt) {
  CapturedColumn column;
  column.name = std::move(name);
  column.type_name = std::move(type);
  column.ordinal = ordinal;
  column.max_length = length;
  return column;
}

TEST(UpdateMask, TheLowestOrdinalsAreInTheLastByte) {
  // Ten columns in two bytes: the first, the ninth and the tenth were written.
  const std::string mask = {'\x03', '\x01'};
  for (std::size_t ordinal = 1; ordinal <= 17; ++ordinal) {
    EXPECT_EQ(IsWritten(mask, ordinal), ordinal == 1 || ordinal == 9 || ordinal == 10)
        << ordinal;
  }
  EXPECT_FALSE(IsWritten("", 1));
}

TEST(UpdateMask, ComputedColumnsKeepTheirPlaces) {
  // The second captured column is not among those read.
  const std::vector<MaskColumn> mask =
      PlanMask({{"b", {Kind::kUtf8}}, {"A", {Kind::kInt32}}, {"made", {Kind::kUtf8}}},
               {Captured("a", "int", 1), Captured("b", "nvarchar", 3, -1)});
  EXPECT_THAT(mask, ElementsAre(MaskColumn{"A", 1, LargeValue::kNone, 1},
                                MaskColumn{"b", 3, LargeValue::kMax, 0}));
}

TEST(UpdateMask, NamesThatDifferInCaseAreTwoColumns) {
  const std::vector<MaskColumn> mask = PlanMask(
      {{"A", {Kind::kInt32}}, {"a", {Kind::kInt32}}, {"B", {Kind::kInt32}}},
      {Captured("a", "int", 1), Captured("A", "int", 2), Captured("b", "int", 3)});
  EXPECT_THAT(mask, ElementsAre(MaskColumn{"a", 1, LargeValue::kNone, 1},
                                MaskColumn{"A", 2, LargeValue::kNone, 0},
                                MaskColumn{"B", 3, LargeValue::kNone, 2}));
}

TEST(UpdateMask, WhatImagesLackIsByTypeAndOperation) {
  const std::string written = {'\x01'};
  const std::string left_alone = {'\x02'};
  const struct {
    const char* type;
    std::optional<std::int64_t> length;
    bool before_written, before_left_alone, deleted;
  } cases[] = {{"nvarchar", -1, false, true, false},
               {"VARBINARY", -1, false, true, false},
               {"xml", -1, false, true, false},
               {"varchar", 8000, false, false, false},
               {"int", std::nullopt, false, false, false},
               {"text", 16, true, true, true},
               {"image", 16, true, true, true}};
  for (const auto& one : cases) {
    const MaskColumn column =
        PlanMask({{"c", {Kind::kUtf8}}}, {Captured("c", one.type, 1, one.length)})[0];
    EXPECT_EQ(IsUnknown(column, 3, written), one.before_written) << one.type;
    EXPECT_EQ(IsUnknown(column, 3, left_alone), one.before_left_alone) << one.type;
    EXPECT_EQ(IsUnknown(column, 1, written), one.deleted) << one.type;
    EXPECT_FALSE(IsUnknown(column, 4, left_alone)) << one.type;
    EXPECT_FALSE(IsUnknown(column, 2, written)) << one.type;
  }
}

TEST(UpdateMask, NamesAreAJsonList) {
  EXPECT_EQ(NameList({}), "[]");
  EXPECT_EQ(NameList({"a", "b \"c\\", "d\n"}), R"(["a", "b \"c\\", "d\u000a"])");
}

}  // namespace
}  // namespace mssql_cdc::cdc
