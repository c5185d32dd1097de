#include "base/error.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>

namespace mssql_cdc {
namespace {

TEST(Error, TextHasCodeNameSummaryAndFacts) {
  const Error error = Error(ErrorId::kDataLoss).With("capture_instance", "dbo_orders");
  EXPECT_EQ(error.Text(),
            "MC3001 DataLoss: changes were removed before they were read "
            "(capture_instance=dbo_orders)");
  EXPECT_EQ(error.remedy(), Remedy::kReseed);
  EXPECT_EQ(error.Fact("capture_instance"), "dbo_orders");
  EXPECT_EQ(error.Fact("table"), std::nullopt);
}

TEST(Error, ControlCharactersOfAServerDoNotReachATerminal) {
  const Error error = Error(ErrorId::kServerError).With("message", "a\x1b[2J\nb\x7f");
  EXPECT_EQ(error.Fact("message"), "a [2J b ");
}

TEST(Error, EveryRowOfTheCatalogueKeepsItsForm) {
  std::set<std::string_view> names;
  for (const ErrorId id : {
#define ROW(number, name, remedy, summary) ErrorId::k##name,
           MSSQL_CDC_ERRORS(ROW)
#undef ROW
       }) {
    const ErrorRule rule = RuleOf(id);
    SCOPED_TRACE(rule.name);
    EXPECT_TRUE(names.insert(rule.name).second);
    ASSERT_FALSE(rule.summary.empty());
    EXPECT_FALSE(std::isupper(static_cast<unsigned char>(rule.summary.front())));
    EXPECT_NE(rule.summary.back(), '.');
  }
}

Result<int> Half(int value) {
  if (value % 2 != 0) return Error(ErrorId::kOptionInvalid);
  return value / 2;
}
Result<int> Quarter(int value) {
  TRY_ASSIGN(const int half, Half(value));
  return Half(half);
}

TEST(Result, TryHandsTheErrorOn) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(6).error().id(), ErrorId::kOptionInvalid);
}

TEST(ResultDeathTest, AskingForTheAbsentSideAborts) {
  const Result<int> failed = Error(ErrorId::kLakeConflict);
  EXPECT_DEATH((void)failed.value(), "");
  EXPECT_EQ(Result<int>(7).value(), 7);
}

}  // namespace
}  // namespace mssql_cdc
