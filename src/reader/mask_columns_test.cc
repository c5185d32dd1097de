#include "reader/mask_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columns/take.h"

namespace mssql_cdc::reader {
namespace {

using columns::Kind;
using testing::ElementsAre;

ColumnPtr Texts(Kind kind, const std::vector<std::optional<std::string>>& values) {
  columns::ColumnBuilder out({kind}, 8);
  for (const auto& value : values) {
    if (value) {
      out.AppendBytes(*value);
    } else {
      out.AppendNull();
    }
  }
  return std::make_shared<const columns::Column>(out.Finish());
}

ColumnPtr Numbers(const std::vector<int>& values) {
  columns::ColumnBuilder out({Kind::kInt32}, 8);
  for (const int value : values) out.AppendInt32(value);
  return std::make_shared<const columns::Column>(out.Finish());
}

std::vector<std::string> Told(const ColumnPtr& column) {
  std::vector<std::string> told;
  for (std::int64_t i = 0; i < column->row_count; ++i) {
    told.emplace_back(columns::IsNull(*column, i) ? "NULL"
                                                  : columns::BytesValue(*column, i));
  }
  return told;
}

const cdc::MaskColumn kNote{"note", 2, cdc::LargeValue::kMax, 1};
const MaskPlan kPlan{{{"id", 1, cdc::LargeValue::kNone, 0}, kNote},
                     cdc::UnchangedLob::kListed};

TEST(MaskRows, NamesAreOfUpdatesAlone) {
  const ColumnPtr operations = Numbers({1, 2, 3, 4, 3});
  const ColumnPtr masks =
      Texts(Kind::kBinary, {"\x03", "\x03", "\x02", "\x02", std::nullopt});
  const auto mask = MaskRows::Of(kPlan, *operations, *masks);
  ASSERT_TRUE(mask.ok());
  EXPECT_THAT(Told(mask.value().ChangedNames()),
              ElementsAre("NULL", "NULL", R"(["note"])", R"(["note"])", "[]"));
  EXPECT_TRUE(mask.value().EndsInPair());
}

TEST(MaskRows, UnknownIsWhatIsNullAndWasLeftAlone) {
  const ColumnPtr operations = Numbers({3, 4, 3, 4, 1});
  const ColumnPtr masks =
      Texts(Kind::kBinary, {"\x01", "\x01", "\x02", "\x02", "\x03"});
  const ColumnPtr ids = Numbers({1, 1, 1, 1, 1});
  const ColumnPtr notes =
      Texts(Kind::kUtf8, {std::nullopt, "a", std::nullopt, "b", std::nullopt});
  const auto mask = MaskRows::Of(kPlan, *operations, *masks);
  ASSERT_TRUE(mask.ok());
  EXPECT_THAT(Told(mask.value().UnknownNames({ids.get(), notes.get()})),
              ElementsAre(R"(["note"])", "NULL", "NULL", "NULL", "NULL"));
  // The second pair wrote the note: what it was before is not in the row after.
  EXPECT_THAT(Told(mask.value().WithPrevious(kNote, notes)),
              ElementsAre("a", "a", "NULL", "b", "NULL"));
  EXPECT_FALSE(mask.value().EndsInPair());
}

TEST(MaskRows, AMaskThatIsNoBinaryIsRefused) {
  const ColumnPtr numbers = Numbers({3});
  EXPECT_EQ(MaskRows::Of(kPlan, *numbers, *numbers).error().id(),
            ErrorId::kTdsMalformed);
}

}  // namespace
}  // namespace mssql_cdc::reader
