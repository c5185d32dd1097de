#include "runtime/optimize.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "columns/take.h"

namespace mssql_cdc::runtime {
namespace {

constexpr int kAttemptCount = 10;

// Takes the places off a probe's batches and removes the rows they name.
class MovedRows final : public columns::BatchReader {
 public:
  MovedRows(std::unique_ptr<columns::BatchReader> rows, lake::TableChange& change)
      : rows_(std::move(rows)), change_(change) {
    auto schema = std::make_shared<columns::Schema>(*rows_->schema());
    schema->fields.resize(schema->fields.size() - 2);
    schema_ = std::move(schema);
  }

  columns::SchemaPtr schema() const override { return schema_; }

  Result<std::optional<columns::RecordBatch>> Next() override {
    TRY_ASSIGN(std::optional<columns::RecordBatch> batch, rows_->Next());
    if (!batch) return batch;
    const columns::Column& files = *batch->columns[batch->columns.size() - 2];
    const columns::Column& numbers = *batch->columns.back();
    std::map<std::int32_t, std::vector<std::int64_t>> rows;
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      rows[columns::FixedValue<std::int32_t>(files, i)].push_back(
          columns::FixedValue<std::int64_t>(numbers, i));
    }
    for (const auto& [file, of_file] : rows) TRY(change_.Remove(file, of_file));
    batch->columns.resize(batch->columns.size() - 2);
    batch->schema = schema_;
    return batch;
  }

 private:
  std::unique_ptr<columns::BatchReader> rows_;
  lake::TableChange& change_;
  columns::SchemaPtr schema_;
};

// What merging lessens: files, and rows that are gone.
std::int64_t ExcessOf(const std::vector<lake::DataFile>& files) {
  auto excess = static_cast<std::int64_t>(files.size());
  for (const lake::DataFile& file : files) excess += file.removed_count;
  return excess;
}

// The first files of a group: the more often another writer was faster, the fewer. Two
// are merged, one is rewritten.
std::vector<std::int32_t> TakeSome(std::vector<std::int32_t> group, int lost_count) {
  const std::size_t least = group.size() > 1 ? 2 : 1;
  group.resize(std::max(least, group.size() >> lost_count));
  return group;
}

std::vector<pipeline::FileFacts> FactsOf(const std::vector<lake::DataFile>& files) {
  std::vector<pipeline::FileFacts> facts;
  for (const lake::DataFile& file : files) {
    facts.push_back({file.row_count, file.removed_count, file.size_bytes});
  }
  return facts;
}

}  // namespace

Result<OptimizeOutcome> Optimize(lake::Lake& lake, const std::string& location,
                                 const pipeline::CompactionLimits& limits) {
  OptimizeOutcome outcome;
  bool is_first = true;
  int lost_count = 0;
  std::optional<std::int64_t> excess_before;
  while (true) {
    TRY_ASSIGN(const std::optional<lake::TableState> state, lake.State(location));
    if (!state) return Error(ErrorId::kLakeUnreachable).With("table", location);
    TRY_ASSIGN(
        const std::unique_ptr<lake::TableChange> change,
        lake.Change(location, {lake::ChangeKind::kOptimize, state->schema.fields}));
    // With columns of before, rows appended in between would lose the new ones.
    if (change->version() != state->version) {
      if (++lost_count == kAttemptCount) {
        return Error(ErrorId::kLakeConflict).With("table", location);
      }
      continue;
    }
    const auto file_count = static_cast<std::int64_t>(change->files().size());
    if (std::exchange(is_first, false)) outcome.file_count_before = file_count;
    outcome.file_count_after = file_count;
    const std::vector<std::vector<std::int32_t>> groups =
        pipeline::PlanCompaction(FactsOf(change->files()), limits);
    // A lake that keeps what it is given as it is gets no further.
    const std::int64_t excess = ExcessOf(change->files());
    const bool helped = !excess_before || excess < *excess_before;
    if (groups.empty() || !helped) return outcome;
    lake::ProbeSpec spec;
    for (const columns::Field& field : state->schema.fields) {
      spec.columns.push_back(field.name);
    }
    spec.files = TakeSome(groups.front(), lost_count);
    TRY_ASSIGN(std::unique_ptr<columns::BatchReader> rows, change->Probe(spec));
    std::vector<std::unique_ptr<columns::BatchReader>> sources;
    sources.push_back(std::make_unique<MovedRows>(std::move(rows), *change));
    TRY(change->Add(std::move(sources)));
    const Result<lake::ChangeResult> done = change->Commit(std::nullopt);
    if (done.ok()) {
      excess_before = excess;
      lost_count = std::max(0, lost_count - 1);
      ++outcome.commit_count;
      outcome.row_count += done.value().added_count;
      outcome.size_bytes += done.value().size_bytes;
    } else if (done.error().id() != ErrorId::kLakeConflict ||
               ++lost_count == kAttemptCount) {
      return done.error();
    }
  }
}

}  // namespace mssql_cdc::runtime
