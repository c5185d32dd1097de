// Capture instances and the schema, as source_test.cc has the rest of the source.

#include "tests/source_fixture.h"

namespace mssql_cdc {
namespace {

TEST_F(SourceTest, B26B27TheInstanceIsChosenByRangeAndTiesByCreation) {
  for (const bool tie : {false, true}) {
    SCOPED_TRACE(tie);
    Fresh();
    config_.max_commits_per_batch = 1;
    Commit("INSERT dbo.t VALUES (2, N'b')");
    Enable("t", "t_v2");
    Commit("INSERT dbo.t VALUES (3, N'c')");
    const auto instance = [](const cdc::RowView& row) {
      return *row.Text("_capture_instance").value();
    };
    if (tie) {
      RunWell();
      Pass(30);
      Clean(10);
      Commit("INSERT dbo.t VALUES (4, N'd')");
    }
    RunWell();
    Lines rows = {"2 2 b dbo_t", "2 3 c t_v2"};
    if (tie) rows.emplace_back("2 4 d t_v2");
    EXPECT_EQ(Rows(instance), rows);
    EXPECT_EQ(std::ranges::count(Facts(), "capture_instance_switched: dbo_t -> t_v2"),
              1);
  }
}

TEST_F(SourceTest, B50B87B90AnyNameThatSqlServerAllowsIsFound) {
  for (const char* name : {"X1", "dbo_Café", "a'b \"c\" $d", "表 ключ"}) {
    SCOPED_TRACE(name);
    Fresh();
    const std::string quoted =
        std::string(name) == "a'b \"c\" $d" ? "a''b \"c\" $d" : name;
    Fresh(quoted);
    config_.capture_instance = name;
    Commit("INSERT dbo.t VALUES (2, N'b')");
    RunWell();
    EXPECT_EQ(Rows(), (Lines{"2 2 b"}));
  }
}

TEST_F(SourceTest, ADisabledInstanceIsFollowedToItsSuccessor) {
  RunWell();
  Enable("t", "odd name");
  Commit("INSERT dbo.t VALUES (2, N'b')");
  RunWell();
  Disable("dbo_t");
  Commit("INSERT dbo.t VALUES (3, N'c')");
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"2 2 b", "2 3 c"}));
}

TEST_F(SourceTest, B17B54DdlIsMetInsideTheBatchThatPassesIt) {
  RunWell();
  Commit("INSERT dbo.t VALUES (2, N'b')");
  Sql("ALTER TABLE dbo.t ADD extra int NULL");
  Commit("INSERT dbo.t (id, note) VALUES (3, N'c')");
  config_.schema_change_policy = cdc::SchemaChangePolicy::kFail;
  RunInto(ErrorId::kSchemaChanged, "ddl", "ALTER TABLE dbo.t ADD extra int NULL");
  config_.schema_change_policy = cdc::SchemaChangePolicy::kClassify;
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"2 2 b", "2 3 c"}));
  EXPECT_EQ(Facts().back(), "schema_change: ALTER TABLE dbo.t ADD extra int NULL");
}

TEST_F(SourceTest, WhatEachDdlDoes) {
  const struct {
    const char* ddl;
    const char* insert;
    bool goes_on;
    Lines rows;
  } kRows[] = {
      {"ALTER TABLE dbo.t ADD extra int NULL",
       "(id, note) VALUES (3, N'c')",
       true,
       {"2 2 b", "2 3 c"}},
      {"ALTER TABLE dbo.t ALTER COLUMN note nvarchar(400) NULL",
       "VALUES (3, N'c')",
       true,
       {"2 2 b", "2 3 c"}},
      {"ALTER TABLE dbo.t DROP COLUMN note", "VALUES (3)", true, {"2 2 b", "2 3 NULL"}},
      {"ALTER TABLE dbo.t ALTER COLUMN note int NULL", "VALUES (3, 7)", false, {}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.ddl);
    Fresh();
    RunWell();
    Sql("UPDATE dbo.t SET note = NULL");
    source_->CaptureAll();
    RunWell();
    const Lines before = Rows();
    if (!row.goes_on) {
      // Texts left in the change table would stop the capture job at its conversion.
      Pass(30);
      Commit("INSERT dbo.t VALUES (9, NULL)");
      RunWell();
      Pass(30);
      Clean(10);
    }
    Commit("INSERT dbo.t VALUES (2, " + std::string(row.goes_on ? "N'b'" : "NULL") +
           ")");
    Sql(row.ddl);
    Commit(std::string("INSERT dbo.t ") + row.insert);
    if (!row.goes_on) {
      // Of a run that was there before it is SchemaChanged, as cdc's tests have it.
      RunInto(ErrorId::kLakeSchemaMismatch, "column", "note");
      continue;
    }
    RunWell();
    Lines all = before;
    all.insert(all.end(), row.rows.begin(), row.rows.end());
    EXPECT_EQ(Rows(), all);
  }
}

