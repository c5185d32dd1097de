// What sessions see of each other's changes before they are committed. Microsoft's
// pages: "SET TRANSACTION ISOLATION LEVEL", "Table hints", "SET LOCK_TIMEOUT", and the
// "Transaction locking and row versioning guide" (a shared lock waits for an exclusive
// one; a snapshot reads the version of its beginning; of sessions that wait for one
// another the engine ends one with 1205 and rolls its transaction back).

#include <thread>

#include "sim/engine/checklist_fixture_test.h"

namespace mssql_cdc::sim {
namespace {

using Rows = std::vector<std::string>;

const std::string kNoWait = "SET LOCK_TIMEOUT 0 ";
const std::string kRead = "SELECT id, a FROM dbo.t";

class Locks {
 public:
  // Changes of dbo.t that are not committed, in one session.
  static constexpr const char* kChanges[] = {
      "INSERT INTO dbo.t VALUES (2, 20, 'y')", "UPDATE dbo.t SET a = 11",
      "DELETE FROM dbo.t",
      "MERGE dbo.t AS t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN "
      "UPDATE SET a = 12;"};
};

TEST_F(Checklist17, WhoReadsCommittedRowsWaitsForChangesOfOthers) {
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("CREATE TABLE dbo.other (id int NOT NULL)");
  for (const char* change : Locks::kChanges) {
    const auto writer = engine_->AdminSession("shop");
    RunOn(*writer, std::string("BEGIN TRAN ") + change);
    for (const char* level : {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
      Run(std::string("SET TRANSACTION ISOLATION LEVEL ") + level);
      EXPECT_EQ(ErrorOf(kNoWait + kRead), 1222) << change;
    }
    Run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    EXPECT_EQ(ErrorOf(kNoWait + "SELECT id FROM dbo.other"), 0);
    EXPECT_EQ(ErrorOf(kNoWait + "SELECT COUNT(*) FROM dbo.t AS t, dbo.other AS o"),
              1222);
    EXPECT_NE(RunOn(*writer, kRead), (Rows{"1|10"}));
    RunOn(*writer, "ROLLBACK");
    EXPECT_EQ(Run(kNoWait + kRead), (Rows{"1|10"}));
  }
}

TEST_F(Checklist17, AWaitingReaderSeesWhatWasCommittedThen) {
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("CREATE TABLE dbo.other (id int NOT NULL)");
  Run("INSERT INTO dbo.other VALUES (1)");
  const auto writer = engine_->AdminSession("shop");
  RunOn(*writer, "BEGIN TRAN UPDATE dbo.t SET a = 11");
  Rows seen;
  std::thread reader([&] {
    // The other table is read first: its snapshot must not be the old one.
    seen = Run("SELECT o.id, t.a FROM dbo.other AS o JOIN dbo.t AS t ON t.id = o.id");
  });
  RunOn(*writer, "COMMIT");
  reader.join();
  EXPECT_EQ(seen, (Rows{"1|11"}));
}

TEST_F(Checklist17, DirtyReadersSeeWhatIsNotCommitted) {
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  const auto writer = engine_->AdminSession("shop");
  RunOn(*writer,
        "BEGIN TRAN UPDATE dbo.t SET a = 11 INSERT INTO dbo.t VALUES (2, 2, 'y')");
  const Rows dirty{"1|11", "2|2"};
  EXPECT_EQ(Run(kRead + " WITH (NOLOCK) ORDER BY id"), dirty);
  EXPECT_EQ(Run(kRead + " WITH (READUNCOMMITTED) WHERE id > 1"), (Rows{"2|2"}));
  EXPECT_EQ(
      Run("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED " + kRead + " ORDER BY id"),
      dirty);
  EXPECT_EQ(Run("SELECT TOP (1) id, a FROM dbo.t ORDER BY id DESC"), (Rows{"2|2"}));
  RunOn(*writer, "ROLLBACK");
  EXPECT_EQ(Run(kRead), (Rows{"1|10"}));
}

TEST_F(Checklist17, SnapshotsSeeTheVersionBefore) {
  Run("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  const auto writer = engine_->AdminSession("shop");
  RunOn(*writer, "BEGIN TRAN UPDATE dbo.t SET a = 11");
  Run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN");
  EXPECT_EQ(Run(kNoWait + kRead), (Rows{"1|10"}));
  RunOn(*writer, "COMMIT");
  EXPECT_EQ(Run(kRead), (Rows{"1|10"}));
  Run("COMMIT SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
  EXPECT_EQ(Run(kRead), (Rows{"1|11"}));
  // READ_COMMITTED_SNAPSHOT: the same for each statement.
  Run("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON");
  RunOn(*writer, "BEGIN TRAN UPDATE dbo.t SET a = 12");
  EXPECT_EQ(Run(kNoWait + kRead), (Rows{"1|11"}));
  RunOn(*writer, "COMMIT");
  EXPECT_EQ(Run(kRead), (Rows{"1|12"}));
}

TEST_F(Checklist17, OfTwoThatWaitForEachOtherOneIsTheVictim) {
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("CREATE TABLE dbo.other (id int NOT NULL)");
  const auto a = engine_->AdminSession("shop");
  const auto b = engine_->AdminSession("shop");
  // Should neither be the victim, the test must end all the same.
  for (const auto* session : {&a, &b}) RunOn(**session, "SET LOCK_TIMEOUT 10000");
  RunOn(*a, "BEGIN TRAN UPDATE dbo.t SET a = 11");
  RunOn(*b, "BEGIN TRAN SELECT TOP (0) id FROM dbo.other WITH (TABLOCKX)");
  std::int32_t of_b = 0;
  std::thread waits([&] { of_b = ErrorOn(*b, "SELECT id FROM dbo.t"); });
  const std::int32_t of_a = ErrorOn(*a, "INSERT INTO dbo.other VALUES (1)");
  if (of_a == 0) {
    EXPECT_EQ(ErrorOn(*a, "COMMIT"), 0);
  }
  waits.join();
  EXPECT_EQ(std::min(of_a, of_b), 0);
  EXPECT_EQ(std::max(of_a, of_b), 1205);
  const auto& victim = of_a == 1205 ? a : b;
  EXPECT_EQ(RunOn(*victim, "SELECT @@TRANCOUNT"), (Rows{"0"}));
  EXPECT_EQ(ErrorOf(kNoWait + (of_a == 0 ? "SELECT id FROM dbo.other" : kRead)), 0);
}

}  // namespace
}  // namespace mssql_cdc::sim
