// What snapshots leave in the tables and find there again: rows about them in the
// facts, key values in the plans table, their rows in the target.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cdc/cells.h"
#include "cdc/offset.h"
#include "pipeline/chunked_snapshot.h"
#include "pipeline/facts.h"
#include "pipeline/snapshot_events.h"
#include "runtime/run_context.h"

namespace mssql_cdc::runtime {

// The LSN in a text column. Errors: that of Lsn::Parse.
Result<std::optional<cdc::Lsn>> LsnIn(const cdc::RowView& row, const char* column);

// Rows with an event that are about this target, of any stream; none without a facts
// table.
Result<std::vector<pipeline::SnapshotEvent>> ReadSnapshotEvents(RunContext& context);

// Whether this stream has ever had rows in the target: what the facts know of its
// batches and snapshots. Where they know of no batch, and there was one, it counts as
// rows.
Result<bool> RowsAreRecorded(RunContext& context, bool after_a_batch);

// Nothing happens without a facts table.
Status AppendFacts(RunContext& context, const std::vector<pipeline::FactsRow>& rows,
                   const std::optional<lake::Txn>& txn);

// Where the plans table of this target is.
std::string PlansLocation(const StreamConfig& config);
// Makes the table if it is missing. The rows are those of `sink_id`'s snapshot.
Status AppendPlans(RunContext& context, const cdc::Lsn& snapshot,
                   const std::string& sink_id,
                   const std::vector<pipeline::PlansRow>& rows, const lake::Txn& txn);
// None without a plans table.
Result<std::vector<pipeline::PlansRow>> ReadPlans(lake::Lake& lake,
                                                  const std::string& plans_location,
                                                  const cdc::Lsn& snapshot);

// The newest whole snapshot of the table in the target; a seed is one.
Result<std::optional<cdc::Offset>> FindWholeSnapshot(RunContext& context);

// All snapshots of the table in the target, in no order: whole ones, and S of chunked
// ones. An LSN may be there twice.
struct SnapshotsInTarget {
  std::vector<cdc::Offset> whole;
  std::vector<cdc::Lsn> chunked;
};
Result<SnapshotsInTarget> FindSnapshots(RunContext& context);

// How many rows each chunk from `first` on has in the target.
Result<std::vector<std::pair<std::int64_t, std::int64_t>>> CountChunkRows(
    RunContext& context, const cdc::Lsn& snapshot, std::int64_t first);
// The lowest stamp of those rows; nullopt without rows.
Result<std::optional<cdc::Lsn>> LowestStamp(RunContext& context,
                                            const cdc::Lsn& snapshot,
                                            std::int64_t first);

// How far cleanup was behind the stream when it last wrote, less the time since;
// nullopt: it has written nothing, or nothing that tells.
Result<std::optional<double>> StreamHeadroomHours(RunContext& context,
                                                  const std::string& sink_id);

}  // namespace mssql_cdc::runtime
