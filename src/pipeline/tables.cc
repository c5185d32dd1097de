#include "pipeline/tables.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.h"
#include "cdc/output_columns.h"

namespace mssql_cdc::pipeline {
namespace {

using columns::Field;
using columns::Kind;
using columns::Schema;

struct Comment {
  std::string_view column;
  std::string_view text;
};

constexpr Comment kBronzeComments[] = {
    {"_capture_instance",
     "Capture instance the row was read from; of a snapshot row, the one it was taken "
     "for."},
    {"_start_lsn",
     "Commit LSN of the source transaction: 0x and 20 upper-case hex digits, whose "
     "text "
     "order is commit order. Of a snapshot row, the LSN noted before the read: the row "
     "is "
     "at least that recent."},
    {"_seqval",
     "Log position of the change within its transaction. Order by _command_id first. "
     "NULL "
     "on snapshot rows."},
    {"_operation",
     "0 snapshot, 1 delete, 2 insert, 3 update (row before), 4 update (row after)."},
    {"_command_id",
     "Order of the statement within its transaction, numbered by each capture instance "
     "for "
     "itself. NULL on snapshot rows."},
    {"_commit_ts", "Commit time of _start_lsn, UTC; NULL if it is not known."},
    {"_batch_id",
     "Micro-batch that wrote the row: the key of its facts row. NULL on snapshot "
     "rows."},
    {"_snapshot",
     "LSN of the snapshot the row belongs to; equals _start_lsn on a whole snapshot. "
     "NULL "
     "on changes."},
    {"_chunk",
     "Number of the key range of a chunked snapshot. NULL on changes and whole "
     "snapshots."},
    {"_changed_columns",
     "Names of the captured columns that an update wrote, as a JSON list; NULL for "
     "other operations and snapshot rows."},
    {"_unknown_columns",
     "Names of the columns that are NULL because the server did not record their "
     "values, "
     "as a JSON list; NULL if there is none."},
};

struct DatedColumn {
  std::string_view name;
  Kind kind;
  int since;  // The migration that added it; 0: there from the start.
  std::string_view comment;
};

// In creation order.
constexpr DatedColumn kFactsColumns[] = {
    {"app_id", Kind::kUtf8, 0,
     "Sink that wrote the batch: the stream and its generation."},
    {"batch_id", Kind::kInt64, 0, "Micro-batch; NULL on rows about snapshots."},
    {"rows", Kind::kInt64, 0,
     "Rows written to the target; 0 for a batch without changes."},
    {"min_lsn", Kind::kUtf8, 0, "Smallest _start_lsn of the batch."},
    {"max_lsn", Kind::kUtf8, 0, "Largest _start_lsn of the batch."},
    {"min_commit_ts", Kind::kTimestampNtz, 0,
     "Earliest commit time of the batch, UTC."},
    {"max_commit_ts", Kind::kTimestampNtz, 0, "Latest commit time of the batch, UTC."},
    {"deletes", Kind::kInt64, 0, "Rows with operation 1."},
    {"inserts", Kind::kInt64, 0, "Rows with operation 2."},
    {"updates", Kind::kInt64, 0, "Rows with operation 4; operation 3 is not counted."},
    {"started_at", Kind::kTimestampNtz, 0, "When the batch began, UTC."},
    {"duration_ms", Kind::kInt64, 0, "From started_at to the commit of the target."},
    {"source_rtt_ms", Kind::kFloat64, 1,
     "Round trip to the server: how long the batch's planning request took."},
    {"read_seconds", Kind::kFloat64, 1, "Time spent reading from the server."},
    {"read_mb", Kind::kFloat64, 1, "Arrow data read, in millions of bytes."},
    {"network_wait_ms", Kind::kInt64, 1,
     "How long the server waited for the client to take rows (ASYNC_NETWORK_IO)."},
    {"retention_watermark_ts", Kind::kTimestampNtz, 2,
     "How far cleanup had deleted: commit time of the instance's lowest LSN, UTC."},
    {"retention_headroom_hours", Kind::kFloat64, 2,
     "From retention_watermark_ts to the stream's position."},
    {"event", Kind::kUtf8, 3,
     "NULL for a micro-batch; else bootstrap, resnapshot, snapshot_open, "
     "snapshot_plan, "
     "snapshot_chunk, schema_change, capture_instance_switched or data_skipped."},
    {"lost_from_ts", Kind::kTimestampNtz, 3, "Where a gap begins, UTC."},
    {"lost_to_ts", Kind::kTimestampNtz, 3, "Where a gap ends, UTC."},
    {"source_max_commit_ts", Kind::kTimestampNtz, 4,
     "Commit time of the newest captured commit after the read, UTC."},
    {"capture_lag_seconds", Kind::kFloat64, 4,
     "How old source_max_commit_ts was when it was read."},
    {"ingestion_lag_seconds", Kind::kFloat64, 4,
     "From the stream's position to source_max_commit_ts."},
    {"end_lsn", Kind::kUtf8, 5, "Position of the stream after the batch."},
    {"end_commit_ts", Kind::kTimestampNtz, 5, "Commit time of end_lsn, UTC."},
    {"detail", Kind::kUtf8, 6, "What the event was about; a batch's warnings as JSON."},
    {"target", Kind::kUtf8, 0,
     "Table the batch was written to, as the stream names it."},
    {"written_at", Kind::kTimestampNtz, 0, "When this row was made, UTC."},
};

// In creation order.
constexpr DatedColumn kControlColumns[] = {
    {"table_name", Kind::kUtf8, 0, "The table, as its writer names it."},
    {"finalized_until", Kind::kTimestampNtz, 0,
     "Every period that ends by then is complete in the table, UTC."},
    {"end_lsn", Kind::kUtf8, 0, "The position that last moved finalized_until."},
    {"end_commit_ts", Kind::kTimestampNtz, 0, "Commit time of end_lsn, UTC."},
    {"updated_at", Kind::kTimestampNtz, 0, "When finalized_until last moved, UTC."},
    {"applied_lsn", Kind::kUtf8, 1,
     "Of silver: the changes up to and including this commit are in it."},
    {"snapshot_lsn", Kind::kUtf8, 1, "Of silver: the snapshot it was rebuilt from."},
    {"open_snapshot_lsn", Kind::kUtf8, 2,
     "Of silver: the chunked snapshot whose chunks are being applied; else NULL."},
    {"snapshot_wave", Kind::kInt32, 2,
     "Of silver: the last wave of that snapshot that was applied."},
};

struct ReportColumn {
  std::string_view name;
  columns::Type type;
  std::string_view comment;
};

// In creation order.
constexpr ReportColumn kReportColumns[] = {
    {"run_id", {Kind::kUtf8}, "The comparison that the row is of."},
    {"run_at", {Kind::kTimestampNtz}, "When it began, UTC."},
    {"silver", {Kind::kUtf8}, "What was compared, as its writer names it."},
    {"silver_version", {Kind::kInt64}, "The table version that was compared."},
    {"silver_lsn", {Kind::kUtf8}, "Its applied_lsn."},
    {"source_lsn", {Kind::kUtf8}, "The source's newest LSN before it was read."},
    {"bucket_lo", {Kind::kUtf8}, "First key of the bucket, as JSON; NULL: open."},
    {"bucket_hi", {Kind::kUtf8}, "Key where the bucket ends, as JSON; NULL: open."},
    {"source_rows", {Kind::kInt64}, "Rows of the bucket in the source."},
    {"source_key_sum", {Kind::kDecimal128, 38, 0}, "Sum of their keys."},
    {"silver_rows", {Kind::kInt64}, "Rows of the bucket in silver."},
    {"silver_key_sum", {Kind::kDecimal128, 38, 0}, "Sum of their keys."},
    {"status", {Kind::kUtf8}, "MATCH, IN_FLIGHT or MISMATCH."},
    {"hashed", {Kind::kBool}, "Whether the bucket was compared row by row."},
    {"key", {Kind::kUtf8}, "The key that differs, as JSON."},
    {"failure_type",
     {Kind::kUtf8},
     "MISSING_TARGET, MISSING_SOURCE, RECORD_DIFF, IN_FLIGHT, CHUNK_TILING, "
     "CHUNK_ROWS or CHUNK_STAMP."},
    {"detail", {Kind::kUtf8}, "What differs, as JSON."},
};

Field FieldOf(const DatedColumn& column) {
  return {std::string(column.name), {column.kind}, true, std::string(column.comment)};
}

Field WithComment(Field field) {
  for (const Comment& comment : kBronzeComments) {
    if (comment.column == field.name) field.comment = comment.text;
  }
  return field;
}

TableDefinition Define(TableKind kind, Schema schema, std::string description) {
  TableDefinition table{std::move(schema), std::move(description), {}};
  table.properties[std::string(kVersionProperty)] = std::to_string(SchemaVersion(kind));
  return table;
}

bool HasColumn(const Schema& schema, std::string_view name) {
  return std::any_of(
      schema.fields.begin(), schema.fields.end(),
      [&](const Field& field) { return EqualsIgnoringAsciiCase(field.name, name); });
}

// The columns that migrations add; absent ones are due at any older version.
std::vector<Field> ColumnsAddedSince(TableKind kind, std::int64_t version) {
  std::vector<Field> fields;
  if (kind == TableKind::kBronze && version < 2) {
    for (const Field& field : cdc::SinkColumns()) {
      if (field.name != "_batch_id") fields.push_back(WithComment(field));
    }
  }
  const auto add = [&](std::span<const DatedColumn> columns) {
    for (const DatedColumn& column : columns) {
      if (column.since > version) fields.push_back(FieldOf(column));
    }
  };
  if (kind == TableKind::kFacts) add(kFactsColumns);
  if (kind == TableKind::kControl) add(kControlColumns);
  return fields;
}

// The number in a property; absent: 0.
Result<std::int64_t> NumberOf(const std::map<std::string, std::string>& properties,
                              std::string_view name) {
  const auto found = properties.find(std::string(name));
  if (found == properties.end()) return std::int64_t{0};
  const std::optional<std::int64_t> number = ParseInt64(found->second);
  if (!number) {
    return Error(ErrorId::kLakeTableUnsupported)
        .With("property", std::string(name))
        .With("value", found->second);
  }
  return *number;
}

}  // namespace

std::int64_t SchemaVersion(TableKind kind) {
  switch (kind) {
    case TableKind::kBronze:
      return 2;
    case TableKind::kFacts:
      return 14;
    case TableKind::kPlans:
      return 1;
    case TableKind::kControl:
      return 4;
    case TableKind::kSilver:
    case TableKind::kReport:
      return 0;
  }
  return 0;
}

TableDefinition BronzeTable(const std::vector<Field>& captured, bool command_id) {
  Schema schema = cdc::OutputSchema(captured, command_id);
  for (Field& field : schema.fields) field = WithComment(std::move(field));
  return Define(
      TableKind::kBronze, std::move(schema),
      "Every change of the source table as SQL Server's change data capture "
      "recorded it, and its snapshots, in append order. One row per key results "
      "from the newest by (_start_lsn, _command_id, _seqval, _operation).");
}

TableDefinition FactsTable() {
  Schema schema;
  for (const DatedColumn& column : kFactsColumns) {
    schema.fields.push_back(FieldOf(column));
  }
  return Define(TableKind::kFacts, std::move(schema),
                "One row per micro-batch, also of those without changes, and one per "
                "snapshot, schema change, switch of capture instance and skipped gap.");
}

TableDefinition PlansTable() {
  Schema schema;
  schema.fields = {
      {"snapshot", {Kind::kUtf8}, true, "LSN of the chunked snapshot."},
      {"event", {Kind::kUtf8}, true, "snapshot_open, snapshot_plan or snapshot_chunk."},
      {"detail", {Kind::kUtf8}, true, "The event whole, with key values, as JSON."},
  };
  return Define(
      TableKind::kPlans, std::move(schema),
      "What chunked snapshots of the table beside planned and read. Holds key "
      "values of the source.");
}

TableDefinition ControlTable() {
  Schema schema;
  for (const DatedColumn& column : kControlColumns) {
    schema.fields.push_back(FieldOf(column));
  }
  return Define(TableKind::kControl, std::move(schema),
                "One row per table: until when it is complete and, of silver, which "
                "changes it has.");
}

TableDefinition SilverTable(const std::vector<Field>& captured) {
  Schema schema;
  schema.fields = captured;
  for (Field& field : schema.fields) field.comment.clear();
  schema.fields.push_back({"_start_lsn", {Kind::kUtf8}});
  schema.fields.push_back({"_commit_ts", {Kind::kTimestampNtz}});
  return Define(TableKind::kSilver, std::move(schema),
                "The current rows of the source table. _start_lsn and _commit_ts: the "
                "commit, or the snapshot, that gave the row its image.");
}

TableDefinition ReportTable() {
  Schema schema;
  for (const ReportColumn& column : kReportColumns) {
    schema.fields.push_back(
        {std::string(column.name), column.type, true, std::string(column.comment)});
  }
  return Define(TableKind::kReport, std::move(schema),
                "What comparisons of silver with its source found.");
}

std::vector<Field> SilverColumns(const Schema& bronze) {
  std::vector<Field> fields;
  for (const Field& field : bronze.fields) {
    const bool is_captured =
        std::none_of(std::begin(kBronzeComments), std::end(kBronzeComments),
                     [&](const Comment& own) { return own.column == field.name; });
    if (is_captured) fields.push_back(field);
  }
  return fields;
}

std::string PlansTableOf(std::string_view target) {
  while (target.ends_with('/')) target.remove_suffix(1);
  constexpr std::string_view kSuffix = "_snapshot_plans";
  std::string name(target);
  if (target.ends_with('`')) {
    name.insert(name.size() - 1, kSuffix);
  } else {
    name += kSuffix;
  }
  return name;
}

Result<std::optional<Migration>> PlanMigration(
    TableKind kind, const std::map<std::string, std::string>& properties,
    const Schema& schema) {
  const std::int64_t known = SchemaVersion(kind);
  TRY_ASSIGN(const std::int64_t demanded, NumberOf(properties, kMinVersionProperty));
  if (demanded > known) {
    return Error(ErrorId::kLakeTableUnsupported)
        .With("property", std::string(kMinVersionProperty))
        .With("value", std::to_string(demanded))
        .With("known", std::to_string(known));
  }
  TRY_ASSIGN(const std::int64_t version, NumberOf(properties, kVersionProperty));
  if (version >= known) return std::optional<Migration>();
  Migration migration;
  for (Field& field : ColumnsAddedSince(kind, version)) {
    if (!HasColumn(schema, field.name)) migration.add.push_back(std::move(field));
  }
  migration.properties[std::string(kVersionProperty)] = std::to_string(known);
  return std::optional<Migration>(std::move(migration));
}

}  // namespace mssql_cdc::pipeline
