// What a server says about its capture instances, and which one a configured name
// means.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "columns/batch.h"

namespace mssql_cdc::cdc {

// A row of sys.sp_cdc_help_change_data_capture, which lists only what the login may
// read.
struct CaptureInstance {
  std::string source_schema;
  std::string source_table;
  std::string name;
  std::optional<Lsn> start_lsn;  // Absent: capture has not reached the instance yet.
  std::int64_t created_us = 0;   // create_date, on the server's clock.
  std::vector<std::string> key_columns;  // Of the unique index that identifies rows.

  bool operator==(const CaptureInstance&) const = default;
};

// A row of sys.sp_cdc_get_captured_columns.
struct CapturedColumn {
  std::string name;
  std::int64_t column_id = 0;
  std::string type_name;  // Base type, as the server spells it.
  std::optional<std::int64_t> precision;
  std::optional<std::int64_t> scale;
  std::int64_t ordinal = 0;  // From 1: its bit in the update mask.
  std::optional<std::int64_t> max_length = std::nullopt;  // -1: max.
};

// A row of sys.columns of the source table, as it is now.
struct SourceColumn {
  std::string name;
  std::int64_t column_id = 0;
  bool is_computed = false;
};

// "[order_id], [line]" as names; ]] inside brackets is one ].
std::vector<std::string> ParseColumnList(std::string_view text);

// Errors: InternalError if an answer lacks what is needed.
Result<std::vector<CaptureInstance>> ReadInstances(const columns::RecordBatch& answer);
// In capture order (column_ordinal).
Result<std::vector<CapturedColumn>> ReadCapturedColumns(
    const columns::RecordBatch& answer);
Result<std::vector<SourceColumn>> ReadSourceColumns(const columns::RecordBatch& answer);

// Checks what SQL Server and the reference allow as a name: 1 to 100 characters, no ]
// and no control character. Errors: OptionInvalid.
Status CheckInstanceName(std::string_view name);

// All instances of one source table.
struct InstanceFamily {
  // Oldest first: one that capture has not reached last, then by creation, then by
  // first LSN; cleanup may move both to the same one. Never empty.
  std::vector<CaptureInstance> instances;
  // The configured name is no instance's any more; its table is still known.
  bool name_is_gone = false;

  const CaptureInstance& oldest() const { return instances.front(); }
  const CaptureInstance& newest() const { return instances.back(); }
  // The one called `name`, exactly or ignoring case, or the newest if none is.
  const CaptureInstance& Meant(std::string_view name) const;
};

// The instances of the table that `name` means: that of the instance with the exact
// name, else with the only one equal ignoring case, else of the only table whose
// default name (schema_table) it is, else of the first of `also_known_as` that is
// listed: names under which this stream has read the table before. Errors:
// CaptureInstanceNotFound with fact `nearest` (names that come close) or `candidates`
// (names that differ only in case).
Result<InstanceFamily> ResolveFamily(
    const std::vector<CaptureInstance>& instances, std::string_view name,
    const std::vector<std::string>& also_known_as = {});

// A part of a batch that is read from one instance, by its place in the list.
struct ReadPiece {
  std::size_t instance_index = 0;
  LsnWindow window;

  bool operator==(const ReadPiece&) const = default;
};

// Tiles `window` so that each commit is read once, although two instances hold those
// from the newer one's first LSN on: below it the older instance is read, from it on
// the newer. An instance that capture has not reached is not read. `instances` are
// oldest first and not empty; the oldest takes what is below all others, whether it
// still holds it or not. Ascending, none empty.
std::vector<ReadPiece> CutAtInstances(const std::vector<CaptureInstance>& instances,
                                      const LsnWindow& window);

// If the change just above `position` is gone, where the instance that held it begins
// now. That instance is the newest one that begins at or below it, else the oldest.
// `instances` are oldest first and not empty; cleanup moves their first LSNs.
std::optional<Lsn> LostUpTo(const std::vector<CaptureInstance>& instances,
                            const Lsn& position);

}  // namespace mssql_cdc::cdc
