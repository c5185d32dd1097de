// A table store that takes batches exactly once.
//
// The core says what, a Lake says how. Everything a Lake reports is read from the table
// itself, so it is right after a crash. Implementations: DeltaLake (delta_kernel, local
// disk and object stores), MemoryLake (tests). All of them pass lake_contract_test.cc.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "columns/batch.h"
#include "columns/schema.h"

namespace mssql_cdc::lake {

// What a table is created with. Every column is nullable, nothing is partitioned.
struct CreateSpec {
  columns::Schema schema;  // Comments become column comments.
  std::string description;
  std::map<std::string, std::string> properties;
};

struct TableState {
  std::int64_t version = 0;
  columns::Schema schema;
  std::map<std::string, std::string> properties;
};

// A writer's own numbering inside one table (Delta's `txn` action). Gaps are normal.
struct Txn {
  std::string app_id;
  std::int64_t version = 0;
};

struct AppendSpec {
  // Absent: the append is not recognised on a replay (full snapshots).
  std::optional<Txn> txn;
  // Asked after every source was drained and before the commit; nullopt: none. Becomes
  // commitInfo.userMetadata.
  std::function<std::optional<std::string>()> user_metadata;
  // Columns of the sources that the table lacks are added, after the existing ones, in
  // the same commit. Without it such a column is LakeSchemaMismatch. Columns the
  // sources lack are NULL. Names match ignoring case; order does not matter.
  bool merge_schema = false;
};

enum class AppendOutcome : std::uint8_t {
  kCommitted,
  kAlreadyThere,  // The table's txn for app_id is at or above the given version.
  kNoRows,        // The sources had no rows: no commit was made.
};

struct AppendResult {
  AppendOutcome outcome = AppendOutcome::kCommitted;
  std::int64_t version =
      0;  // The table version that holds the rows, or the newest one.
  std::int64_t row_count = 0;
  std::int64_t size_bytes = 0;  // Of the data files.
};

struct CommitInfo {
  std::int64_t version = 0;
  std::int64_t timestamp_ms = 0;
  std::string operation;
  std::optional<std::string> user_metadata;
};

// A simple filter for reading small tables: all conditions hold.
struct Condition {
  enum class Operator : std::uint8_t { kEqual, kIsNull, kIsNotNull };
  std::string column;
  Operator op = Operator::kEqual;
  std::string text;  // kEqual: the column, which is kUtf8, equals this.
};

struct ReadSpec {
  std::vector<std::string> columns;  // Empty: all, in table order.
  std::vector<Condition> conditions;
};

// Locations are paths of this machine or URLs of an object store. Calls come from one
// thread at a time per table.
class Lake {
 public:
  virtual ~Lake() = default;

  // The newest state, or nullopt if there is no table there.
  virtual Result<std::optional<TableState>> State(const std::string& location) = 0;

  // The last txn version of `app_id`, or nullopt before the first or without a table.
  virtual Result<std::optional<std::int64_t>> LastTxn(const std::string& location,
                                                      const std::string& app_id) = 0;

  // Creates the table in one commit of its own, version 0 (metaData and protocol only).
  // A table that exists is left as it is, also one that another writer made meanwhile.
  virtual Status Create(const std::string& location, const CreateSpec& spec) = 0;

  // Adds the columns whose names (ignoring case) are missing, after the existing ones,
  // and sets properties; nothing to do makes no commit. A name that is there keeps its
  // type. Errors: LakeConflict, LakeTableUnsupported, LakeUnreachable (also without a
  // table).
  virtual Status Alter(const std::string& location,
                       const std::vector<columns::Field>& add,
                       const std::map<std::string, std::string>& properties) = 0;

  // Adds the rows of all sources and records `txn`, in one table version or not at all.
  // One data file or more per source; sources are read in parallel where the lake can,
  // so they must not share state; memory stays bounded by row groups. A txn already
  // there is noticed before any source is read. Owns the sources.
  //
  // A commit that loses against another writer is retried by the lake while `txn` shows
  // that it is not there yet. Errors: LakeConflict when that does not help,
  // LakeSchemaMismatch, LakeTableUnsupported, LakeUnreachable (also without a table), a
  // source's own error.
  virtual Result<AppendResult> Append(
      const std::string& location,
      std::vector<std::unique_ptr<columns::BatchReader>> sources,
      const AppendSpec& spec) = 0;

  // Commits from `since_version` (inclusive) to the newest, in order; none without a
  // table. Commits whose log entries were cleaned up are left out.
  virtual Result<std::vector<CommitInfo>> History(const std::string& location,
                                                  std::int64_t since_version) = 0;

  // The rows of the newest version that meet `spec`, in no order. Names match ignoring
  // case. Errors: LakeUnreachable if there is no table, LakeSchemaMismatch for a column
  // it lacks or that is not kUtf8 where it must be.
  virtual Result<std::unique_ptr<columns::BatchReader>> Read(
      const std::string& location, const ReadSpec& spec) = 0;

  // The number of rows, from the log's statistics where they are there.
  virtual Result<std::int64_t> RowCount(const std::string& location) = 0;
};

}  // namespace mssql_cdc::lake
