// The simulator answers nothing it does not understand: statements mutated from
// accepted ones and statements outside the subset, each with SQL Server's error number.

#include <fstream>

#include "sim/engine/engine_fixture_test.h"

namespace mssql_cdc::sim {
namespace {

struct Refused {
  std::int32_t number = 0;
  std::string sql;
};

std::vector<Refused> Statements() {
  std::ifstream file(std::string(MSSQL_CDC_SOURCE_DIR) +
                     "/sim/engine/refused_statements.txt");
  std::vector<Refused> statements;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t tab = line.find('\t');
    const auto number = ParseInt64(line.substr(0, tab));
    if (!number || tab == std::string::npos) {
      ADD_FAILURE() << "no number and tab in: " << line;
      continue;
    }
    statements.push_back({static_cast<std::int32_t>(*number), line.substr(tab + 1)});
  }
  return statements;
}

class RefusedTest : public EngineTest {
 protected:
  RefusedTest() {
    EnableCdc();
    Run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a int NULL, b varchar(20) "
        "NULL)");
    Track("t");
    Run("INSERT INTO dbo.t VALUES (1, 10, 'x'), (2, 20, 'y')");
    Run("CREATE TABLE dbo.v (id int NOT NULL PRIMARY KEY, g uniqueidentifier NULL, d "
        "date NULL, bin varbinary(9) NULL, u int NULL, k int NULL CHECK (k > 0), c AS "
        "id "
        "+ 1, rv rowversion) CREATE UNIQUE INDEX ux ON dbo.v (u)");
    Run("INSERT INTO dbo.v (id, g, d, u) VALUES (1, NEWID(), '2026-01-01', 7)");
    Run("CREATE TABLE dbo.i (n int IDENTITY NOT NULL, x int NULL)");
    Run("INSERT INTO dbo.i (x) VALUES (1)");
    Capture();
  }
  std::string State() {
    std::string state;
    for (const std::string query :
         {"SELECT id, a, b FROM dbo.t", "SELECT id, u FROM dbo.v",
          "SELECT n, x FROM dbo.i", "SELECT name FROM sys.tables ORDER BY name",
          "SELECT name FROM sys.database_principals ORDER BY name",
          "SELECT COUNT(*) FROM cdc.dbo_t_CT", "SELECT name FROM sys.databases"}) {
      for (const std::string& row : Run(query)) state += row + "\n";
    }
    return state;
  }
};

TEST_F(RefusedTest, EachStatementHasSqlServersNumber) {
  const std::vector<Refused> statements = Statements();
  const std::string before = State();
  std::size_t refused = 0;
  for (const Refused& statement : statements) {
    const auto session = engine_->AdminSession("shop");
    TextSink sink;
    session->Batch(statement.sql, sink);
    const std::string shown = statement.sql.substr(0, 200);
    if (statement.number == 0) {
      EXPECT_TRUE(sink.errors.empty())
          << sink.errors[0].number << ": " << sink.errors[0].text << "\n"
          << shown;
      continue;
    }
    ++refused;
    if (sink.errors.empty()) {
      ADD_FAILURE() << "answered instead of " << statement.number << ": " << shown;
      continue;
    }
    EXPECT_EQ(sink.errors[0].number, statement.number) << sink.errors[0].text << "\n"
                                                       << shown;
    EXPECT_FALSE(sink.errors[0].text.empty()) << shown;
  }
  EXPECT_GE(refused, 300u);
  EXPECT_EQ(State(), before);
}

}  // namespace
}  // namespace mssql_cdc::sim
