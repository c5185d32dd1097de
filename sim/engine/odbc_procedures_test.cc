// What drivers ask of the catalogue. Expectations are those of Microsoft's
// documentation of sp_tables, sp_columns, sp_pkeys and sp_statistics.

#include "sim/engine/engine_fixture_test.h"

namespace mssql_cdc::sim {
namespace {

using Rows = std::vector<std::string>;

class OdbcProceduresTest : public EngineTest {
 protected:
  OdbcProceduresTest() {
    Run("CREATE TABLE dbo.t (id int IDENTITY(1,1) NOT NULL PRIMARY KEY, "
        "price numeric(9,2) NULL DEFAULT 1, name nvarchar(20) NOT NULL, "
        "body nvarchar(max) NULL, at datetime2(3) NULL)");
    Run("CREATE TABLE dbo.t_x (a int NULL)");
    Run("CREATE UNIQUE INDEX t_name ON dbo.t (name DESC)");
  }
};

TEST_F(OdbcProceduresTest, TablesTakesPatternsAndAListOfTypes) {
  EXPECT_EQ(Run("EXEC sp_tables N't', N'dbo', NULL, N'''TABLE'''"),
            (Rows{"shop|dbo|t|TABLE|NULL"}));
  EXPECT_EQ(Run("EXEC sp_tables N't%', N'dbo'"),
            (Rows{"shop|dbo|t|TABLE|NULL", "shop|dbo|t_x|TABLE|NULL"}));
  EXPECT_EQ(Run("EXEC sp_tables N't[_]x'"), (Rows{"shop|dbo|t_x|TABLE|NULL"}));
  EXPECT_EQ(Run("EXEC sp_tables N't%', @fUsePattern = 0"), Rows{});
  EXPECT_EQ(Run("EXEC sp_tables N't', N'dbo', NULL, N'''VIEW'''"), Rows{});
  EXPECT_EQ(ErrorOf("EXEC sp_tables N't', N'dbo', N'other'"), 15250);
}

TEST_F(OdbcProceduresTest, ColumnsDescribesTypesAsOdbcDoes) {
  EXPECT_EQ(
      Run("EXEC sp_columns N't', N'dbo'"),
      (Rows{"shop|dbo|t|id|4|int identity|10|4|0|10|0|NULL|NULL|4|NULL|NULL|1|NO|"
            "56",
            "shop|dbo|t|price|2|numeric|9|11|2|10|1|NULL|((1))|2|NULL|NULL|2|YES|"
            "106",
            "shop|dbo|t|name|-9|nvarchar|20|40|NULL|NULL|0|NULL|NULL|-9|NULL|40|3|"
            "NO|39",
            "shop|dbo|t|body|-9|nvarchar|0|0|NULL|NULL|1|NULL|NULL|-9|NULL|0|4|YES|"
            "39",
            "shop|dbo|t|at|11|datetime2|23|16|3|NULL|1|NULL|NULL|9|3|NULL|5|YES|"
            "0"}));
  EXPECT_EQ(
      Run("EXEC sp_columns_100 N't', N'dbo', N'shop', N'at', 2, 3"),
      (Rows{"shop|dbo|t|at|93|datetime2|23|16|3|NULL|1|NULL|NULL|9|3|NULL|5|YES|0|"
            "0|0|0|NULL|NULL|NULL|NULL|NULL|NULL|0"}));
  EXPECT_EQ(ErrorOf("EXEC sp_columns"), 201);
}

TEST_F(OdbcProceduresTest, ADefaultIsShownInParentheses) {
  Run("CREATE TABLE dbo.d (a int DEFAULT (-1), b varchar(9) DEFAULT 'a)(', "
      "c datetime DEFAULT (getdate()), e int DEFAULT (1)+(2))");
  EXPECT_EQ(Run("SELECT COLUMN_DEFAULT FROM INFORMATION_SCHEMA.COLUMNS "
                "WHERE TABLE_NAME = 'd' ORDER BY ORDINAL_POSITION"),
            (Rows{"((-1))", "('a)(')", "(getdate())", "((1)+(2))"}));
}

// mssql-jdbc reads them by INSERT ... EXEC into a table variable with a column
// PRECISION.
TEST_F(OdbcProceduresTest, ARowSetGoesIntoATableVariable) {
  EXPECT_EQ(Run("DECLARE @r TABLE(TABLE_QUALIFIER sysname, TABLE_OWNER sysname, "
                "TABLE_NAME sysname, PRECISION sysname, KEY_SEQ int, PK_NAME sysname); "
                "INSERT INTO @r EXEC sp_pkeys N't', N'dbo'; "
                "SELECT PRECISION AS name, KEY_SEQ FROM @r"),
            (Rows{"id|1"}));
}

TEST_F(OdbcProceduresTest, StatisticsListsTheTableAndItsIndexes) {
  const Rows rows = Run("EXEC sp_statistics_100 N't', N'dbo', NULL, N'%', N'Y'");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0], "shop|dbo|t|NULL|NULL|NULL|0|NULL|NULL|NULL|NULL|NULL|NULL");
  EXPECT_NE(rows[1].find("|1|1|id|A|"), std::string::npos) << rows[1];
  EXPECT_EQ(rows[2], "shop|dbo|t|0|t|t_name|3|1|name|D|NULL|NULL|NULL");
}

