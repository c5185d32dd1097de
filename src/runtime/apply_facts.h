// Gathers what an apply decides on: the control row, what the facts and the plans tell
// of snapshots, and what snapshots bronze itself has.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "lake/lake.h"
#include "pipeline/apply_chunks.h"
#include "pipeline/apply_plan.h"
#include "runtime/known_facts.h"
#include "runtime/silver_config.h"

namespace mssql_cdc::runtime {

// The facts rows about snapshots and skipped changes of a bronze table; nullopt without
// a facts table. With `known`, a version of which all commits since are batches' own
// (kNoEvents) is not read again.
Result<std::optional<std::vector<pipeline::SnapshotFact>>> ReadSnapshotFacts(
    lake::Lake& lake, const SilverConfig& config, KnownFacts* known = nullptr);

// Snapshot `lsn` with its key columns and chunks.
Result<pipeline::OpenSnapshot> ReadSnapshot(
    lake::Lake& lake, const SilverConfig& config, const cdc::Lsn& lsn,
    const std::vector<pipeline::SnapshotFact>& facts);

// Everything but the position; `known` as above. Facts are read before the plans, and
// both before the version of bronze is chosen: bronze has the rows that they tell of.
Result<pipeline::ApplyFacts> GatherFacts(lake::Lake& lake, const SilverConfig& config,
                                         const pipeline::SilverPosition& position,
                                         std::vector<std::string>& warnings,
                                         KnownFacts* known = nullptr);

// Fills in what bronze's version itself says.
Status GatherBronze(lake::Lake& lake, const SilverConfig& config,
                    const lake::TableState& bronze, pipeline::ApplyFacts& facts);

}  // namespace mssql_cdc::runtime
