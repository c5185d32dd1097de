#include "cli/child.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace mssql_cdc::cli {
namespace {

std::vector<std::string> lines;

TEST(Child, HandsOnLinesAndTheExitCode) {
  lines.clear();
  auto child = Child::Start({"/bin/sh", "-c", "echo $GREETING; printf last; exit 7"},
                            {{"GREETING", "hello"}},
                            [](const std::string& line) { lines.push_back(line); });
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child.value()->Wait(), 7);
  EXPECT_EQ(lines, (std::vector<std::string>{"hello", "last"}));
}

// Of a name that is there twice, getenv gives the first.
TEST(Child, AnAddedVariableTakesThePlaceOfTheInheritedOne) {
  lines.clear();
  ASSERT_EQ(setenv("GREETING", "inherited", 1), 0);
  auto child = Child::Start({"/usr/bin/env"}, {{"GREETING", "hello"}},
                            [](const std::string& line) {
                              if (line.starts_with("GREETING=")) lines.push_back(line);
                            });
  unsetenv("GREETING");
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child.value()->Wait(), 0);
  EXPECT_EQ(lines, (std::vector<std::string>{"GREETING=hello"}));
}

TEST(Child, TellsWhichSignalEndedIt) {
  auto child =
      Child::Start({"/bin/sh", "-c", "kill -9 $$"}, {}, [](const std::string&) {});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child.value()->Wait(), -SIGKILL);
}

TEST(Child, AProgramThatIsNotThereIsNamed) {
  const auto child = Child::Start({"/no/such/program"}, {}, [](const std::string&) {});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().Fact("file"), "/no/such/program");
}

}  // namespace
}  // namespace mssql_cdc::cli