// pyodbc asks for four types when it connects, drivers for all of them.
TEST_F(OdbcProceduresTest, TypesAreListedByTheirNumber) {
  EXPECT_EQ(
      Run("EXEC sp_datatype_info_100 -9, 3"),
      (Rows{"nvarchar|-9|4000|N'|'|max length|1|0|3|NULL|0|NULL|nvarchar|NULL|NULL|"
            "-9|NULL|NULL|NULL|0",
            "sysname|-9|128|N'|'|NULL|1|0|3|NULL|0|NULL|sysname|NULL|NULL|-9|NULL|"
            "NULL|NULL|0"}));
  EXPECT_EQ(Run("EXEC sp_datatype_info_100 93, @ODBCVer = 3").size(), 3U);
  EXPECT_EQ(Run("EXEC sp_datatype_info_100 93").size(), 0U);
  EXPECT_EQ(Run("EXEC sp_datatype_info 11").size(), 3U);
  EXPECT_EQ(Run("EXEC sp_datatype_info_100").size(), 37U);
}

TEST_F(OdbcProceduresTest, ProceduresAreListedWithTheirGroup) {
  Run("CREATE PROCEDURE dbo.p AS SELECT 1");
  EXPECT_EQ(Run("EXEC sp_stored_procedures N'p%'"),
            (Rows{"shop|dbo|p;1|-1|-1|-1|NULL|2"}));
}

// Microsoft's page on sp_describe_first_result_set, its example's columns.
TEST_F(OdbcProceduresTest, TheFirstResultIsDescribedAndNothingRuns) {
  Run("CREATE TABLE dbo.d (id int NOT NULL PRIMARY KEY, n nvarchar(20) NULL, p "
      "decimal(9, 2) NOT NULL)");
  TextSink sink;
  session_->Batch(
      "EXEC sp_describe_first_result_set N'INSERT dbo.d VALUES (1, N''x'', 1) SELECT "
      "id, "
      "n, p * 2 AS twice FROM dbo.d WHERE id = @p', N'@p int'",
      sink);
  ASSERT_TRUE(sink.errors.empty()) << sink.errors[0].text;
  EXPECT_EQ(sink.names.size(), 39u);
  ASSERT_EQ(sink.rows.size(), 3u);
  EXPECT_EQ(sink.rows[0].substr(0, 22), "0|1|id|0|56|int|4|10|0");
  EXPECT_EQ(sink.rows[1].substr(0, 34), "0|2|n|1|231|nvarchar(20)|40|0|0|SQ");
  EXPECT_EQ(sink.rows[2].substr(0, 42), "0|3|twice|1|106|decimal(11,2)|9|11|2|NULL|")
      << sink.rows[2];
  EXPECT_EQ(One("SELECT COUNT(*) FROM dbo.d"), "0");
  EXPECT_EQ(ErrorOf("EXEC sp_describe_first_result_set N'SELECT * FROM dbo.nosuch'"),
            208);
  EXPECT_EQ(Run("EXEC sp_describe_first_result_set N'DELETE dbo.d'"), Rows{});
}

