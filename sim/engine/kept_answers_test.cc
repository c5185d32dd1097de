// What is sent from kept rows is what the general path sends, byte by byte: two engines
// of one seed play the same requests, one of them keeps no rows.

#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/engine/behaviour.h"
#include "sim/engine/played_session_test.h"
#include "sim/wire/reply.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::size_t kRoomBytes = 64u << 20;

class KeptAnswers : public PlayedSessionTest {
 protected:
  // The rows that came from what was kept.
  std::uint64_t reused() { return engine_->server().kept_rows().found_row_count(); }

  // Plays `requests` with and without keeping; true if each reply is the same in both.
  // Then the engine is the one that keeps.
  void ExpectSame(const std::vector<std::u16string>& requests,
                  const wire::RawLogin& login = {}) {
    OpenEmpty([](EngineOptions& options) {
      options.kept_rows_size_bytes_max = 0;
      options.max_text_repl_size_bytes = -1;
    });
    const std::vector<std::string> general = Play(requests, login);
    EXPECT_EQ(reused(), 0u);
    OpenEmpty([](EngineOptions& options) {
      options.kept_rows_size_bytes_max = kRoomBytes;
      options.max_text_repl_size_bytes = -1;
    });
    const std::vector<std::string> kept = Play(requests, login);
    ASSERT_EQ(kept.size(), general.size());
    for (std::size_t i = 1; i < kept.size(); ++i) {
      EXPECT_EQ(kept[i] == general[i], true) << Utf8(requests[i - 1]);
      EXPECT_EQ(kept[i].find("simulator:"), std::string::npos);
    }
  }
};

std::vector<std::u16string> Tracked() {
  return {u"EXEC sys.sp_cdc_enable_db",
          u"CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, n nvarchar(20) NULL)",
          u"EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL",
          u"INSERT INTO dbo.t VALUES (1, N'one'), (2, NULL)",
          u"UPDATE dbo.t SET n = N'two'",
          u"INSERT INTO dbo.t VALUES (3, N'three')",
          u"EXEC sim.capture_now"};
}

// What the product, the existing package and Debezium read changes with.
const std::u16string kReaders[] = {
    u"SELECT c.[__$start_lsn], c.[__$seqval], c.[__$operation], c.[__$command_id], "
    u"m.tran_end_time AS commit_time, c.[id], c.[n] FROM cdc.[dbo_t_CT] AS c JOIN "
    u"cdc.lsn_time_mapping AS m ON m.start_lsn = c.[__$start_lsn] WHERE "
    u"c.[__$start_lsn] > 0x00 AND c.[__$start_lsn] <= 0xFFFFFFFFFFFFFFFFFFFF ORDER BY "
    u"c.[__$start_lsn], c.[__$command_id], c.[__$seqval], c.[__$operation]",
    u"SELECT * FROM cdc.dbo_t_CT",
    u"SELECT * FROM cdc.dbo_t_CT WHERE [__$start_lsn] >= 0x00000001 ORDER BY "
    u"[__$start_lsn], "
    u"[__$seqval], [__$operation]",
};

