#include "runtime/checkpoint.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"

namespace mssql_cdc::runtime {
namespace {

using Json = nlohmann::ordered_json;

// Spark keeps so many batches (spark.sql.streaming.minBatchesToRetain).
constexpr std::int64_t kRetainedBatchCount = 100;

constexpr std::string_view kCommitFile = "v1\n{\"nextBatchWatermarkMs\":0}";

Error Unreadable(const std::string& path, std::string reason) {
  return Error(ErrorId::kCheckpointUnreadable)
      .With("path", path)
      .With("reason", std::move(reason));
}

std::string NumberedPath(const std::string& directory, const char* log,
                         std::int64_t number) {
  return directory + "/" + log + "/" + std::to_string(number);
}

// The lines after "v1" of a log file.
Result<std::vector<std::string>> LogLines(const std::string& path,
                                          const std::string& content) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin <= content.size()) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    lines.push_back(content.substr(begin, end - begin));
    begin = end + 1;
  }
  if (lines[0] != "v1") {
    return Unreadable(path, "its version is not v1 but " + lines[0].substr(0, 40));
  }
  lines.erase(lines.begin());
  return lines;
}

struct OffsetsContent {
  cdc::Offset end;
  std::string conf;
};

Result<OffsetsContent> ReadOffsets(const std::string& path) {
  TRY_ASSIGN(const std::optional<std::string> content, ReadFileIfThere(path));
  if (!content) return Unreadable(path, "it is missing");
  TRY_ASSIGN(const std::vector<std::string> lines, LogLines(path, *content));
  if (lines.size() < 2) return Unreadable(path, "it has no offset");
  const Json metadata = Json::parse(lines[0], nullptr, false);
  if (!metadata.is_object()) return Unreadable(path, "its metadata is no JSON object");
  OffsetsContent result;
  if (const auto conf = metadata.find("conf");
      conf != metadata.end() && conf->is_object()) {
    result.conf = conf->dump();
  }
  const Result<cdc::Offset> end = cdc::Offset::Parse(lines[1]);
  if (!end.ok())
    return Unreadable(path, std::string(end.error().Fact("reason").value_or("")));
  result.end = end.value();
  return result;
}

// Generation and its start, from the state file; generation 0 without one.
Status ReadGeneration(const std::string& checkpoint, CheckpointState& state) {
  const std::string path = checkpoint + "/_mssql_cdc_generation.json";
  TRY_ASSIGN(const std::optional<std::string> content, ReadFileIfThere(path));
  if (!content) return Unit{};
  Result<pipeline::GenerationState> parsed = pipeline::GenerationState::Parse(*content);
  if (!parsed.ok()) {
    return Unreadable(path, std::string(parsed.error().Fact("reason").value_or("")));
  }
  state.generation_state = std::move(parsed).value();
  state.generation = state.generation_state.generation;
  if (state.generation == 0) return Unit{};
  state.directory = checkpoint + "/_generations/" + std::to_string(state.generation);
  state.initial = state.generation_state.start;
  return Unit{};
}

}  // namespace

Result<CheckpointState> ReadCheckpoint(const std::string& checkpoint) {
  CheckpointState state;
  state.directory = checkpoint;
  TRY(ReadGeneration(checkpoint, state));
  const std::string& directory = state.directory;
  if (state.generation == 0) {
    const std::string path = directory + "/_mssql_cdc_initial_offset.json";
    TRY_ASSIGN(const std::optional<std::string> content, ReadFileIfThere(path));
    if (content) {
      const Result<cdc::Offset> initial = cdc::Offset::Parse(*content);
      if (!initial.ok()) return Unreadable(path, "it holds no offset");
      state.initial = initial.value();
    }
  }

  TRY_ASSIGN(const std::vector<std::int64_t> offsets,
             NumberedFiles(directory + "/offsets"));
  TRY_ASSIGN(const std::vector<std::int64_t> commits,
             NumberedFiles(directory + "/commits"));
  if (!commits.empty()) {
    state.committed_batch_id = commits.back();
    TRY_ASSIGN(OffsetsContent content,
               ReadOffsets(NumberedPath(directory, "offsets", commits.back())));
    state.committed = content.end;
    state.conf = std::move(content.conf);
    const std::string path = NumberedPath(directory, "commits", commits.back());
    TRY_ASSIGN(const std::optional<std::string> commit, ReadFileIfThere(path));
    TRY_ASSIGN(const std::vector<std::string> lines,
               LogLines(path, commit.value_or("")));
  }
  if (offsets.empty() || offsets.back() < state.next_batch_id()) return state;
  const std::string path = NumberedPath(directory, "offsets", offsets.back());
  if (offsets.back() != state.next_batch_id()) {
    return Unreadable(path, "the batch before it was never done");
  }
  TRY_ASSIGN(OffsetsContent content, ReadOffsets(path));
  state.pending = content.end;
  state.conf = std::move(content.conf);
  return state;
}

