// Change data capture: instances, the capture job's scan, cleanup.
//
// A transaction on a tracked table leaves records in the log (database.h). A scan turns
// the records of up to maxtrans transactions into rows of the change tables and of
// cdc.lsn_time_mapping, all in one transaction, and takes them out of the log.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/database.h"
#include "sim/engine/server.h"
#include "sim/engine/session.h"

namespace mssql_cdc::sim {

struct EnableTable {
  std::string schema;
  std::string name;
  std::optional<std::string> role;
  std::optional<std::string> capture_instance;
  std::optional<bool> supports_net_changes;
  std::optional<std::string> index_name;
  std::optional<std::string> captured_column_list;
  std::optional<std::string> filegroup_name;
  bool allow_partition_switch = true;
};

// These raise SqlError with the numbers of facts 1.5.
void EnableCdc(Session& session);
void DisableCdc(Session& session);
void EnableCdcTable(Session& session, const EnableTable& request);
void DisableCdcTable(Session& session, const std::string& schema,
                     const std::string& name, const std::string& capture_instance);
// Adds __$command_id to the change tables that lack it; NULL in the rows of before.
void UpgradeChangeTables(Session& session);
void RequireCdc(Session& session);
void RemoveInstance(WriteTransaction& transaction, const std::string& name);

struct ScanResult {
  std::int64_t transaction_count = 0;
  std::int64_t command_count = 0;
  // The error that stopped the capture, as sys.dm_cdc_errors has it; 0: none.
  std::int32_t error = 0;
  // What it failed with, where that is known.
  std::optional<Message> cause;
};
// "Log Scan process failed in processing log records."
inline constexpr std::int32_t kScanFailed = 22859;
// One cycle of the capture job. Requires that the calling thread holds no lock of the
// database.
ScanResult CaptureOnce(Server& server, const std::shared_ptr<Database>& database,
                       std::int32_t transaction_count_max);
// Cycles until the log is empty or `scan_count_max` cycles were made.
ScanResult Capture(Server& server, const std::shared_ptr<Database>& database,
                   std::int32_t transaction_count_max, std::int32_t scan_count_max);

// What the Agent would have done by now: the capture job where its polling interval is
// over, the cleanup job after two in the night. On Azure its own scheduler does so.
void RunDueJobs(Server& server, const std::shared_ptr<Database>& database);
// The job by type, "capture" or "cleanup", in any case; null: there is none.
const JobMeta* FindJob(const Catalog& catalog, std::string_view type);
JobMeta* FindJob(Catalog& catalog, std::string_view type);
// The capture job, if something would run it: without the Agent or the job, nothing
// captures and nothing complains (facts 1.10).
const JobMeta* RunningCaptureJob(const Server& server, const Catalog& catalog);

// Cleanup's first step: no instance starts below `mark` any more.
bool MoveLowWaterMark(Server& server, const std::shared_ptr<Database>& database,
                      const Lsn& mark, const std::optional<std::string>& instance);
// Its second: removes rows below each instance's start, at most `row_count_max` of each
// table (absent: all), and mapping rows below all of them.
std::int64_t DeleteBelowLowWaterMark(Server& server,
                                     const std::shared_ptr<Database>& database,
                                     std::optional<std::int64_t> row_count_max);
// The mark that a retention of so many minutes gives; absent: nothing is that old.
std::optional<Lsn> RetentionMark(Server& server,
                                 const std::shared_ptr<Database>& database,
                                 std::int64_t retention_minutes);

// A DDL record of the log, which LogDefinition wrote: what ddl_history gets, and the
// type of the column that was altered (column id 0: none was).
struct DefinitionRecord {
  DdlEntry entry;
  std::int32_t column_id = 0;
  SqlType type;
};
DefinitionRecord ReadDefinition(std::string_view record);
// A value of a change table's column in the form of its new type. Raises 2628, 8115.
Value Fitted(const Value& value, const SqlType& from, const SqlType& to);

// sys.fn_cdc_get_max_lsn() as `reader` sees it.
std::optional<Lsn> MaxLsn(Connection& reader, const Database& database,
                          const Catalog& catalog);
Lsn LsnFrom(std::string_view bytes);
// The update mask with the bits of `ordinals` set, for `count` columns: the lowest
// ordinals in the last byte (S9).
std::string UpdateMask(const std::vector<std::int32_t>& ordinals, std::size_t count);

}  // namespace mssql_cdc::sim
