// One chunked snapshot as the tables record it, and what is to be done next for it.
//
// Its S was recorded before anything was read, and the stream reads on from S. The
// facts say which chunks are in the target; key values are in the plans table only.
// Every step is found again by what it left: after a stop at any moment the same rows
// lead to the same next step.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "cdc/offset.h"
#include "pipeline/key_value.h"
#include "pipeline/plan_rows.h"
#include "pipeline/snapshot_events.h"

namespace mssql_cdc::pipeline {

// Where the keys lay when the snapshot was opened. Of one integer key:
struct IntegerExtent {
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::int64_t row_estimate = 0;
  bool operator==(const IntegerExtent&) const = default;
};
// Of any other: its largest value; absent without rows, without a key, or where no
// bound can be bound.
struct SeekExtent {
  std::optional<Key> max;
  bool operator==(const SeekExtent&) const = default;
};
using Extent = std::variant<IntegerExtent, SeekExtent>;

// What the plans table keeps of the opening.
struct ChunkedOpen {
  OpenDetail detail;
  std::vector<std::string> keys;  // None: one chunk.
  Extent extent;
};

struct ChunkPlan {
  std::int64_t chunk_rows = 0;
  std::vector<KeyRange> chunks;
  bool operator==(const ChunkPlan&) const = default;
};

struct Chunk {
  std::int64_t chunk = 0;  // Its place in the plan.
  KeyRange range;
  bool is_last = false;
  bool operator==(const Chunk&) const = default;
};

// A chunk that is in the target.
struct DoneChunk {
  Chunk chunk;
  std::optional<std::int64_t> rows;  // Absent: only the target's rows tell.
  std::optional<cdc::Lsn> high_lsn;  // The newest commit after the read.
  std::optional<double> read_seconds;
  std::optional<double> read_mb;
  bool operator==(const DoneChunk&) const = default;
};

// A wave as its commit in the target describes it.
struct WaveRecord {
  std::string txn_app_id;  // "<app_id>#snap.<S>"
  std::int64_t wave = 0;
  cdc::Lsn stamp;
  std::string attempt;           // Distinguishes commits of the same wave.
  std::string capture_instance;  // Empty: not told.
  std::vector<DoneChunk> chunks;
};

// The texts on disk. `detail` is the facts row's; `whole` is what the plans table
// keeps.
struct DetailTexts {
  std::string detail;
  std::string whole;
};
DetailTexts OpenTexts(const ChunkedOpen& open);
DetailTexts PlanTexts(const cdc::Lsn& snapshot, const ChunkedOpen& open,
                      const ChunkPlan& plan);
DetailTexts ChunkTexts(const cdc::Lsn& snapshot, std::int64_t wave, const Chunk& chunk);
// What the plans table keeps of `whole`, with the stream it belongs to: two streams
// into one target may open a snapshot at the same S.
std::string PlansText(const std::string& whole, std::string_view app_id);
std::string CompletionText(const cdc::Lsn& snapshot, std::int64_t chunk_count,
                           std::int64_t row_count, const cdc::Lsn& last_stamp);
std::string WaveText(const WaveRecord& record);
// Reads WaveText's; nullopt for any other text.
std::optional<WaveRecord> ParseWave(std::string_view text, std::size_t key_count);

// S of the wave that WaveText describes, and its table's instance if it tells; nullopt
// for any other text.
struct WaveSnapshot {
  cdc::Lsn lsn;
  std::optional<std::string> capture_instance;
  bool operator==(const WaveSnapshot&) const = default;
};
std::optional<WaveSnapshot> SnapshotOfWave(std::string_view text);

// Option snapshotChunks: a JSON list of [chunk, lo, hi]. Errors: OptionInvalid.
Result<std::vector<Chunk>> ParseChunksOption(std::string_view text,
                                             std::size_t key_count);

// The names its commits are numbered under.
std::string OpenTxn(std::string_view app_id, const cdc::Lsn& snapshot);
std::string PlanTxn(std::string_view app_id, const cdc::Lsn& snapshot);
std::string WaveTxn(std::string_view app_id, const cdc::Lsn& snapshot);
std::string ChunksTxn(std::string_view app_id, const cdc::Lsn& snapshot);
std::string SwitchDoneTxn(std::string_view app_id, const cdc::Lsn& snapshot);

// The state of one chunked snapshot.
struct ChunkedState {
  OpenedSnapshot opened;
  // Opened by a release before 0.7.0, which kept key values in the facts: then so does
  // everything after it, and the plans table stays empty.
  bool is_whole_in_facts = false;
  ChunkedOpen open;
  std::optional<ChunkPlan> plan;
  std::int64_t done_count = 0;  // Chunks in the facts.
  std::int64_t row_count = 0;
  std::optional<std::int64_t> last_wave;
  std::optional<std::int64_t> last_wave_ms;
  std::int64_t last_wave_chunk_count = 0;
  bool last_chunk_is_done = false;
  std::int64_t next_chunk = 0;
  std::optional<cdc::Lsn> last_stamp;  // The newest of all waves.
  // Chunks that the plans table has for the wave after the last: it was in the target
  // before a stop.
  std::vector<Chunk> noted;
};

// Reads it from the facts and from the plans table's rows of this S. Errors:
// SnapshotPlanLost (facts table, event, lsn) where the plans table lacks what the facts
// point to; CheckpointUnreadable for a row that cannot be understood.
Result<ChunkedState> ReadChunkedState(const OpenedSnapshot& opened,
                                      const std::vector<SnapshotEvent>& events,
                                      const std::vector<PlansRow>& rows,
                                      const std::string& plans_table);

// How many chunks the facts have of a snapshot; nothing else is read for it.
std::int64_t DoneChunkCount(const OpenedSnapshot& opened,
                            const std::vector<SnapshotEvent>& events);

// The plan that the plans table has of `sink_id`'s snapshot; the last one there.
// Errors: CheckpointUnreadable.
Result<std::optional<ChunkPlan>> StoredPlan(const std::vector<PlansRow>& rows,
                                            const std::string& sink_id,
                                            std::size_t key_count);

// What is to be done next.
struct MakePlan {
  bool operator==(const MakePlan&) const = default;
};
struct ReadWave {
  std::int64_t wave = 0;
  // Exactly these: an earlier attempt's. None: as many as suit, from `next_chunk` on.
  std::vector<Chunk> noted;
  bool operator==(const ReadWave&) const = default;
};
struct WriteCompletion {
  bool operator==(const WriteCompletion&) const = default;
};
struct NothingLeft {
  bool operator==(const NothingLeft&) const = default;
};
using ChunkedStep = std::variant<MakePlan, ReadWave, WriteCompletion, NothingLeft>;
ChunkedStep NextStep(const ChunkedState& state);

struct WaveSizing {
  std::int64_t parallel_count = 1;  // Chunks read at once: one round.
  // How long a round took lately; absent: nothing was read yet.
  std::optional<double> round_seconds;
  double target_seconds = 300;
  std::optional<double> left_seconds;  // Of the call's budget.
};
// How many chunks the next wave takes: whole rounds, at least one.
std::int64_t ChunkCountOf(const WaveSizing& sizing, std::int64_t left_chunk_count);

// The chunks of the plan from `first`, so many.
std::vector<Chunk> TakeChunks(const ChunkPlan& plan, std::int64_t first,
                              std::int64_t count);

// Of a wave whose commit has left the log: the chunks from `first` to the highest one
// that has rows in the target. `rows` are counts of the target's rows by chunk number.
std::vector<DoneChunk> RebuildChunks(
    const ChunkPlan& plan, std::int64_t first,
    const std::vector<std::pair<std::int64_t, std::int64_t>>& rows);

}  // namespace mssql_cdc::pipeline