Result<Checkpoint> Checkpoint::Open(const std::string& checkpoint) {
  TRY(MakeDirectories(checkpoint));
  TRY_ASSIGN(FileLock lock, FileLock::Take(checkpoint + "/_mssql_cdc_lock"));
  TRY_ASSIGN(CheckpointState state, ReadCheckpoint(checkpoint));
  Checkpoint opened(checkpoint, std::move(lock), std::move(state));
  TRY(opened.MakeFolders());
  return opened;
}

Status Checkpoint::MakeFolders() const {
  TRY(MakeDirectories(state_.directory + "/offsets"));
  TRY(MakeDirectories(state_.directory + "/commits"));
  const std::string metadata = state_.directory + "/metadata";
  TRY_ASSIGN(const std::optional<std::string> known, ReadFileIfThere(metadata));
  if (known) return Unit{};
  return ReplaceFile(metadata, "{\"id\":\"" + NewUuid() + "\"}");
}

Status Checkpoint::SetGeneration(const pipeline::GenerationState& state) {
  TRY(ReplaceFile(checkpoint_ + "/_mssql_cdc_generation.json", state.Json()));
  TRY_ASSIGN(state_, ReadCheckpoint(checkpoint_));
  return MakeFolders();
}

Status Checkpoint::SetInitial(const cdc::Offset& initial) {
  CHECK(!state_.initial && state_.generation == 0);
  TRY(ReplaceFile(state_.directory + "/_mssql_cdc_initial_offset.json",
                  initial.Json()));
  state_.initial = initial;
  return Unit{};
}

Status Checkpoint::Begin(const cdc::Offset& end, std::int64_t now_utc_ms) {
  CHECK(!state_.pending);
  const std::string path =
      NumberedPath(state_.directory, "offsets", state_.next_batch_id());
  TRY_ASSIGN(const bool created,
             CreateFileExclusively(path, OffsetsFile(state_.conf, end, now_utc_ms)));
  if (!created) {
    return Error(ErrorId::kCheckpointInUse)
        .With("path", path)
        .With("reason", "somebody else began this batch");
  }
  state_.pending = end;
  return Unit{};
}

Status Checkpoint::Commit() {
  CHECK(state_.pending);
  const std::int64_t batch_id = state_.next_batch_id();
  const std::string path = NumberedPath(state_.directory, "commits", batch_id);
  TRY_ASSIGN(const bool created, CreateFileExclusively(path, kCommitFile));
  if (!created) {
    return Error(ErrorId::kCheckpointInUse)
        .With("path", path)
        .With("reason", "somebody else ended this batch");
  }
  state_.committed = std::exchange(state_.pending, std::nullopt);
  state_.committed_batch_id = batch_id;
  const std::int64_t old = batch_id - kRetainedBatchCount;
  if (old < 0) return Unit{};
  for (const char* log : {"offsets", "commits"}) {
    TRY(RemoveFile(NumberedPath(state_.directory, log, old)));
    // The checksum beside it, if Spark wrote the file.
    TRY(RemoveFile(state_.directory + "/" + log + "/." + std::to_string(old) + ".crc"));
  }
  return Unit{};
}

Status Checkpoint::Reload() {
  TRY_ASSIGN(CheckpointState state, ReadCheckpoint(checkpoint_));
  const bool lost_position = state_.position() && !state.position();
  if (lost_position || state.committed_batch_id < state_.committed_batch_id) {
    return Error(ErrorId::kCheckpointRewound)
        .With("checkpoint", checkpoint_)
        .With("batch", std::to_string(state_.committed_batch_id.value_or(0)))
        .With("cause", "its files went away while the stream ran");
  }
  state_ = std::move(state);
  return Unit{};
}

std::string OffsetsFile(const std::string& conf, const cdc::Offset& end,
                        std::int64_t now_utc_ms) {
  Json metadata;
  metadata["batchWatermarkMs"] = 0;
  metadata["batchTimestampMs"] = now_utc_ms;
  Json settings = Json::parse(conf, nullptr, false);
  if (!settings.is_object()) settings = Json::object();
  if (!settings.contains("spark.sql.shuffle.partitions")) {
    settings["spark.sql.shuffle.partitions"] = "200";
  }
  metadata["conf"] = std::move(settings);
  return "v1\n" + metadata.dump() + "\n" + end.Json();
}

}  // namespace mssql_cdc::runtime
