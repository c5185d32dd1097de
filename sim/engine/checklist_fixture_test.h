// What the tests of the CDC checklist (facts 1.12) share. Each line of the checklist is
// a suite, Checklist01 to Checklist17; `./dev mutants` runs a behaviour's suite without
// the behaviour and expects it to fail.

#pragma once

#include <string>
#include <vector>

#include "sim/engine/cdc.h"
#include "sim/engine/engine_fixture_test.h"

namespace mssql_cdc::sim {

using Rows = std::vector<std::string>;

class ChecklistTest : public EngineTest {
 protected:
  ChecklistTest() {
    EnableCdc();
    Run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a int NULL, b varchar(20) "
        "NULL)");
  }

  // A query over an instance's change table, in the clustered order (facts 1.1).
  Rows Changes(const std::string& columns, const std::string& instance = "dbo_t") {
    return Run("SELECT " + columns + " FROM cdc.[" + instance +
               "_CT] ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation");
  }
  Rows NewestChanges(const std::string& columns,
                     const std::string& instance = "dbo_t") {
    return Run("SELECT " + columns + " FROM cdc.[" + instance +
               "_CT] WHERE __$start_lsn = (SELECT MAX(__$start_lsn) FROM cdc.[" +
               instance + "_CT]) ORDER BY __$command_id, __$seqval, __$operation");
  }
  // How many values a column has in the newest commit.
  std::string NewestDistinct(const std::string& column) {
    return One(
        "SELECT COUNT(DISTINCT " + column +
        ") FROM cdc.dbo_t_CT WHERE __$start_lsn = (SELECT MAX(__$start_lsn) FROM "
        "cdc.dbo_t_CT)");
  }
  std::string MaxLsn() { return One("SELECT sys.fn_cdc_get_max_lsn()"); }
  std::string MinLsn(const std::string& instance = "dbo_t") {
    return One("SELECT sys.fn_cdc_get_min_lsn('" + instance + "')");
  }
  // Inserts one row for each of `count` commits, a minute apart, each captured.
  void Fill(int count) {
    for (int i = 1; i <= count; ++i) {
      Run("INSERT INTO dbo.t VALUES (" + std::to_string(i) + ", 0, 'x')");
      engine_->AdvanceClock(60'000);
      Capture();
    }
  }
  void MakeReader() {
    Run("CREATE LOGIN r WITH PASSWORD = 'Pw-1' CREATE USER r FOR LOGIN r");
  }
  static constexpr char kZero[] = "0x00000000000000000000";
};

class Checklist17 : public ChecklistTest {};

}  // namespace mssql_cdc::sim
