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
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "columns/batch.h"
#include "columns/schema.h"

namespace mssql_cdc::lake {

// The property that makes a new table one with deletion vectors, with value "true".
inline constexpr char kDeletionVectorsProperty[] = "delta.enableDeletionVectors";

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
  // commitInfo.userMetadata. Its error is Append's: nothing is committed.
  std::function<Result<std::optional<std::string>>()> user_metadata;
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
  enum class Operator : std::uint8_t {
    kEqual,
    kIsNull,
    kIsNotNull,
    kAbove,
    kAtLeast,
    kNumberIs
  };
  std::string column;
  Operator op = Operator::kEqual;
  // kEqual, kAbove, kAtLeast: the column, which is kUtf8, compared with this by bytes.
  std::string text;
  std::int32_t number = 0;  // kNumberIs: the column, which is kInt32, equals this.
};

struct ReadSpec {
  std::vector<std::string> columns = {};  // Empty: all, in table order.
  std::vector<Condition> conditions = {};
  std::optional<std::int64_t> version = {};  // Absent: the newest.
};

// A data file of a table version. Its number is its place in TableChange::files().
struct DataFile {
  std::optional<std::int64_t> row_count;  // Absent: the log does not say.
  std::int64_t removed_count = 0;         // Rows of it that are gone already.
  std::int64_t size_bytes = 0;
};

// Values of one column, each from .first through .second. Only one of the lists is
// used: that of the column's type (kInt16, kInt32, kInt64, kDate32, kTimestampNtz;
// kUtf8).
struct ValueRanges {
  std::string column;
  std::vector<std::pair<std::int64_t, std::int64_t>> numbers;
  std::vector<std::pair<std::string, std::string>> texts;
};

struct ProbeSpec {
  std::vector<std::string> columns;
  std::optional<std::vector<std::int32_t>> files = {};  // Absent: all.
  // Rows outside of all ranges may be left out, and rows with NULL there.
  std::optional<ValueRanges> near = {};
};

enum class ChangeKind : std::uint8_t {
  kMerge,     // Rows change.
  kOptimize,  // The same rows, otherwise arranged.
};

struct ChangeSpec {
  ChangeKind kind = ChangeKind::kMerge;
  std::vector<columns::Field> fields;  // Of the rows that will be added.
  // With nothing to do there is a commit all the same: other changes of the version
  // that was read become conflicts.
  bool commits_nothing = false;
};

struct ChangeResult {
  bool is_committed = false;  // False: there was nothing to do, no commit was made.
  std::int64_t version = 0;   // The version that has the change, or the one read.
  std::int64_t added_count = 0;
  std::int64_t removed_count = 0;
  std::int64_t rewritten_row_count = 0;  // Rows that were copied to stay.
  std::int64_t size_bytes = 0;           // Of data files written.
};

// The last two columns of a probe: kInt32 and kInt64.
inline constexpr char kFileColumn[] = "__$mssql_cdc_file";
inline constexpr char kRowColumn[] = "__$mssql_cdc_row";

// A change of rows in the making: of the version it was begun on, rows are looked at
// and removed, and others are added, all in one commit or none. One thread at a time.
// Without a commit nothing of it stays.
class TableChange {
 public:
  virtual ~TableChange() = default;

  // What is changed.
  virtual std::int64_t version() const = 0;
  virtual const std::vector<DataFile>& files() const = 0;

  // Rows of that version, also those that Remove named, with their places. Errors:
  // LakeSchemaMismatch for a column it lacks.
  virtual Result<std::unique_ptr<columns::BatchReader>> Probe(
      const ProbeSpec& spec) = 0;

  // These rows of a file will be gone. Again is once.
  virtual Status Remove(std::int32_t file, std::span<const std::int64_t> rows) = 0;

  // Writes the rows of all sources; as Lake::Append reads them.
  virtual Status Add(std::vector<std::unique_ptr<columns::BatchReader>> sources) = 0;

  // Errors: LakeConflict when another writer committed since: the rows have to be
  // looked at again. Afterwards only destruction is left.
  virtual Result<ChangeResult> Commit(
      const std::optional<std::string>& user_metadata) = 0;
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

  // Begins a change of the newest version. Must not outlive the lake. Errors:
  // LakeSchemaMismatch for a field that the table lacks or has with another type,
  // LakeTableUnsupported, LakeUnreachable (also without a table).
  virtual Result<std::unique_ptr<TableChange>> Change(const std::string& location,
                                                      const ChangeSpec& spec) = 0;

  // From here on rows are removed by deletion vectors instead of rewriting files; some
  // readers cannot read such a table. Nothing to do makes no commit. Errors:
  // LakeTableUnsupported for a protocol that is left to its own engine.
  virtual Status EnableDeletionVectors(const std::string& location) = 0;
};

}  // namespace mssql_cdc::lake
