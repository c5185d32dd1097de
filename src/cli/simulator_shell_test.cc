#include "cli/simulator_shell.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cli {
namespace {

TEST(SimulatorShell, BatchesArePartedByLinesThatSayGo) {
  EXPECT_EQ(SplitAtGo("SELECT 1\nGO\n\n  go  \nSELECT 'go'\nGo\n"),
            (std::vector<std::string>{"SELECT 1\n", "SELECT 'go'\n"}));
  EXPECT_EQ(SplitAtGo("USE a"), (std::vector<std::string>{"USE a\n"}));
  EXPECT_TRUE(SplitAtGo(" \nGO\n").empty());
}

}  // namespace
}  // namespace mssql_cdc::cli
