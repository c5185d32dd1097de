// The control table in a lake: one row is read, or replaced in a commit of its own.

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/dice.h"
#include "base/error.h"
#include "lake/lake.h"
#include "pipeline/control.h"

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
  // Borrows all. `location` is the table's.
  ControlTable(lake::Lake& lake, Clock& clock, Dice& dice, std::string location)
      : lake_(lake), clock_(clock), dice_(dice), location_(std::move(location)) {}

  // Creates or migrates the table.
  Status Ensure();

  // The row of `table_name`, an empty one if there is none. Errors: the lake's, also
  // without a table.
  Result<pipeline::ControlRow> Read(const std::string& table_name);

  // Replaces the row by what `change` makes of it; nullopt leaves it. A commit that
  // loses against another writer is tried again for up to a minute. Returns the row as
  // it is then.
  using Change =
      std::function<std::optional<pipeline::ControlRow>(const pipeline::ControlRow&)>;
  Result<pipeline::ControlRow> Update(const std::string& table_name,
                                      const Change& change);

  // Moves the verdict of `table_name` as `end` allows and returns it. Makes the table
  // if it is missing; commits only what moves.
  Result<std::optional<std::int64_t>> Advance(const std::string& table_name,
                                              const std::optional<cdc::Offset>& end,
                                              pipeline::Granularity granularity);

  Result<Freshness> AskFreshness(const std::string& table_name);

 private:
  Result<std::optional<pipeline::ControlRow>> TryUpdate(const std::string& table_name,
                                                        const Change& change);

  lake::Lake& lake_;
  Clock& clock_;
  Dice& dice_;
  std::string location_;
};

// Whether every period that ends at `period_end_us` or before is complete.
bool IsFinal(const pipeline::ControlRow& row, std::int64_t period_end_us);

}  // namespace mssql_cdc::runtime
