// What the facts table says of a target's snapshots: which were opened, which are
// complete, and whether one that is open keeps a run from taking another kind.
//
// A snapshot is open from its snapshot_open row until a bootstrap or resnapshot row of
// the stream, any generation, at or above its LSN.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "cdc/offset.h"

namespace mssql_cdc::pipeline {

enum class SnapshotMode : std::uint8_t { kFull, kChunked };
const char* NameOf(SnapshotMode mode);

// A facts row with an event about a snapshot of the target.
struct SnapshotEvent {
  std::string event;
  std::string app_id;
  cdc::Lsn lsn;  // max_lsn.
  std::optional<std::int64_t> commit_us;
  std::optional<std::int64_t> rows;
  std::string detail;
  // Of a chunk: its wave's stamp, and how long the wave took.
  std::optional<cdc::Lsn> min_lsn = std::nullopt;
  std::optional<std::int64_t> duration_ms = std::nullopt;
  std::optional<std::int64_t> written_at_us = std::nullopt;
};

// What a snapshot_open row's detail says, as far as it is in the facts.
struct OpenDetail {
  SnapshotMode mode = SnapshotMode::kChunked;
  std::string kind = "bootstrap";  // Or "resnapshot".
  std::int64_t generation = 0;
  std::optional<std::int64_t> lost_from_us;
  std::optional<std::int64_t> lost_to_us;
  std::optional<std::int64_t> switch_batch_id;  // It was opened after a switch.

  bool operator==(const OpenDetail&) const = default;
};
// Anything but mode "full" is chunked; a missing kind follows from the generation.
OpenDetail ParseOpenDetail(std::string_view detail);

struct OpenedSnapshot {
  std::string sink_id;
  cdc::Offset stamp;
  OpenDetail detail;
  std::optional<std::int64_t> opened_at_us;
  bool is_complete = false;

  bool operator==(const OpenedSnapshot&) const = default;
};

// Whether `sink_id` is `app_id` or one of its generations (app_id.g<digits>).
bool IsOfFamily(std::string_view sink_id, std::string_view app_id);
// The sink id of a generation.
std::string SinkIdOf(std::string_view app_id, std::int64_t generation);

// Every snapshot_open row of the stream, any generation.
std::vector<OpenedSnapshot> OpenedOf(const std::vector<SnapshotEvent>& events,
                                     std::string_view app_id);

// The one opened by exactly `sink_id`: a chunked one if there is any, then the newest.
// Complete means here: by a row of that sink id.
std::optional<OpenedSnapshot> OpenedBy(const std::vector<SnapshotEvent>& events,
                                       std::string_view sink_id);

// The newest chunked one of the stream. Complete also where a newer snapshot made it
// needless.
std::optional<OpenedSnapshot> NewestChunked(const std::vector<SnapshotEvent>& events,
                                            std::string_view app_id);

// Whether the changes just above an LSN are gone, so that a snapshot at it can never be
// continued.
using IsLost = std::function<bool(const cdc::Lsn&)>;

// Errors: SnapshotModeLocked (facts target, mode, lsn, generation, reason) if a
// snapshot of the stream is open in another mode than `wanted`, or in any mode without
// one. A full one counts only while its sink has no chunked one and its LSN is not
// lost.
Status CheckModeLock(const std::vector<SnapshotEvent>& events, std::string_view app_id,
                     std::optional<SnapshotMode> wanted, const IsLost& is_lost);

}  // namespace mssql_cdc::pipeline
