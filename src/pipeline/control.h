// The control table: per table, until when it is complete and, of silver, where it
// stands.
//
// Two writers share a row and each leaves the other's columns alone.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cdc/offset.h"
#include "columns/batch.h"
#include "pipeline/apply_plan.h"

namespace mssql_cdc::pipeline {

// One row, NULL where absent; times are microseconds UTC. Members are in table order.
struct ControlRow {
  std::string table_name;
  std::optional<std::int64_t> finalized_until;
  std::optional<std::string> end_lsn;
  std::optional<std::int64_t> end_commit_ts;
  std::optional<std::int64_t> updated_at;
  std::optional<std::string> applied_lsn;
  std::optional<std::string> snapshot_lsn;
  std::optional<std::string> open_snapshot_lsn;
  std::optional<std::int64_t> snapshot_wave;

  bool operator==(const ControlRow&) const = default;

  // Errors: OptionInvalid for an LSN that is none.
  Result<SilverPosition> Position() const;
};

columns::RecordBatch ControlBatch(const ControlRow& row);
// Reads row `row` of a batch with these columns, any of which but table_name may be
// missing.
Result<ControlRow> ParseControlRow(const columns::RecordBatch& batch, std::int64_t row);

enum class Granularity : std::uint8_t { kMinute, kHour, kDay };
// "minute", "hour" or "day" in any case. Errors: OptionInvalid.
Result<Granularity> ParseGranularity(std::string_view text);
// The beginning of the period that the time is in.
std::int64_t Truncate(std::int64_t utc_us, Granularity granularity);

// `row` with the verdict that `end` gives: everything before the period of its commit
// is complete. nullopt if that moves nothing: the commit time is not known, or the
// verdict is not later than the one there.
std::optional<ControlRow> Advanced(const ControlRow& row,
                                   const std::optional<cdc::Offset>& end,
                                   Granularity granularity, std::int64_t now_us);

// `row` of a table that is gone, before it is made anew: what was complete and applied
// is no more. nullopt if the row says nothing.
std::optional<ControlRow> Forgotten(const ControlRow& row);

// `row` with that position; nullopt if it has it already.
std::optional<ControlRow> Positioned(const ControlRow& row,
                                     const SilverPosition& position);

}  // namespace mssql_cdc::pipeline
