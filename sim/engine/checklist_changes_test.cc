// Checklist lines 4 to 7 and 16: what statements leave in change tables.

#include "sim/engine/checklist_fixture_test.h"

namespace mssql_cdc::sim {
namespace {

class Checklist04 : public ChecklistTest {};
class Checklist05 : public ChecklistTest {};
class Checklist06 : public ChecklistTest {};
class Checklist07 : public ChecklistTest {};
class Checklist16 : public ChecklistTest {};

// S3: rows 3 and 4 of an update share seqval and command id.
TEST_F(Checklist04, ImagesOfAnUpdateShareTheirPlace) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x'), (2, 2, 'x')");
  Run("UPDATE dbo.t SET a = a + 1");
  Capture();
  EXPECT_EQ(NewestChanges("__$operation, id, a"),
            (Rows{"3|1|1", "4|1|2", "3|2|2", "4|2|3"}));
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT a JOIN cdc.dbo_t_CT b ON "
                "a.__$operation = 3 AND b.__$operation = 4 AND a.id = b.id AND "
                "a.__$seqval = b.__$seqval AND a.__$command_id = b.__$command_id"),
            "2");
}

// S4: one row's key change: one seqval, the delete's command id below the insert's.
TEST_F(Checklist04, KeyUpdateOfOneRowSharesTheSeqval) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  Run("UPDATE dbo.t SET id = 5 WHERE id = 1");
  Capture();
  EXPECT_EQ(NewestChanges("__$operation, id"), (Rows{"1|1", "2|5"}));
  EXPECT_EQ(NewestDistinct("__$seqval"), "1");
  EXPECT_EQ(NewestDistinct("__$command_id"), "2");
}

// S4 (debezium#7728): many rows' key changes: all deletes first, seqvals differ; keys
// may change places, since uniqueness is the statement's.
TEST_F(Checklist04, KeyUpdateOfManyRowsDeletesFirst) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x'), (2, 20, 'y')");
  Run("UPDATE dbo.t SET id = 3 - id");
  Capture();
  EXPECT_EQ(NewestChanges("__$operation, id, a"),
            (Rows{"1|1|10", "1|2|20", "2|2|10", "2|1|20"}));
  EXPECT_EQ(NewestDistinct("__$seqval"), "4");
}

// Facts 1.2 (powersync): a unique column set to its own value is deferred.
TEST_F(Checklist04, UniqueColumnSetToItsValueIsDeferred) {
  Run("CREATE UNIQUE INDEX ux ON dbo.t (a)");
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("UPDATE dbo.t SET a = 10, b = 'z'");
  Capture();
  EXPECT_EQ(NewestChanges("__$operation, b"), (Rows{"1|x", "2|z"}));
  EXPECT_EQ(NewestDistinct("__$seqval"), "1");
}

// S4, facts 1.2: the update part of a MERGE on a table with a unique index.
TEST_F(Checklist04, MergeUpdatesAsDeleteAndInsert) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x'), (2, 20, 'y')");
  Run("MERGE dbo.t AS t USING (VALUES (1, 11), (3, 33)) AS s (id, a) ON t.id = s.id "
      "WHEN MATCHED THEN UPDATE SET a = s.a "
      "WHEN NOT MATCHED THEN INSERT (id, a, b) VALUES (s.id, s.a, 'new');");
  Capture();
  EXPECT_EQ(NewestChanges("__$operation, id, a"), (Rows{"1|1|10", "2|1|11", "2|3|33"}));
}

// Facts 1.2 (DBZ-2329): the order of seqvals is not the order of commands.
TEST_F(Checklist05, SeqvalIsNotMonotone) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x'), (2, 20, 'y')");
  Run("UPDATE dbo.t SET id = 3 - id");
  Capture();
  const Rows seqvals = NewestChanges("__$seqval");
  EXPECT_FALSE(std::is_sorted(seqvals.begin(), seqvals.end()));
  EXPECT_EQ(
      Run("SELECT __$operation, id FROM cdc.dbo_t_CT WHERE __$start_lsn = (SELECT "
          "MAX(__$start_lsn) FROM cdc.dbo_t_CT) ORDER BY __$seqval"),
      (Rows{"1|2", "1|1", "2|2", "2|1"}));
}

