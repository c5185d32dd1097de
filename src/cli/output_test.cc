#include "cli/output.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cli {
namespace {

TEST(Output, EachRemedyHasItsExitCode) {
  EXPECT_EQ(ExitCodeOf(Error(ErrorId::kConnectFailed)), 75);
  EXPECT_EQ(ExitCodeOf(Error(ErrorId::kLoginFailed)), 78);
  EXPECT_EQ(ExitCodeOf(Error(ErrorId::kDataLoss)), 65);
  EXPECT_EQ(ExitCodeOf(Error(ErrorId::kTdsMalformed)), 70);
}

TEST(Output, NumbersAreForPeople) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(-999), "-999");
  EXPECT_EQ(Grouped(-1000), "-1,000");
  EXPECT_EQ(Grouped(1234567), "1,234,567");
  EXPECT_EQ(Duration(850), "850 ms");
  EXPECT_EQ(Duration(12'340), "12.3 s");
  EXPECT_EQ(Duration(245'000), "4 min 05 s");
  EXPECT_EQ(SizeText(312), "312 B");
  EXPECT_EQ(SizeText(4'500), "4.5 kB");
  EXPECT_EQ(SizeText(12'000'000), "12.0 MB");
}

TEST(Output, JsonLinesHoldHostileTextAsText) {
  ManualClock clock(0);
  Output output(LogForm::kJson, clock);
  testing::internal::CaptureStdout();
  output.Event("orders", "batch", "", {{"rows", "3", false}, {"lsn", "0x\"\n"}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            R"({"at":"1970-01-01T00:00:00.000Z","level":"info","stream":"orders",)"
            R"("event":"batch","rows":3,"lsn":"0x\"\n"})"
            "\n");
}

TEST(Output, AFailureSaysWhatToDo) {
  ManualClock clock(0);
  Output output(LogForm::kText, clock);
  testing::internal::CaptureStderr();
  output.Failure("orders", Error(ErrorId::kDataLoss).With("capture_instance", "dbo_o"));
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "orders: error: MC3001 DataLoss: changes were removed before they were read "
      "(capture_instance=dbo_o)\n  what to do: take a new snapshot: the source no "
      "longer has the changes (docs/errors.md, MC3001)\n");
}

}  // namespace
}  // namespace mssql_cdc::cli