// Microsoft's page on sp_describe_undeclared_parameters: a parameter takes the type of
// what it is compared with or assigned to.
TEST_F(OdbcProceduresTest, ParametersGetTheTypeOfTheirPlace) {
  Run("CREATE TABLE dbo.d (id bigint NOT NULL PRIMARY KEY, n nvarchar(20) NULL, p "
      "decimal(9, 2) NULL)");
  const struct {
    std::string sql;
    std::string types;  // Of its parameters, in the order of their first places.
  } cases[] = {
      {"SELECT * FROM dbo.d WHERE id = @a", "@a bigint"},
      {"SELECT * FROM dbo.d WHERE n LIKE @a AND @b < p",
       "@a varchar(8000),@b "
       "decimal(9,2)"},
      {"SELECT * FROM dbo.d WHERE id IN (@a, @b)", "@a bigint,@b bigint"},
      {"SELECT * FROM dbo.d WHERE id BETWEEN @a AND @a + 1", "@a bigint"},
      {"INSERT dbo.d (n, id) VALUES (@a, @b)", "@a nvarchar(20),@b bigint"},
      {"UPDATE dbo.d SET p = @a WHERE n = @b", "@b nvarchar(20),@a decimal(9,2)"},
      {"SELECT TOP (@a) CAST(@b AS datetime2(3)) FROM dbo.d",
       "@b datetime2(3),@a bigint"},
      {"SELECT id + @a FROM dbo.d WHERE id = @known", "@a bigint"},
      {"SELECT 1", ""},
  };
  for (const auto& [sql, types] : cases) {
    TextSink sink;
    session_->Batch(
        "EXEC sp_describe_undeclared_parameters N'" + sql + "', N'@known int'", sink);
    ASSERT_TRUE(sink.errors.empty()) << sql << ": " << sink.errors[0].text;
    EXPECT_EQ(sink.names.size(), 24u);
    std::string got;
    for (const std::string& row : sink.rows) {
      // Ordinal, name, system_type_id, system_type_name.
      std::vector<std::string> cells(1);
      for (const char c : row) {
        if (c == '|') {
          cells.emplace_back();
        } else {
          cells.back() += c;
        }
      }
      got += (got.empty() ? "" : ",") + cells.at(1) + " " + cells.at(3);
    }
    EXPECT_EQ(got, types) << sql;
  }
  // Number, severity and text: Microsoft's list "Database engine events and errors,
  // 11000 to 12999".
  TextSink sink;
  session_->Batch("EXEC sp_describe_undeclared_parameters N'SELECT @a'", sink);
  ASSERT_EQ(sink.errors.size(), 1u);
  EXPECT_EQ(sink.errors[0].number, 11502);
  EXPECT_EQ(sink.errors[0].severity, 16);
  EXPECT_EQ(sink.errors[0].text,
            "The type for parameter '@a' cannot be deduced in this context.");
  EXPECT_EQ(ErrorOf("EXEC sp_describe_undeclared_parameters N'SELECT id FROM dbo.no "
                    "WHERE id = @a'"),
            208);
}

// Debezium asks whether the Agent runs.
TEST_F(OdbcProceduresTest, TheAgentIsAService) {
  const std::string status =
      "SELECT status, status_desc FROM shop.sys.dm_server_services WHERE servicename "
      "LIKE N'SQL Server Agent (%'";
  EXPECT_EQ(One(status), "4|Running");
  Run("EXEC sim.stall");
  EXPECT_EQ(One(status), "1|Stopped");
  Run("EXEC sim.resume");
  EXPECT_EQ(One(status), "4|Running");
  Run("CREATE LOGIN reader WITH PASSWORD = 'Pw-1'; CREATE USER reader FOR LOGIN "
      "reader");
  EXPECT_EQ(ErrorOn(*LoginAs("reader"), "SELECT status FROM sys.dm_server_services"),
            300);
}

}  // namespace
}  // namespace mssql_cdc::sim