// Facts 1.1 and 1.7: several tables and more rows than a scan has transactions are one
// commit, one mapping row, never split.
TEST_F(Checklist05, ATransactionIsNeverSplit) {
  Run("CREATE TABLE dbo.u (id int NOT NULL PRIMARY KEY)");
  Track("t");
  Track("u");
  Run("CREATE TABLE dbo.n (i int NOT NULL) INSERT INTO dbo.n VALUES "
      "(0),(1),(2),(3),(4),(5),(6),(7),(8),(9),(10),(11)");
  Run("BEGIN TRAN INSERT INTO dbo.t SELECT a.i * 144 + b.i * 12 + c.i, 0, 'x' FROM "
      "dbo.n a CROSS JOIN dbo.n b CROSS JOIN dbo.n c INSERT INTO dbo.u VALUES (1) "
      "COMMIT");
  EXPECT_EQ(engine_->CaptureCycle("shop", 1).value(), 1);
  EXPECT_EQ(One("SELECT COUNT(*), COUNT(DISTINCT __$start_lsn) FROM cdc.dbo_t_CT"),
            "1728|1");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_u_CT u JOIN cdc.lsn_time_mapping m ON "
                "m.start_lsn = u.__$start_lsn JOIN cdc.dbo_t_CT t ON t.id = 7 AND "
                "t.__$start_lsn = m.start_lsn AND t.__$command_id < u.__$command_id"),
            "1");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00"),
            "1");
}

std::string WideTable(int count) {
  std::string columns = "CREATE TABLE dbo.w (id int NOT NULL PRIMARY KEY";
  for (int i = 2; i <= count; ++i) columns += ", c" + std::to_string(i) + " int NULL";
  return columns + ")";
}

// S9 (debezium#8064): the lowest ordinals are in the last byte; facts 1.1: unused bits
// are 0, insert and delete have all others.
TEST_F(Checklist06, LowestOrdinalsAreInTheLastByte) {
  struct Case {
    int columns;
    std::string changed;
    std::string full;
    std::string mask;
  };
  const std::string ff7(14, 'F');
  for (const Case& c :
       {Case{4, "c2", "0x0F", "0x02"}, Case{7, "c7", "0x7F", "0x40"},
        Case{8, "c8", "0xFF", "0x80"}, Case{9, "c9", "0x01FF", "0x0100"},
        Case{70, "c70", "0x3F" + ff7 + "FF", "0x200000000000000000"}}) {
    Run("IF OBJECT_ID('dbo.w') IS NOT NULL DROP TABLE dbo.w");
    Run(WideTable(c.columns));
    Track("w");
    Run("INSERT INTO dbo.w (id) VALUES (1)");
    Run("UPDATE dbo.w SET " + c.changed + " = 1");
    Run("DELETE FROM dbo.w");
    Capture();
    EXPECT_EQ(Changes("__$operation, __$update_mask", "dbo_w"),
              (Rows{"2|" + c.full, "3|" + c.mask, "4|" + c.mask, "1|" + c.full}))
        << c.columns;
    const std::string ordinal = c.changed.substr(1);
    EXPECT_EQ(One("SELECT sys.fn_cdc_is_bit_set(" + ordinal + ", " + c.mask +
                  "), sys.fn_cdc_is_bit_set(1, " + c.mask + ")"),
              "1|0");
  }
}

// Facts 1.1: at most 1024 captured columns, 128 bytes of mask.
// Source: update-data-capture docs of __$update_mask: the bits of the changed columns.
// NULL stays NULL is no change, whatever the rows before held.
TEST_F(Checklist06, AnUpdateMarksItsOwnColumnsOnly) {
  Run("CREATE TABLE dbo.w (id int NOT NULL PRIMARY KEY, a int, b nvarchar(max), c "
      "varchar(9), d float)");
  Track("w");
  Run("INSERT INTO dbo.w (id, b) VALUES (1, N'large'), (2, NULL)");
  Run("UPDATE dbo.w SET b = N'larger', d = 1.5 WHERE id = 1");
  Run("UPDATE dbo.w SET a = 3, c = 'x' WHERE id = 2");
  Run("UPDATE dbo.w SET a = NULL WHERE id = 2");
  Capture();
  EXPECT_EQ(
      Run("SELECT __$update_mask FROM cdc.dbo_w_CT WHERE __$operation = 4 ORDER BY "
          "__$start_lsn"),
      (Rows{"0x14", "0x0A", "0x02"}));
}

