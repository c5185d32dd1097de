// The control table in a lake: one row is read, or replaced in a commit of its own.

#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/dice.h"
#include "base/error.h"
#include "lake/lake.h"
#include "pipeline/control.h"
#include "runtime/control_updates.h"

namespace mssql_cdc::runtime {

struct Freshness {
  std::optional<std::int64_t> finalized_until_us;
  std::optional<std::int64_t> updated_at_us;
  std::optional<double> age_seconds;           // Of finalized_until.
  std::optional<double> seconds_since_update;  // Of updated_at.
  std::optional<std::string> open_snapshot_lsn;
};

class ControlTable {
 public:
  // Borrows all. `location` is the table's; `joined` is where updates of other threads
  // go too, absent: this one's are alone.
  ControlTable(lake::Lake& lake, Clock& clock, Dice& dice, std::string location,
               ControlUpdates* joined = nullptr)
      : lake_(lake),
        clock_(clock),
        dice_(dice),
        location_(std::move(location)),
        joined_(joined) {}

  // Creates or migrates the table.
  Status Ensure();

  // The row of `table_name`, an empty one if there is none. Errors: the lake's, also
  // without a table.
  Result<pipeline::ControlRow> Read(const std::string& table_name);

  // ControlUpdates::Update of this table.
  using Change = ControlUpdates::Change;
  Result<pipeline::ControlRow> Update(const std::string& table_name,
                                      const Change& change);

  // Moves the verdict of `table_name` as `end` allows and returns it. Makes the table
  // if it is missing; commits only what moves.
  Result<std::optional<std::int64_t>> Advance(const std::string& table_name,
                                              const std::optional<cdc::Offset>& end,
                                              pipeline::Granularity granularity);

  Result<Freshness> AskFreshness(const std::string& table_name);

 private:
  lake::Lake& lake_;
  Clock& clock_;
  Dice& dice_;
  std::string location_;
  ControlUpdates* joined_;
};

// Whether every period that ends at `period_end_us` or before is complete.
bool IsFinal(const pipeline::ControlRow& row, std::int64_t period_end_us);

}  // namespace mssql_cdc::runtime
