// What the program keeps beside a checkpoint for itself; a checkpoint without it is
// whole.
//
//   _mssql_cdc_source.json   the database, table and instances that were read last
//   _mssql_cdc_batch.json    events and warnings of the batch in hand, until it is done

#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "cdc/source_memory.h"
#include "pipeline/source_events.h"

namespace mssql_cdc::runtime {

class CheckpointNotes {
 public:
  // Of the live generation's directory.
  explicit CheckpointNotes(std::string directory) : directory_(std::move(directory)) {}

  // Errors: CheckpointUnreadable (fact path), FileFailed.
  Result<std::optional<cdc::SourceMemory>> ReadMemory() const;
  Status WriteMemory(const cdc::SourceMemory& memory) const;

  // The note of batch `batch_id`; another's is none. Errors: as ReadMemory.
  Result<std::optional<pipeline::BatchNote>> ReadNote(std::int64_t batch_id) const;
  // Durable when it returns.
  Status WriteNote(const pipeline::BatchNote& note) const;
  Status RemoveNote() const;

 private:
  std::string MemoryPath() const { return directory_ + "/_mssql_cdc_source.json"; }
  std::string NotePath() const { return directory_ + "/_mssql_cdc_batch.json"; }

  std::string directory_;
};

}  // namespace mssql_cdc::runtime
