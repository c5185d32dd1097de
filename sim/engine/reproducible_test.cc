// The same seed gives the same server: LSNs, catalogue, and the bytes of a session in
// clear with a fixed list of requests.

#include "sim/engine/played_session_test.h"

namespace mssql_cdc::sim {
namespace {

const std::vector<std::u16string> kRequests = {
    u"EXEC sys.sp_cdc_enable_db",
    u"CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, n nvarchar(20) NULL, g "
    u"uniqueidentifier NOT NULL DEFAULT NEWID(), r float NULL)",
    u"EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL",
    u"INSERT INTO dbo.t (id, n, r) VALUES (1, N'one', RAND()), (2, N'two', RAND())",
    u"UPDATE dbo.t SET id = 3 - id",
    u"EXEC sim.capture_now",
    u"EXEC sim.advance_clock 400000",
    u"EXEC sim.capture_now",
    u"SELECT * FROM cdc.dbo_t_CT",
    u"SELECT * FROM cdc.lsn_time_mapping",
    u"SELECT * FROM cdc.change_tables",
    u"SELECT * FROM cdc.captured_columns",
    u"SELECT * FROM cdc.index_columns",
    u"SELECT * FROM msdb.dbo.cdc_jobs",
    u"EXEC sys.sp_cdc_help_change_data_capture",
    u"SELECT name, object_id, create_date FROM sys.tables",
    u"SELECT * FROM sys.databases",
    u"SELECT * FROM sys.database_recovery_status",
    u"SELECT GETDATE(), SYSUTCDATETIME(), @@SPID, @@VERSION",
    u"SELECT nosuch FROM dbo.t",
};

class Reproducible : public PlayedSessionTest {
 protected:
  // Everything the server says to a client, from an empty state.
  std::string Session(std::uint64_t seed) {
    OpenEmpty([seed](EngineOptions& options) { options.seed = seed; });
    std::string bytes;
    for (const std::string& reply : Play(kRequests)) bytes += reply;
    return bytes;
  }
};

TEST_F(Reproducible, OneSeedGivesOneSessionByteForByte) {
  const std::string first = Session(7);
  EXPECT_GT(first.size(), 5000u);
  EXPECT_EQ(Session(7), first);
  EXPECT_NE(Session(8), first);
}

TEST_F(Reproducible, OneSeedGivesOneCatalogue) {
  const auto catalogue = [&](std::uint64_t seed) {
    Session(seed);
    return engine_->server().FindDatabase("shop")->catalog()->ToJson();
  };
  const std::string first = catalogue(7);
  EXPECT_EQ(catalogue(7), first);
  // Another seed's log has other LSNs.
  EXPECT_NE(catalogue(8), first);
}

}  // namespace
}  // namespace mssql_cdc::sim
