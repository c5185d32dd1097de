// A stream's position as checkpoints keep it.
//
// {"lsn": "0x0000002A000001000061", "commit_ts": "2026-11-20T09:35:00.000"}: the last
// commit that was processed, exclusive start of the next batch. The layout (key order,
// the blanks) is what Spark's checkpoints of this source hold.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cdc/lsn.h"

namespace mssql_cdc::cdc {

struct Offset {
  Lsn lsn;
  // Of exactly that LSN; absent when it is no commit ("" in the text).
  std::optional<std::int64_t> commit_us;

  bool operator==(const Offset&) const = default;

  std::string Json() const;
  // Reads Json()'s text and older forms (no fraction in commit_ts, no commit_ts at
  // all), in any JSON layout. Errors: CheckpointUnreadable.
  static Result<Offset> Parse(std::string_view json);
};

// A commit time as offsets and JSON keep it: ISO with milliseconds, "" when unknown.
std::string CommitText(const std::optional<std::int64_t>& commit_us);

}  // namespace mssql_cdc::cdc
