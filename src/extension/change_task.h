// One range of a batch as it travels from the planner to the process that reads it,
// and what that process tells of the read.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/offset.h"
#include "pipeline/source_events.h"
#include "reader/change_reader.h"

namespace mssql_cdc::extension {

struct ChangeTask {
  reader::ChangePlan plan;               // But for its limits.
  std::vector<columns::Field> declared;  // By option columns; empty without it.

  std::string Json() const;
  // Reads Json()'s text. Errors: InternalError.
  static Result<ChangeTask> Parse(std::string_view json);
};

// What a range's read came to.
struct ReadReport {
  std::string capture_instance;
  cdc::LsnWindow window;
  reader::ChangeCounts counts;
  std::optional<reader::AfterRead> after;

  std::string Json() const;
  static Result<ReadReport> Parse(std::string_view json);
};

// What the sink has to know of a batch besides its rows.
struct BatchSummary {
  cdc::Offset start;
  cdc::Offset end;
  std::optional<double> rtt_ms;
  std::int64_t row_count = 0;           // As planned; many are not counted to the end.
  std::vector<cdc::LsnWindow> windows;  // One for each range.
  pipeline::BatchNote note;

  std::string Json() const;
  static Result<BatchSummary> Parse(std::string_view json);
};

}  // namespace mssql_cdc::extension
