// Many tables in one process: what they share, and what they must not.

#include "tests/many_streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace mssql_cdc {
namespace {

std::string Folder() {
  return testing::TempDir() + "mssql_cdc_many_" + std::to_string(::getpid());
}

TEST(ManyTables, B63AnIdlePollIsOneStatementForAllAndWakesWhoHasChanges) {
  constexpr int kTables = 20;
  ManyStreams many(Folder(), kTables, 4);
  many.Start();
  many.AwaitIdle(kTables);
  const sim::wire::Counters& counters = many.source().counters();
  EXPECT_LE(counters.logins.load(), 8u);  // Four at work; each may lose one at first.

  const std::uint64_t before = counters.messages.load();
  for (int round = 0; round < 3; ++round) EXPECT_FALSE(many.watch().Round());
  EXPECT_EQ(counters.messages.load() - before, 3u);

  many.Insert(7, 1);
  EXPECT_TRUE(many.watch().Round());
  many.AwaitIdle(kTables);
  EXPECT_EQ(many.RowCount(7), 1);
  // A round; then the stream's poll, its read, and the poll that finds nothing more.
  EXPECT_LE(counters.messages.load() - before, 3u + 1u + 3u);
  EXPECT_FALSE(many.watch().Round());
  for (int table = 0; table < kTables; ++table) {
    EXPECT_EQ(many.RowCount(table), table == 7 ? 1 : 0) << table;
  }
}

TEST(ManyTables, OneThatFailsStopsNoOther) {
  constexpr int kTables = 6;
  ManyStreams many(Folder(), kTables, 2);
  many.Start();
  many.AwaitIdle(kTables);
  many.source().Sql("EXEC sys.sp_cdc_disable_table N'dbo', N't3', N'dbo_t3'");
  many.Insert(5, 1);
  // The statement for all fails on the change table that is gone.
  EXPECT_FALSE(many.watch().Round());
  many.AwaitIdle(kTables - 1);
  EXPECT_EQ(many.RowCount(5), 1);
  many.Insert(4, 1);
  EXPECT_TRUE(many.watch().Round());
  many.AwaitIdle(kTables - 1);
  EXPECT_EQ(many.RowCount(4), 1);
  many.StopAll();
  for (std::size_t table = 0; table < kTables; ++table) {
    ASSERT_TRUE(many.ending(table).has_value());
    EXPECT_EQ(many.ending(table)->ok(), table != 3) << table;
  }
  EXPECT_EQ(many.ending(3)->error().id(), ErrorId::kCaptureInstanceNotFound);
}

}  // namespace
}  // namespace mssql_cdc
