// What the server knows of the keys that a snapshot is cut on: their types, where they
// lie, how many rows there are between them.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/key_types.h"
#include "pipeline/chunked_snapshot.h"
#include "runtime/run_context.h"
#include "sqlserver/key_statements.h"

namespace mssql_cdc::runtime {

struct TableKeys {
  std::vector<std::string> names;  // As captured; none: the table cannot be cut.
  // One for each name; none if a bound cannot be bound.
  std::vector<cdc::KeyType> types;
  bool is_unique = true;

  bool IsOneInteger() const {
    return types.size() == 1 && types[0].form == cdc::KeyForm::kInteger;
  }
};

// Option snapshotKeys, else the unique index. Errors: OptionInvalid (option
// snapshotKeys) for columns that are not captured, cannot be bound or not be sorted.
Result<TableKeys> AskTableKeys(RunContext& context, sqlserver::Session& session);

// `names` as keys, or no types where one of them cannot be bound or sorted.
Result<TableKeys> AskKeysOf(sqlserver::Session& session, const Source& source,
                            const std::vector<std::string>& names);

std::vector<sqlserver::KeyColumn> KeyColumnsOf(const TableKeys& keys);
sqlserver::KeySpan SpanOf(const pipeline::KeyRange& range);
sqlserver::KeyTable KeyTableOf(const RunContext& context, const TableKeys& keys,
                               const sqlserver::SourceSettings& settings);

// Smallest and largest key now.
Result<pipeline::Extent> AskExtent(RunContext& context, sqlserver::Session& session,
                                   const TableKeys& keys,
                                   const sqlserver::SourceSettings& settings);

// Cuts the table into chunks of about `chunk_rows` rows. What is above the extent is
// the stream's. Requires keys whose bounds can be bound, unless the extent is empty.
Result<pipeline::ChunkPlan> AskChunkPlan(RunContext& context,
                                         sqlserver::Session& session,
                                         const TableKeys& keys,
                                         const pipeline::Extent& extent,
                                         std::int64_t chunk_rows,
                                         const sqlserver::SourceSettings& settings);

// At most `range_count_max` ranges with about as many rows, the last open above. One
// range if no bound can be bound.
Result<std::vector<pipeline::KeyRange>> AskKeyRanges(
    RunContext& context, sqlserver::Session& session, const TableKeys& keys,
    std::int64_t range_count_max, const sqlserver::SourceSettings& settings);

// Ranges of about `row_count` rows, the first open below, the last open above. Requires
// keys whose bounds can be bound.
Result<std::vector<pipeline::KeyRange>> AskSeekRanges(
    sqlserver::Session& session, const Source& source, const TableKeys& keys,
    std::int64_t row_count, const sqlserver::SourceSettings& settings);

// The first key above `max`, where the last chunk ends; nullopt if there is none, or
// none that reads back as another value.
Result<std::optional<pipeline::Key>> AskKeyAbove(
    RunContext& context, sqlserver::Session& session, const TableKeys& keys,
    const pipeline::Key& max, const sqlserver::SourceSettings& settings);

// What a snapshot is stamped with: everything up to it is in the table when the read
// begins. Errors: CaptureHasNotRun.
Result<cdc::Offset> AskStamp(RunContext& context, sqlserver::Session& session);

}  // namespace mssql_cdc::runtime