// The same in one run, which asked for instances and columns when it began.
TEST_F(SourceTest, ARunMovesToANewerInstanceAndStopsAtATypeThatDoesNotFit) {
  IdleHook observer;
  source_->observer = &observer;
  config_.trigger.kind = runtime::Trigger::Kind::kContinuous;
  observer.at_idle = [&](int count) {
    if (count == 1) Commit("UPDATE dbo.t SET note = NULL");
    if (count == 2) {
      Enable("t", "other");
      Commit("INSERT dbo.t VALUES (2, NULL)");
    }
    if (count == 3) {
      Disable("dbo_t");
      Sql("ALTER TABLE dbo.t ALTER COLUMN note nvarchar(99) NULL");
      Commit("INSERT dbo.t VALUES (3, NULL)");
    }
    if (count == 4) {
      Sql("ALTER TABLE dbo.t ALTER COLUMN note int NULL");
      Commit("INSERT dbo.t VALUES (4, 4)");
    }
  };
  RunInto(ErrorId::kSchemaChanged, "changes", "note integer (read as string)");
  EXPECT_EQ(observer.count, 4);
  const auto instance = [](const cdc::RowView& row) {
    return *row.Text("_capture_instance").value();
  };
  EXPECT_EQ(Rows(instance), (Lines{"3 1 a dbo_t", "4 1 NULL dbo_t", "2 2 NULL other",
                                   "2 3 NULL other"}));
  EXPECT_EQ(std::ranges::count(Facts(), "capture_instance_switched: dbo_t -> other"),
            1);
}

// And with a column that the run does not know.
TEST_F(SourceTest, ARunGoesOnWithANewerInstancesNewColumnAsANewOneWould) {
  IdleHook observer;
  source_->observer = &observer;
  config_.trigger.kind = runtime::Trigger::Kind::kContinuous;
  observer.at_idle = [&](int count) {
    if (count == 1) {
      Sql("ALTER TABLE dbo.t ADD extra nvarchar(9) NULL");
      Enable("t", "other");
      Commit("INSERT dbo.t VALUES (2, N'b', N'x')");
    }
    if (count == 2) Sql("EXEC sys.sp_cdc_disable_db");  // Ends the run.
  };
  EXPECT_EQ(Run().error().id(), ErrorId::kCdcNotEnabled);
  EXPECT_EQ(observer.count, 2);
  const auto extra = [](const cdc::RowView& row) {
    return row.Text("extra").value().value_or("NULL");
  };
  EXPECT_EQ(Rows(extra), (Lines{"2 2 b x"}));
}

TEST_F(SourceTest, ANewerInstancesNewColumnTakesARestart) {
  RunWell();
  Sql("ALTER TABLE dbo.t ADD extra nvarchar(9) NULL");
  Commit("INSERT dbo.t VALUES (2, N'b', N'early')");
  RunWell();
  Enable("t", "t_v2");
  Commit("INSERT dbo.t VALUES (3, N'c', N'x')");
  RunWell();  // A new run infers the columns of both.
  const auto extra = [](const cdc::RowView& row) {
    return row.Text("extra").value().value_or("NULL");
  };
  EXPECT_EQ(Rows(extra), (Lines{"2 2 b NULL", "2 3 c x"}));
}

TEST_F(SourceTest, B47ComputedColumnsAreLeftOutAndSaid) {
  Sql("CREATE TABLE dbo.c (id int NOT NULL PRIMARY KEY, note nvarchar(40) NULL, twice "
      "AS "
      "(id * 2))");
  Enable("c", "dbo_c");
  config_.capture_instance = "dbo_c";
  config_.bootstrap = true;
  Commit("INSERT dbo.c VALUES (2, N'b')");
  RunWell();
  EXPECT_TRUE(Warned("column twice is computed and left out"));
  const auto state = lake_->State("bronze").value();
  EXPECT_FALSE(std::ranges::any_of(
      state->schema.fields, [](const auto& field) { return field.name == "twice"; }));
}

TEST_F(SourceTest, B57ARenamedTableIsFollowed) {
  RunWell();
  Sql("EXEC sp_rename N'dbo.t', N't2'");
  Commit("INSERT dbo.t2 VALUES (2, N'b')");
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"2 2 b"}));
}

}  // namespace
}  // namespace mssql_cdc
