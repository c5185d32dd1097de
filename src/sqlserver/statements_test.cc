#include "sqlserver/statements.h"

#include <gtest/gtest.h>

namespace mssql_cdc::sqlserver {
namespace {

TEST(Statements, NamesAreQuotedWhateverIsInThem) {
  EXPECT_EQ(QuoteName("order_id"), "[order_id]");
  EXPECT_EQ(QuoteName("a]b"), "[a]]b]");
  EXPECT_EQ(QuoteName("x]; DROP TABLE t --"), "[x]]; DROP TABLE t --]");
  EXPECT_EQ(ChangeTableName("dbo_orders"), "cdc.[dbo_orders_CT]");
}

TEST(Statements, ChangesComeInTheChangeTablesOwnOrderAboveAfterUpToThrough) {
  const ChangesQuestion question{
      "dbo_orders", {1}, {2}, true, {{"id", "bigint"}, {"a]b", ""}}, {}, false};
  const Request request = ReadChanges(question);
  EXPECT_TRUE(request.sql.starts_with(
      "SELECT c.[__$start_lsn], c.[__$seqval], c.[__$operation], c.[__$command_id], "
      "m.tran_end_time AS commit_time, CAST(c.[id] AS bigint) AS [id], c.[a]]b] "
      "FROM cdc.[dbo_orders_CT] AS c "
      "JOIN cdc.lsn_time_mapping AS m ON m.start_lsn = c.[__$start_lsn] "
      "WHERE c.[__$start_lsn] > @after AND c.[__$start_lsn] <= @through "
      "ORDER BY c.[__$start_lsn], c.[__$command_id], c.[__$seqval], "
      "c.[__$operation]; "))
      << request.sql;
  ASSERT_EQ(request.parameters.size(), 3u);
  EXPECT_EQ(request.parameters[0].kind, Parameter::Kind::kBinary10);
  EXPECT_EQ(request.parameters[0].bytes, std::string("\x01\0\0\0\0\0\0\0\0\0", 10));
  EXPECT_EQ(request.parameters[2].bytes, "dbo_orders");
}

TEST(Statements, WithoutCommandIdsNothingMentionsThem) {
  const ChangesQuestion question{"dbo_orders", {1}, {2}, false, {{"id", ""}}, {}, true};
  EXPECT_EQ(ReadChanges(question).sql.find("__$command_id"), std::string::npos);
  EXPECT_NE(ReadChanges(question).sql.find("ASYNC_NETWORK_IO"), std::string::npos);
}

TEST(Statements, APollAsksForMoreOnlyWhereThereIsMore) {
  PollQuestion question;
  question.source_schema = "dbo";
  question.source_table = "orders";
  question.capture_instances = {"dbo_orders", "v2"};
  question.counted_instance = "v2";
  const auto after_if = [&question] {
    const std::string sql = Poll(question).sql;
    const std::size_t at = sql.find(
        "IF EXISTS (SELECT 1 FROM cdc.lsn_time_mapping "
        "WHERE start_lsn > @after) BEGIN ");
    EXPECT_NE(at, std::string::npos);
    EXPECT_TRUE(sql.ends_with(" END"));
    EXPECT_EQ(sql.substr(0, at).find("EXEC"), std::string::npos);
    return sql.substr(at);
  };
  EXPECT_NE(after_if().find("sp_cdc_get_ddl_history @capture_instance = @instance1"),
            std::string::npos);
  EXPECT_EQ(after_if().find("TOP"), std::string::npos);
  EXPECT_EQ(Poll(question).parameters.size(), 5u);
  question.commit_count_max = 500;
  question.through_max = LsnBytes{9};
  question.row_count_max = 70;
  EXPECT_NE(after_if().find("(SELECT TOP (500) start_lsn AS lsn"), std::string::npos);
  EXPECT_NE(after_if().find("start_lsn > @after AND start_lsn <= @through"),
            std::string::npos);
  EXPECT_NE(after_if().find("(SELECT TOP (70) [__$start_lsn] FROM cdc.[v2_CT]"),
            std::string::npos);
  EXPECT_EQ(Poll(question).parameters.size(), 6u);
}

// Facts, B41: sys.fn_cdc_get_max_lsn is compiled anew at each call and contends; B61: a
// function per row; B62: another order than the clustered index's sorts.
TEST(Statements, B41B61B62NothingCallsAFunctionPerPollOrRowOrSorts) {
  PollQuestion poll;
  poll.capture_instances = {"v1"};
  const ChangesQuestion changes{"v1", {1}, {2}, true, {{"id", ""}}, {}, false};
  for (const std::string& sql : {Poll(poll).sql, ReadChanges(changes).sql}) {
    EXPECT_EQ(sql.find("fn_cdc_get_max_lsn"), std::string::npos);
    EXPECT_EQ(sql.find("fn_cdc_map_lsn_to_time"), std::string::npos);
  }
  EXPECT_NE(ReadChanges(changes).sql.find(
                "ORDER BY c.[__$start_lsn], c.[__$command_id], c.[__$seqval], "
                "c.[__$operation];"),
            std::string::npos);
}

TEST(Statements, ANamedZoneIsConvertedByTheServer) {
  const std::string zone = "Romance Standard Time";
  const std::string before =
      "DATEPART(TZOFFSET, DATEADD(hour, -3, CAST(lsn_time_mapping.tran_end_time AS "
      "datetime2(3))) AT TIME ZONE N'Romance Standard Time') AS b";
  EXPECT_NE(AskNewestCommit(zone).sql.find(before), std::string::npos);
  EXPECT_NE(AskCommitTime({}, zone).sql.find(before), std::string::npos);
  EXPECT_EQ(AskNewestCommit({}).sql.find("TIME ZONE"), std::string::npos);
}

TEST(Statements, SnapshotRangesTileTheKeyAndNull) {
  SnapshotQuestion question{"dbo", "orders", {{"id", ""}, {"note", ""}}, "id", {},
                            {},    {}};
  const std::string from = "SELECT [id], [note] FROM [dbo].[orders]";
  EXPECT_EQ(ReadSnapshot(question).sql, from);
  question.through = 10;
  EXPECT_EQ(ReadSnapshot(question).sql, from + " WHERE ([id] <= 10 OR [id] IS NULL)");
  question.after = -5;
  EXPECT_EQ(ReadSnapshot(question).sql, from + " WHERE [id] > -5 AND [id] <= 10");
  question.through.reset();
  EXPECT_EQ(ReadSnapshot(question).sql, from + " WHERE [id] > -5");
}

TEST(Statements, SettingsOfASourceReadAreUndoneAfterIt) {
  const SourceSettings settings{250, true};
  const SnapshotQuestion question{"dbo", "t", {{"id", ""}}, "", {}, {}, settings};
  EXPECT_EQ(ReadSnapshot(question).sql,
            "SET LOCK_TIMEOUT 250; SET TRANSACTION ISOLATION LEVEL SNAPSHOT; "
            "SELECT [id] FROM [dbo].[t]; "
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCK_TIMEOUT -1");
  EXPECT_EQ(AskKeyExtent("dbo", "t", "id", {}).sql,
            "SELECT (SELECT CAST(MIN([id]) AS bigint) FROM [dbo].[t]) AS min_key, "
            "(SELECT CAST(MAX([id]) AS bigint) FROM [dbo].[t]) AS max_key");
}

}  // namespace
}  // namespace mssql_cdc::sqlserver