TEST_F(Checklist06, AThousandAndTwentyFourColumns) {
  Run(WideTable(1024));
  Track("w");
  Run("INSERT INTO dbo.w (id) VALUES (1)");
  Run("UPDATE dbo.w SET c2 = 1, c1024 = 1");
  Capture();
  EXPECT_EQ(Changes("DATALENGTH(__$update_mask)", "dbo_w"),
            (Rows{"128", "128", "128"}));
  EXPECT_EQ(NewestChanges("sys.fn_cdc_is_bit_set(1024, __$update_mask), "
                          "sys.fn_cdc_is_bit_set(2, __$update_mask), "
                          "sys.fn_cdc_is_bit_set(3, __$update_mask)",
                          "dbo_w"),
            (Rows{"1|1|0", "1|1|0"}));
  // A table has no more than that (error 1702).
  EXPECT_EQ(ErrorOf("ALTER TABLE dbo.w ADD one_more int NULL"), 1702);
  EXPECT_EQ(ErrorOf("DROP TABLE dbo.w " + WideTable(1025)), 1702);
}

class LobTest : public ChecklistTest {
 protected:
  void MakeLobs() {
    Run("CREATE TABLE dbo.l (id int NOT NULL PRIMARY KEY, n int, m nvarchar(max), o "
        "text, c AS n + 1, v rowversion)");
    Run("EXEC sys.sp_cdc_enable_table N'dbo', N'l', @role_name = NULL");
    Capture();
    Run("INSERT INTO dbo.l (id, n, m, o) VALUES (1, 1, N'max', 'old')");
    Run("UPDATE dbo.l SET n = 2");
    Run("UPDATE dbo.l SET m = N'new'");
    Run("DELETE FROM dbo.l");
    Capture();
  }
  Rows Lobs() { return Changes("__$operation, n, m, o, c", "dbo_l"); }
};
class Checklist07Lobs : public LobTest {};

// S8, facts 1.3: NULLs that are no values.
TEST_F(Checklist07Lobs, SomeTypesComeAsNull) {
  MakeLobs();
  EXPECT_EQ(Lobs(),
            (Rows{"2|1|max|old|NULL", "3|1|NULL|NULL|NULL", "4|2|max|old|NULL",
                  "3|2|max|NULL|NULL", "4|2|new|old|NULL", "1|2|new|NULL|NULL"}));
  EXPECT_EQ(Changes("DATALENGTH(v)", "dbo_l"), Rows(6, "8"));
  EXPECT_EQ(One("SELECT t.name, c.max_length FROM sys.columns c JOIN sys.types t ON "
                "t.user_type_id = c.user_type_id WHERE c.object_id = "
                "OBJECT_ID('cdc.dbo_l_CT') AND c.name = 'v'"),
            "binary|8");
}

// Facts 1.3: nothing is promised of untouched (max) values after an update.
TEST_F(Checklist07Lobs, AfterImagesMayLackUntouchedLobs) {
  Run("EXEC sim.lob_after_images 1");
  MakeLobs();
  EXPECT_EQ(Lobs(),
            (Rows{"2|1|max|old|NULL", "3|1|NULL|NULL|NULL", "4|2|NULL|old|NULL",
                  "3|2|max|NULL|NULL", "4|2|new|old|NULL", "1|2|new|NULL|NULL"}));
}

// Facts 1.2: a LOB longer than "max text repl size" fails the statement (7139).
TEST_F(Checklist07Lobs, TooLongLobsAreRefused) {
  MakeLobs();
  const std::string insert =
      "INSERT INTO dbo.l (id, m) VALUES (9, REPLICATE(CAST(N'x' AS nvarchar(max)), ";
  EXPECT_EQ(ErrorOf(insert + "32768))"), 0);
  Run("DELETE FROM dbo.l");
  EXPECT_EQ(ErrorOf(insert + "32769))"), 7139);
}

// Facts 1.2: TRUNCATE is refused.
TEST_F(Checklist16, TruncateIsRefused) {
  EXPECT_EQ(ErrorOf("TRUNCATE TABLE dbo.t"), 0);
  Track("t");
  EXPECT_EQ(ErrorOf("TRUNCATE TABLE dbo.t"), 4711);
}