void Append(std::vector<std::u16string>& to, const std::vector<std::u16string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

TEST_F(KeptAnswers, EveryTypeOfTheTableOfValuesGoesOutAlikeInBothRowForms) {
  std::ifstream file(MSSQL_CDC_SOURCE_DIR "/tests/peers/values.json");
  const auto columns = nlohmann::json::parse(file);
  std::vector<std::u16string> requests = {u"EXEC sys.sp_cdc_enable_db"};
  std::string listed =
      "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, c_filler "
      "nvarchar(max) NULL";
  for (const auto& column : columns) {
    listed += ", " + column["column"].get<std::string>() + " " +
              column["type"].get<std::string>() + " NULL";
  }
  requests.push_back(Utf16(listed + ")"));
  requests.push_back(u"EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL");
  int id = 0;
  // A NULL in the filler makes a null bitmap the shorter form (tests/peers/values.py).
  for (const char* filler : {"N'filled'", "NULL"}) {
    for (const char* row : {"typical", "least", "most", "empty", "null"}) {
      std::string insert =
          "INSERT INTO dbo.t VALUES (" + std::to_string(++id) + ", " + filler;
      for (const auto& column : columns) {
        insert += ", " + column["cells"][row]["sql"].get<std::string>();
      }
      requests.push_back(Utf16(insert + ")"));
    }
  }
  requests.push_back(u"EXEC sim.capture_now");
  for (int round = 0; round < 2; ++round) Append(requests, {kReaders[1], kReaders[2]});
  // 7.4, 7.3 A and 7.2: the last gets no bitmaps, and dates as text.
  for (const std::uint32_t version : {0x74000004u, 0x730A0003u, 0x72090002u}) {
    wire::RawLogin login;
    login.tds_version = version;
    ExpectSame(requests, login);
    EXPECT_EQ(reused(), 20u) << version;
  }
}

TEST_F(KeptAnswers, EveryReaderGetsTheSameTheSecondTime) {
  for (const std::u16string& reader : kReaders) {
    std::vector<std::u16string> requests = Tracked();
    Append(requests, {reader, reader});
    ExpectSame(requests);
    EXPECT_EQ(reused(), 7u) << Utf8(reader);
  }
}

// Each is told apart by what it is bound to, not by its text.
TEST_F(KeptAnswers, OtherQuestionsAreNotAnsweredByThem) {
  std::vector<std::u16string> requests = Tracked();
  requests.push_back(kReaders[1]);
  for (const char16_t* other : {
           u"SELECT TOP (2) * FROM cdc.dbo_t_CT",
           u"SELECT DISTINCT * FROM cdc.dbo_t_CT",
           u"SELECT * FROM cdc.dbo_t_CT WHERE id = 2",
           u"SELECT * FROM cdc.dbo_t_CT WHERE [__$start_lsn] > 0x01 OR id = 2",
           u"SELECT * FROM cdc.dbo_t_CT ORDER BY [__$start_lsn] DESC",
           u"SELECT * FROM cdc.dbo_t_CT ORDER BY id",
           u"SELECT [__$start_lsn], id + 1 FROM cdc.dbo_t_CT",
           u"SELECT id, n FROM cdc.dbo_t_CT",
           u"SELECT COUNT(*) FROM cdc.dbo_t_CT",
           u"SELECT [__$start_lsn], NEWID() FROM cdc.dbo_t_CT",
           u"SELECT c.* FROM cdc.dbo_t_CT c LEFT JOIN cdc.lsn_time_mapping m ON "
           u"m.start_lsn = c.[__$start_lsn]",
           u"SELECT c.* FROM cdc.dbo_t_CT c CROSS JOIN cdc.lsn_time_mapping m",
           u"SELECT * FROM dbo.t",
           u"SELECT * FROM cdc.dbo_t_CT WHERE [__$start_lsn] > NULL",
           u"SELECT * FROM cdc.dbo_t_CT WHERE [__$start_lsn] > "
           u"0x0102030405060708090A0B",
           u"SET ROWCOUNT 2; SELECT * FROM cdc.dbo_t_CT; SET ROWCOUNT 0",
       }) {
    // NEWID() draws from the seed's dice: the same in both engines.
    Append(requests, {other, other});
  }
  ExpectSame(requests);
  EXPECT_EQ(reused(), 0u);
}

TEST_F(KeptAnswers, EveryRangeOfLsnsComesFromThem) {
  std::vector<std::u16string> requests = Tracked();
  requests.push_back(kReaders[1]);
  std::vector<std::u16string> marks;
  for (const char16_t* order : {u"ASC", u"DESC"}) {
    marks.push_back(
        u"(SELECT TOP (1) start_lsn FROM cdc.lsn_time_mapping WHERE "
        u"tran_id <> 0x00 ORDER BY start_lsn " +
        std::u16string(order) + u")");
  }
  for (const std::u16string& mark : marks) {
    for (const char16_t* comparison : {u">", u">=", u"<", u"<=", u"="}) {
      requests.push_back(u"DECLARE @m binary(10) = " + mark +
                         u"; SELECT * FROM cdc.dbo_t_CT WHERE [__$start_lsn] " +
                         comparison + u" @m");
      requests.push_back(u"DECLARE @m binary(10) = " + mark +
                         u"; SELECT * FROM cdc.dbo_t_CT WHERE @m " + comparison +
                         u" [__$start_lsn]");
    }
  }
  ExpectSame(requests);
  EXPECT_GT(reused(), 50u);
}

// What changes the rows of a change table otherwise than by more commits.
TEST_F(KeptAnswers, NothingOutlivesAChangeOfWhatIsThere) {
  for (const char16_t* change : {
           u"EXEC sim.cleanup_move 0; EXEC sim.cleanup_delete",
           u"DELETE FROM cdc.dbo_t_CT WHERE id = 2",
           u"UPDATE cdc.dbo_t_CT SET n = N'forged' WHERE id = 1",
           u"DELETE FROM cdc.lsn_time_mapping",
           u"UPDATE cdc.lsn_time_mapping SET tran_end_time = '2020-01-01'",
           u"ALTER TABLE dbo.t ALTER COLUMN n nvarchar(40); EXEC sim.capture_now",
           u"EXEC sys.sp_cdc_disable_table N'dbo', N't', N'all'; EXEC "
           u"sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL",
           u"BEGIN TRANSACTION; DELETE FROM cdc.dbo_t_CT; SELECT * FROM cdc.dbo_t_CT; "
           u"ROLLBACK",
       }) {
    std::vector<std::u16string> requests = Tracked();
    for (const std::u16string& reader : kReaders) requests.push_back(reader);
    requests.push_back(change);
    for (const std::u16string& reader : kReaders) Append(requests, {reader, reader});
    ExpectSame(requests);
  }
}

TEST_F(KeptAnswers, ARestoreForgetsWhatCameAfterTheBackup) {
  std::vector<std::u16string> requests = Tracked();
  Append(requests, {u"EXEC sim.back_up N'b'", u"INSERT INTO dbo.t VALUES (9, N'gone')",
                    u"EXEC sim.capture_now", kReaders[0], kReaders[0],
                    u"EXEC sim.restore_to N'b'", kReaders[0],
                    u"INSERT INTO dbo.t VALUES (9, N'new')", u"EXEC sim.capture_now",
                    kReaders[0], kReaders[0]});
  ExpectSame(requests);
  EXPECT_GT(reused(), 0u);
}

TEST_F(KeptAnswers, MoreCommitsComeBehindWhatIsKept) {
  std::vector<std::u16string> requests = Tracked();
  for (int i = 10; i < 30; ++i) {
    Append(requests, {Utf16("INSERT INTO dbo.t VALUES (" + std::to_string(i) + ", N'" +
                            std::string(static_cast<std::size_t>(i), 'x') + "')"),
                      u"EXEC sim.capture_now", kReaders[0], kReaders[1]});
  }
  ExpectSame(requests);
  EXPECT_GT(reused(), 2u * 20 * 7);
}

// A snapshot that began before a commit was captured must not see it.
TEST_F(KeptAnswers, AnOlderSnapshotGetsNoNewerCommits) {
  OpenEmpty(nullptr);
  Run("ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON");
  for (const std::u16string& request : Tracked()) Run(Utf8(request));
  Play({kReaders[1]});
  const std::unique_ptr<EngineSession> old = engine_->AdminSession("shop");
  TextSink sink;
  old->Batch(
      "SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION; SELECT 1 FROM "
      "cdc.dbo_t_CT",
      sink);
  Run("INSERT INTO dbo.t VALUES (9, N'new')");
  Run("EXEC sim.capture_now");
  Play({kReaders[1]});
  const auto rows = [&](EngineSession& reader) {
    // Through the wire's encoder, which alone knows kept rows.
    std::string bytes;
    wire::PacketWriter packets(1, [&](std::string_view sent) {
      bytes += sent;
      return true;
    });
    std::atomic<bool> stop{false};
    wire::Reply reply(packets, wire::Dialect{}, "S", stop);
    reply.StartBatch();
    reader.Batch(Utf8(kReaders[1]), reply);
    reply.FinishBatch();
    reply.EndMessage();
    return bytes;
  };
  const std::string before = rows(*old);
  const std::string now = rows(*session_);
  EXPECT_EQ(before.find(std::string("n\0e\0w", 5)), std::string::npos);
  EXPECT_NE(now.find(std::string("n\0e\0w", 5)), std::string::npos);
}

TEST_F(KeptAnswers, ReadsThatShallFailDo) {
  std::vector<std::u16string> requests = Tracked();
  Append(requests,
         {kReaders[1], kReaders[1], u"EXEC sim.fail_reads 1205, 1, 3, N'cdc.dbo_t_CT'",
          kReaders[1], kReaders[1]});
  ExpectSame(requests);
  EXPECT_EQ(reused(), 14u);
}

TEST_F(KeptAnswers, RowsThatAreTooLongToKeepComeAllTheSame) {
  std::vector<std::u16string> requests = {
      u"EXEC sys.sp_cdc_enable_db",
      u"CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, n nvarchar(max) NULL)",
      u"EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL"};
  for (const char16_t* count : {u"10", u"32000", u"33000", u"20"}) {
    requests.push_back(
        u"INSERT INTO dbo.t SELECT COUNT(*), REPLICATE(CAST(N'x' AS "
        u"nvarchar(max)), " +
        std::u16string(count) + u") FROM dbo.t");
  }
  requests.push_back(u"EXEC sim.capture_now");
  Append(requests, {kReaders[1], kReaders[1], kReaders[1]});
  ExpectSame(requests);
  EXPECT_EQ(reused(), 4u);
}

}  // namespace
}  // namespace mssql_cdc::sim
