// What a batch met in its source besides changes, on its way into the facts table.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/read_plan.h"
#include "pipeline/facts.h"

namespace mssql_cdc::pipeline {

// The event's row: of the batch that read past it, with no rows of its own.
FactsRow EventFacts(const BatchRun& run, const cdc::SourceEvent& event);

// The detail of a batch's row: {"warnings": [...]}; absent without any. Each text once.
std::optional<std::string> WarningsDetail(const std::vector<std::string>& warnings);

// What a batch's row and events need that a replay could not find again.
struct BatchNote {
  std::int64_t batch_id = 0;
  std::vector<cdc::SourceEvent> events;
  std::vector<std::string> warnings;

  bool operator==(const BatchNote&) const = default;
  bool empty() const { return events.empty() && warnings.empty(); }

  std::string Json() const;
  // Reads Json()'s text. Errors: CheckpointUnreadable.
  static Result<BatchNote> Parse(std::string_view json);
};

// What an earlier attempt at the batch noted and what this one found. The same event
// (by kind, instance and, of a skip, the first LSN that is lost) is this one's.
BatchNote Merge(const BatchNote& earlier, BatchNote now);

}  // namespace mssql_cdc::pipeline
