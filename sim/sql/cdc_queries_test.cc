// The constructs of facts/existing-package-tsql.md (M5, M6, R1, T3, T8, the named time
// zones) over a change table and a time mapping in memory: their answers, and that they
// read no more rows than they must.

#include <gtest/gtest.h>

#include "sim/sql/memory_environment_test.h"

namespace mssql_cdc::sim {
namespace {

// Twenty commits, ten minutes apart, in the night in which W. Europe's clock jumps from
// 02:00 to 03:00; each with one change.
struct Changes {
  Changes() {
    SqlType lsn = TypeOf(TypeId::kBinary);
    lsn.length = 10;
    const SqlType integer = TypeOf(TypeId::kInt);
    MemoryTable& mapping = environment.Add(
        "lsn_time_mapping",
        {{"start_lsn", lsn, false, false, false, false},
         {"tran_end_time", TypeOf(TypeId::kDateTime), true, false, false, false}});
    MemoryTable& table = environment.Add(
        "orders_ct", {{"__$start_lsn", lsn, false, false, false, false},
                      {"__$operation", integer, false, false, false, false},
                      {"k", integer, true, false, false, false}});
    for (int i = 1; i <= 20; ++i) {
      Value position, time, number;
      Bytes bytes(10);
      bytes[9] = static_cast<std::uint8_t>(i);
      position.held = bytes;
      time.held = DateTimeValue{DaysOfDate(2026, 3, 29), i * 10 * kTicksPerMinute, 0};
      number.held = std::int64_t{2};
      mapping.rows[i] = {position, time};
      table.rows[i] = {position, number, number};
    }
  }

  std::string Ask(const std::string& sql) {
    const auto text = [](const char* written) {
      Value value;
      value.held = Utf16(written);
      return value;
    };
    ReplyLog sink;
    interpreter.ExecuteSql(
        sql,
        {{"@P1", NVarCharType(22), text("0x00000000000000000002"), false},
         {"@P2", NVarCharType(22), text("0x00000000000000000003"), false}},
        sink);
    return sink.text;
  }
  const ScanCount& Count(const std::string& table) {
    return environment.tables[table]->count;
  }

  MemoryEnvironment environment;
  Interpreter interpreter{environment};
};

TEST(CdcQueries, TheNextCommitsAreReadByKey) {
  Changes changes;
  EXPECT_EQ(
      changes.Ask("SELECT CONVERT(varchar(22), MAX(start_lsn), 1) FROM (SELECT TOP "
                  "(3) start_lsn FROM cdc.lsn_time_mapping WHERE start_lsn > "
                  "CONVERT(binary(10), @P1, 1) ORDER BY start_lsn) t"),
      "varchar(22) = 0x00000000000000000005  status 0");
  EXPECT_EQ(changes.Count("lsn_time_mapping").rows, 3);
}

TEST(CdcQueries, ChangesJoinedToTheirTimesAreReadByKeyAndInOrder) {
  Changes changes;
  EXPECT_EQ(
      changes.Ask(
          "SELECT CONVERT(varchar(22), c.[__$start_lsn], 1) AS l, c.[k], "
          "CAST((m.tran_end_time AT TIME ZONE N'W. Europe Standard Time') AT TIME ZONE "
          "'UTC' AS datetime2(3)) AS t FROM cdc.[orders_CT] c JOIN "
          "cdc.lsn_time_mapping m "
          "ON m.start_lsn = c.[__$start_lsn] WHERE c.[__$start_lsn] BETWEEN "
          "CONVERT(binary(10), @P1, 1) AND CONVERT(binary(10), @P2, 1) ORDER BY "
          "c.[__$start_lsn], c.[__$operation]"),
      "varchar(22),int,datetime2(3) = 0x00000000000000000002|2|2026-03-28 "
      "23:20:00.000;0x00000000000000000003|2|2026-03-28 23:30:00.000  status 0");
  EXPECT_EQ(changes.Count("orders_ct").rows, 2);
  EXPECT_EQ(changes.Count("lsn_time_mapping").rows, 2);
}

TEST(CdcQueries, TilesAreCounted) {
  Changes changes;
  EXPECT_EQ(
      changes.Ask(
          "SELECT CONVERT(varchar(22), MAX(__$start_lsn), 1) AS b, COUNT_BIG(*) AS r "
          "FROM (SELECT __$start_lsn, NTILE(3) OVER (ORDER BY __$start_lsn) AS g "
          "FROM cdc.[orders_CT]) x GROUP BY g ORDER BY b"),
      "varchar(22),bigint = "
      "0x00000000000000000007|7;0x0000000000000000000E|7;0x00000000000000000014|6"
      "  status 0");
}

TEST(CdcQueries, SlicesAreCountedByWholeDivision) {
  Changes changes;
  EXPECT_EQ(
      changes.Ask(
          "SELECT [__$b] AS b, COUNT_BIG(*) AS n, SUM(CAST([__$o] AS "
          "decimal(38,0))) AS s FROM (SELECT CAST([k] AS bigint) AS [__$o], CASE "
          "WHEN CAST([k] AS bigint) >= 0 THEN CAST([k] AS bigint) / CAST(2 AS "
          "bigint) ELSE (CAST([k] AS bigint) + 1) / CAST(2 AS bigint) - 1 END AS "
          "[__$b] FROM [cdc].[orders_CT] WHERE [k] IS NOT NULL) x GROUP BY [__$b]"),
      "bigint,bigint,decimal(38,0) = 1|20|40  status 0");
}

TEST(CdcQueries, JumpsOfTheClockAreFoundWithLag) {
  Changes changes;
  EXPECT_EQ(changes.Ask("SELECT d.t FROM (SELECT CONVERT(binary(10), @P1, 1) AS lo) b "
                        "CROSS APPLY (SELECT start_lsn, tran_end_time AS t, "
                        "LAG(tran_end_time) OVER (ORDER BY start_lsn) AS prev FROM "
                        "cdc.lsn_time_mapping WHERE start_lsn >= b.lo AND start_lsn <= "
                        "CONVERT(binary(10), @P2, 1)) d WHERE d.t > d.prev"),
            "datetime = 2026-03-29 00:30:00.000  status 0");
  EXPECT_EQ(changes.Count("lsn_time_mapping").rows, 2);
}

TEST(CdcQueries, PiecesOfAKeyRangeAreOrderedAndSkipped) {
  Changes changes;
  EXPECT_EQ(
      changes.Ask("SELECT s FROM (SELECT * FROM (SELECT TOP (3) __$start_lsn AS s "
                  "FROM cdc.orders_CT WHERE __$start_lsn > 0x00 ORDER BY "
                  "__$start_lsn) p UNION ALL SELECT * FROM (SELECT TOP (1) "
                  "__$start_lsn AS s FROM cdc.orders_CT ORDER BY __$start_lsn DESC) "
                  "q) u ORDER BY s OFFSET 3 ROWS FETCH NEXT 1 ROWS ONLY"),
      "binary(10) = 0x00000000000000000014  status 0");
  EXPECT_EQ(changes.Count("orders_ct").rows, 4);
}

}  // namespace
}  // namespace mssql_cdc::sim
