// Lets `./dev mutants` run this program's tests without one behaviour, and checks the
// table that it goes by.

#include "sim/engine/behaviour.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace mssql_cdc::sim {
namespace {

constexpr char kVariable[] = "MSSQL_CDC_TEST_WITHOUT";

class WithoutOne final : public testing::Environment {
 public:
  void SetUp() override {
    const char* name = std::getenv(kVariable);
    if (name == nullptr || *name == '\0') return;
    ASSERT_TRUE(TurnOffForTest(name)) << kVariable << " names no behaviour: " << name;
  }
};

[[maybe_unused]] const testing::Environment* const kWithoutOne =
    testing::AddGlobalTestEnvironment(new WithoutOne);

TEST(Behaviours, EachHasOneRowAndAName) {
  std::set<std::string_view> names;
  std::set<int> lines;
  int expected = 0;
  for (const BehaviourRow& row : kBehaviours) {
    EXPECT_EQ(static_cast<int>(row.behaviour), expected++) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    lines.insert(row.line);
  }
  EXPECT_EQ(expected, static_cast<int>(Behaviour::kErrorsAfterRows) + 1);
  EXPECT_EQ(lines.size(), 17u);
  EXPECT_EQ(*lines.begin(), 1);
  EXPECT_EQ(*lines.rbegin(), 17);
}

}  // namespace
}  // namespace mssql_cdc::sim
