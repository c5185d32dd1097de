// A commit whose write took effect though it was reported as failed, as a client of an
// object store sees when an answer is lost and the repeated write finds its own work.
// The local store makes a version with linkat, which is taken over here: the link is
// made, and then fails as the test says.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "lake/delta_lake.h"
#include "lake/rows_for_test.h"

namespace {

int g_error_after_link = 0;  // Of the next link, once; 0: it succeeds.

}  // namespace

extern "C" int linkat(int from_folder, const char* from, int to_folder, const char* to,
                      int flags) noexcept {
  const long made = ::syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
  if (made != 0 || g_error_after_link == 0) return static_cast<int>(made);
  errno = g_error_after_link;
  g_error_after_link = 0;
  return -1;
}

namespace mssql_cdc::lake {
namespace {

using columns::Kind;

const columns::Schema kOrders{{{"id", {Kind::kInt64}}}};

std::vector<std::unique_ptr<columns::BatchReader>> Orders(std::int64_t count) {
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  sources.push_back(ReadRows(
      kOrders, count, [](std::int64_t row, std::size_t, columns::ColumnBuilder& out) {
        out.AppendInt64(row);
      }));
  return sources;
}

class DeltaCommitTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    CreateSpec spec{kOrders, "", {}};
    spec.properties[kDeletionVectorsProperty] = "true";
    ASSERT_TRUE(lake_.Create(location_, spec).ok());
  }
  void TearDown() override { g_error_after_link = 0; }

  TestFolder folder_;
  std::string location_ = (folder_.path() / "t").string();
  DeltaLake lake_;
};

TEST_P(DeltaCommitTest, AnAppendThatIsInTheLogIsDoneAndKeepsItsFiles) {
  g_error_after_link = GetParam();
  const auto appended = lake_.Append(location_, Orders(2), {Txn{"app", 1}, {}, false});
  ASSERT_TRUE(appended.ok()) << appended.error().Text();
  EXPECT_EQ(g_error_after_link, 0);
  EXPECT_EQ(appended.value().outcome, AppendOutcome::kCommitted);
  EXPECT_EQ(appended.value().row_count, 2);
  EXPECT_EQ(lake_.State(location_).value()->version, 1);
  DeltaLake other;
  EXPECT_EQ(RowsOf(other, location_, {}), (std::vector<std::string>{"0", "1"}));
}

TEST_P(DeltaCommitTest, ADeleteThatIsInTheLogKeepsItsVectors) {
  ASSERT_TRUE(lake_.Append(location_, Orders(3), {}).ok());
  auto change = lake_.Change(location_, {ChangeKind::kMerge, kOrders.fields});
  ASSERT_TRUE(change.ok()) << change.error().Text();
  const auto probed = change.value()->Probe({{"id"}});
  ASSERT_TRUE(probed.ok()) << probed.error().Text();
  while (probed.value()->Next().value()) {
  }
  const std::int64_t rows[] = {1};
  ASSERT_TRUE(change.value()->Remove(0, rows).ok());
  g_error_after_link = GetParam();
  const auto done = change.value()->Commit("{}");
  ASSERT_TRUE(done.ok()) << done.error().Text();
  EXPECT_EQ(g_error_after_link, 0);
  EXPECT_TRUE(done.value().is_committed);
  change.value().reset();
  DeltaLake other;
  EXPECT_EQ(RowsOf(other, location_, {}), (std::vector<std::string>{"0", "2"}));
}

INSTANTIATE_TEST_SUITE_P(Errors, DeltaCommitTest, testing::Values(EEXIST, EIO),
                         [](const auto& each) {
                           return std::string(each.param == EEXIST ? "Taken"
                                                                   : "Failed");
                         });

}  // namespace
}  // namespace mssql_cdc::lake