// Facts 1.1: instances of before KB3030352 have no __$command_id until
// sys.sp_cdc_vupgrade.
TEST_F(Checklist05, OldInstancesLackTheCommandId) {
  Run("EXEC sim.old_change_tables");
  Track("t");
  Run("EXEC sim.old_change_tables 0");
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, "
      "@capture_instance = N'fresh', @supports_net_changes = 1");
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  Run("UPDATE dbo.t SET id = 2 - id + 1");
  Capture();
  const std::string order = " ORDER BY __$start_lsn, __$seqval, __$operation";
  EXPECT_EQ(Run("SELECT __$operation, id FROM cdc.dbo_t_CT" + order),
            (Rows{"2|1", "1|1", "2|2"}));
  EXPECT_EQ(ErrorOf("SELECT __$command_id FROM cdc.dbo_t_CT"), 207);
  EXPECT_EQ(Changes("id", "fresh").size(), 3u);
  const std::string function =
      "SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), "
      "sys.fn_cdc_get_max_lsn(), 'all')";
  TextSink sink;
  session_->Batch(function, sink);
  EXPECT_EQ(sink.names, (Rows{"__$start_lsn", "__$seqval", "__$operation",
                              "__$update_mask", "id", "a", "b"}));
  EXPECT_EQ(sink.rows.size(), 3u);
  Run("EXEC sys.sp_cdc_vupgrade");
  Run("UPDATE dbo.t SET a = 5");
  Capture();
  EXPECT_EQ(
      Run("SELECT __$operation, CASE WHEN __$command_id IS NULL THEN 0 ELSE 1 END "
          "FROM cdc.dbo_t_CT" +
          order),
      (Rows{"2|0", "1|0", "2|0", "3|1", "4|1"}));
  EXPECT_EQ(Run(function).size(), 4u);
}

// Facts 1.2: rows that a switch moves are not captured; an instance may forbid it.
TEST_F(Checklist16, SwitchedRowsAreMissing) {
  Run("CREATE TABLE dbo.away (id int NOT NULL PRIMARY KEY, a int NULL, b varchar(20) "
      "NULL)");
  Track("t");
  Fill(3);
  Run("ALTER TABLE dbo.t SWITCH PARTITION 1 TO dbo.away");
  Capture();
  EXPECT_EQ(One("SELECT (SELECT COUNT(*) FROM dbo.t), (SELECT COUNT(*) FROM dbo.away)"),
            "0|3");
  EXPECT_EQ(Changes("__$operation"), (Rows{"2", "2", "2"}));
  Run("ALTER TABLE dbo.away SWITCH TO dbo.t");
  Capture();
  EXPECT_EQ(One("SELECT COUNT(*) FROM dbo.t"), "3");
  EXPECT_EQ(Changes("__$operation").size(), 3u);
}

// The numbers: Microsoft's list "Database engine events and errors, 4000 to 4999"; 4947
// for an index without its like also in "Indexes from every angle: what indexes are
// necessary when using SWITCH PARTITION" (sqlskills.com).
TEST_F(Checklist16, SwitchIsRefusedWhereItCannotBe) {
  Run("CREATE TABLE dbo.away (id int NOT NULL PRIMARY KEY, a int NULL, b varchar(20) "
      "NULL)");
  Run("CREATE TABLE dbo.other (id int NOT NULL PRIMARY KEY)");
  Run("CREATE TABLE dbo.heap (id int NOT NULL, a int NULL, b varchar(20) NULL)");
  Run("CREATE TABLE dbo.down (id int NOT NULL, a int NULL, b varchar(20) NULL, PRIMARY "
      "KEY (id DESC))");
  Run("CREATE TABLE dbo.keyed (id int NOT NULL PRIMARY KEY, a int NULL, b varchar(20) "
      "NULL)");
  Run("CREATE UNIQUE INDEX by_a ON dbo.keyed (a)");
  Run("INSERT INTO dbo.away VALUES (1, 1, 'x')");
  EXPECT_EQ(ErrorOf("ALTER TABLE dbo.t SWITCH TO dbo.heap"), 4913);
  EXPECT_EQ(ErrorOf("ALTER TABLE dbo.t SWITCH TO dbo.down"), 4947);
  EXPECT_EQ(ErrorOf("ALTER TABLE dbo.t SWITCH TO dbo.keyed"), 4947);
  EXPECT_EQ(ErrorOf("ALTER TABLE dbo.t SWITCH TO dbo.away"), 4905);
  EXPECT_EQ(ErrorOf("ALTER TABLE dbo.t SWITCH TO dbo.other"), 4943);
  EXPECT_EQ(ErrorOf("ALTER TABLE dbo.t SWITCH TO dbo.nope"), 4902);
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, "
      "@allow_partition_switch = 0");
  Run("DELETE FROM dbo.away");
  EXPECT_EQ(ErrorOf("ALTER TABLE dbo.t SWITCH TO dbo.away"), 22842);
}

}  // namespace
}  // namespace mssql_cdc::sim
