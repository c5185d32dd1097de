#include "sim/engine/import_fake.h"

#include <fstream>

#include "sim/engine/engine_fixture_test.h"

namespace mssql_cdc::sim {
namespace {

using Rows = std::vector<std::string>;

class ImportFakeTest : public EngineTest {
 protected:
  // Two instances of one table, an update, an idle entry, a DDL entry; cleanup has been
  // there (existing-package-on-disk.md).
  void WriteFake() {
    File("instances.json",
         R"json({"dbo_orders": {"table": "dbo_orders", "created": null, "columns":
             [["id", "INT"], ["who", "STRING"], ["amount", "DECIMAL(18,2)"],
              ["at", "TIMESTAMP_NTZ"], ["ok", "BOOLEAN"], ["raw", "BINARY"]]},
             "dbo_orders_v2": {"table": "dbo_orders", "created":
             "2026-11-20T09:50:00.000", "columns": [["id", "INT"], ["who", "STRING"],
              ["extra", "DOUBLE"]]}})json");
    File("min_lsn.json", R"({"dbo_orders": "0x0000002A000001000011",
                             "dbo_orders_v2": "0x0000002A000001000021"})");
    File("keys.json", R"({"dbo_orders": "id"})");
    File(
        "lsn_time_mapping.jsonl",
        R"({"start_lsn": "0x0000002A000001000011", "tran_end_time": "2026-11-20T08:00:00.000"}
{"start_lsn": "0x0000002A000001000021", "tran_end_time": "2026-11-20T10:00:00.123"}
{"start_lsn": "0x0000002A000001000031", "tran_end_time": "2026-11-20T11:00:00.000"}
)");
    File(
        "changes/dbo_orders.jsonl",
        R"({"start_lsn": "0x0000002A000001000011", "seqval": "0x0000002A000001000012", "command_id": 1, "operation": 2, "row": {"id": 1, "who": "é", "amount": "1.50", "at": "2026-11-01T10:00:00.123456", "ok": true, "raw": null}}
{"start_lsn": "0x0000002A000001000021", "seqval": "0x0000002A000001000022", "command_id": 1, "operation": 3, "row": {"id": 1, "who": "é", "amount": "1.50", "at": null, "ok": true, "raw": null}}
{"start_lsn": "0x0000002A000001000021", "seqval": "0x0000002A000001000022", "command_id": 1, "operation": 4, "row": {"id": 1, "who": "b", "amount": "2.00", "at": null, "ok": true, "raw": "xy"}}
)");
    File(
        "changes/dbo_orders_v2.jsonl",
        R"({"start_lsn": "0x0000002A000001000021", "seqval": "0x0000002A000001000022", "command_id": 2, "operation": 4, "row": {"id": 1, "who": "b", "extra": 0.25}}
)");
    File(
        "ddl/dbo_orders.jsonl",
        R"({"lsn": "0x0000002A00000100001F", "command": "ALTER TABLE dbo.orders ADD extra float"}
)");
    File("tables/dbo_orders.json",
         R"({"[1]": {"id": 1, "who": "b", "amount": "2.00", "at": null, "ok": true,
             "raw": "xy", "extra": 0.25}})");
  }
  void File(const std::string& name, const std::string& text) {
    const std::filesystem::path path =
        std::filesystem::path(directory_) / "fake" / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  Status Import() { return ImportFake(*engine_, "shop", directory_ + "/fake"); }
};

TEST_F(ImportFakeTest, KeepsLsnsTimesAndRows) {
  WriteFake();
  const Status imported = Import();
  ASSERT_TRUE(imported.ok()) << imported.error().Text();
  EXPECT_EQ(Run("SELECT start_lsn, CONVERT(varchar(23), tran_end_time, 126), CASE WHEN "
                "tran_id = 0x00 THEN 'idle' ELSE 'user' END FROM cdc.lsn_time_mapping"),
            (Rows{"0x0000002A000001000011|2026-11-20T08:00:00|user",
                  "0x0000002A000001000021|2026-11-20T10:00:00.123|user",
                  "0x0000002A000001000031|2026-11-20T11:00:00|idle"}));
  EXPECT_EQ(
      Run("SELECT __$start_lsn, __$seqval, __$command_id, __$operation, "
          "__$update_mask, "
          "id, who, amount, CONVERT(varchar(30), at, 126), ok, raw FROM "
          "cdc.dbo_orders_CT ORDER BY __$start_lsn, __$operation"),
      (Rows{"0x0000002A000001000011|0x0000002A000001000012|1|2|0x3F|1|é|1.50|"
            "2026-11-01T10:00:00.123456|1|NULL",
            "0x0000002A000001000021|0x0000002A000001000022|1|3|0x26|1|é|1.50|NULL|1|"
            "NULL",
            "0x0000002A000001000021|0x0000002A000001000022|1|4|0x26|1|b|2.00|NULL|1|"
            "0x7879"}));
  EXPECT_EQ(Run("SELECT who, extra, __$command_id FROM cdc.dbo_orders_v2_CT"),
            (Rows{"b|0.250000|2"}));
  EXPECT_EQ(Run("SELECT id, who, amount, extra FROM dbo.dbo_orders"),
            (Rows{"1|b|2.00|0.250000"}));
  EXPECT_EQ(One("SELECT sys.fn_cdc_get_min_lsn('dbo_orders_v2')"),
            "0x0000002A000001000021");
  EXPECT_EQ(One("SELECT sys.fn_cdc_get_max_lsn()"), "0x0000002A000001000031");
  EXPECT_EQ(Run("EXEC sys.sp_cdc_get_ddl_history 'dbo_orders'").size(), 1u);
}

TEST_F(ImportFakeTest, GoesOnAboveTheLastLsn) {
  WriteFake();
  ASSERT_TRUE(Import().ok());
  Run("UPDATE dbo.dbo_orders SET who = N'later'");
  Capture();
  EXPECT_GT(One("SELECT sys.fn_cdc_get_max_lsn()"), "0x0000002A000001000031");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_orders_CT"), "5");
}

TEST_F(ImportFakeTest, SaysWhatItCannotRead) {
  const Status missing = Import();
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().id(), ErrorId::kSimulatorFailed);
  WriteFake();
  File("changes/dbo_orders.jsonl", "{\"start_lsn\": \n");
  const Status broken = Import();
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().Text().find("changes/dbo_orders.jsonl"), std::string::npos)
      << broken.error().Text();
  WriteFake();
  File("min_lsn.json", R"({"dbo_orders": "12", "dbo_orders_v2": "12"})");
  EXPECT_FALSE(Import().ok());
}

}  // namespace
}  // namespace mssql_cdc::sim
