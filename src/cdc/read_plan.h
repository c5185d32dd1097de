// Decides how a batch's window is read: from which instances, up to which gaps, and
// past which changes of the source's schema. Nothing of the batch is read before this
// has agreed.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/capture_instance.h"
#include "cdc/column_union.h"
#include "cdc/commit_clock.h"
#include "cdc/lsn.h"
#include "cdc/offset.h"
#include "cdc/source_memory.h"
#include "cdc/source_options.h"
#include "columns/batch.h"
#include "columns/schema.h"

namespace mssql_cdc::cdc {

// A row of sys.sp_cdc_get_ddl_history.
struct DdlEntry {
  Lsn lsn;
  std::string command;

  bool operator==(const DdlEntry&) const = default;
};
// In LSN order. Errors: TdsMalformed.
Result<std::vector<DdlEntry>> ReadDdlHistory(const columns::RecordBatch& answer);

// One capture instance, as the server shows it now.
struct InstanceFacts {
  InstanceColumns columns;  // Asked for after `ddl` was, where that has grown.
  std::vector<DdlEntry> ddl;
  // This run has compared its columns with the written ones: those the run began with,
  // and each newer one once.
  bool is_checked = true;
};

struct ReadFacts {
  LsnWindow window;
  std::optional<std::int64_t> after_commit_us;  // Of window.after.
  std::vector<InstanceFacts> instances;         // Oldest first, not empty.
  // What earlier batches knew of the table; the names help to say why a gap is there.
  std::optional<SourceMemory> memory;
  CommitClock clock;
  std::vector<columns::Field> fields;  // What is written.
  bool fields_are_declared = false;    // By option columns.
  SchemaChangePolicy policy = SchemaChangePolicy::kClassify;
  bool fail_on_data_loss = true;
};

// Something about the source that the facts table keeps.
struct SourceEvent {
  enum class Kind : std::uint8_t {
    kSchemaChange,
    kInstanceSwitched,
    kDataSkipped,
  };
  Kind kind = Kind::kSchemaChange;
  std::string capture_instance;
  // Of a schema change the last commit at or below it is meant, else exactly this one.
  Offset at;
  std::string detail;  // As the facts table keeps it.
  // Of kDataSkipped: the times between which changes are lost.
  std::optional<std::int64_t> lost_from_us;
  std::optional<std::int64_t> lost_to_us;

  bool operator==(const SourceEvent&) const = default;
};
// "schema_change", "capture_instance_switched", "data_skipped".
const char* NameOf(SourceEvent::Kind kind);

struct ReadPlan {
  std::vector<ReadPiece> pieces;    // Ascending; none if all of it is skipped.
  std::vector<SourceEvent> events;  // Commit times are not filled in.
  std::vector<std::string> warnings;
};

// Errors, each before anything is read: CaptureHasNotRun while capture has not reached
// the oldest instance; DataLoss (facts capture_instance, position, first_readable,
// cause) unless that is skipped; SchemaChanged for DDL inside the window that the
// written types do not hold (facts changes, ddl), for any under kFail, and for a newer
// instance whose columns are not those written.
Result<ReadPlan> PlanReads(const ReadFacts& facts);

// The loss that is possible when cleanup moved an instance's first LSN to
// `first_readable` while `window` was read. Its times are filled in but for lost_to_us.
SourceEvent PossibleLoss(const std::string& capture_instance, const LsnWindow& window,
                         const Lsn& first_readable,
                         const std::optional<std::int64_t>& after_commit_us);

// Whether what was read from `window` may lack changes: cleanup moves the instance's
// first LSN before it deletes, so looking after the read is enough. Absent: the
// instance is gone.
bool CleanupReached(const LsnWindow& window, const std::optional<Lsn>& instance_min);

}  // namespace mssql_cdc::cdc
