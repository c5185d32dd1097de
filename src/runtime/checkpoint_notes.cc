#include "runtime/checkpoint_notes.h"

#include <utility>

#include "runtime/files.h"

namespace mssql_cdc::runtime {
namespace {

// Reads `path`, if there is such a file, with `parse`.
template <typename T>
Result<std::optional<T>> ReadAs(const std::string& path,
                                Result<T> (*parse)(std::string_view)) {
  TRY_ASSIGN(const std::optional<std::string> content, ReadFileIfThere(path));
  if (!content) return std::optional<T>();
  Result<T> parsed = parse(*content);
  if (!parsed.ok()) return std::move(parsed).error().With("path", path);
  return std::optional<T>(std::move(parsed).value());
}

}  // namespace

Result<std::optional<cdc::SourceMemory>> CheckpointNotes::ReadMemory() const {
  return ReadAs(MemoryPath(), cdc::SourceMemory::Parse);
}

Status CheckpointNotes::WriteMemory(const cdc::SourceMemory& memory) const {
  return ReplaceFile(MemoryPath(), memory.Json());
}

Result<std::optional<pipeline::BatchNote>> CheckpointNotes::ReadNote(
    std::int64_t batch_id) const {
  TRY_ASSIGN(std::optional<pipeline::BatchNote> note,
             ReadAs(NotePath(), pipeline::BatchNote::Parse));
  if (note && note->batch_id != batch_id) note.reset();
  return note;
}

Status CheckpointNotes::WriteNote(const pipeline::BatchNote& note) const {
  return ReplaceFile(NotePath(), note.Json());
}

Status CheckpointNotes::RemoveNote() const { return RemoveFile(NotePath()); }

}  // namespace mssql_cdc::runtime
