#include "runtime/control_updates.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cdc/cells.h"
#include "columns/take.h"

namespace mssql_cdc::runtime {
namespace {

constexpr std::int64_t kRetryMsMax = 60'000;
constexpr std::int64_t kPauseFirstMs = 500;
constexpr std::int64_t kPauseMaxMs = 10'000;
// Every update looks into every file.
constexpr std::size_t kFileCountMax = 16;

}  // namespace

// One try: what the table holds, what becomes of it, and the commit.
class ControlUpdates::Commit {
 public:
  Commit(const Place& place, std::span<Request* const> group)
      : place_(place), group_(group) {}

  // False if another writer was faster.
  Result<bool> Try() {
    TRY_ASSIGN(const std::optional<lake::TableState> state,
               place_.lake.State(place_.location));
    if (!state) return Error(ErrorId::kLakeUnreachable).With("table", place_.location);
    schema_ = std::make_shared<columns::Schema>();
    schema_->fields = state->schema.fields;
    TRY_ASSIGN(begun_, place_.lake.Change(place_.location,
                                          {lake::ChangeKind::kMerge, schema_->fields}));
    // With columns of before, a column added in between would lose its values.
    if (begun_->version() != state->version) return false;
    TRY(Load());
    bool has_changed = false;
    for (Request* request : group_) {
      Row& row = rows_[request->table_name];
      if (std::optional<pipeline::ControlRow> changed = request->change(row.now)) {
        row.now = *std::move(changed);
        row.is_changed = has_changed = true;
      }
      request->row = row.now;
    }
    if (!has_changed) return true;
    TRY(Replace());
    const Result<lake::ChangeResult> done = begun_->Commit(std::nullopt);
    if (done.ok()) return true;
    if (done.error().id() == ErrorId::kLakeConflict) return false;
    return done.error();
  }

 private:
  struct Spot {
    std::size_t batch = 0;
    std::int64_t row = 0;
  };
  struct Row {
    std::optional<Spot> old;
    pipeline::ControlRow now;
    bool is_changed = false;
  };

  // The table's rows, and those that are asked for by name.
  Status Load() {
    for (const Request* request : group_) {
      rows_[request->table_name].now.table_name = request->table_name;
    }
    lake::ProbeSpec probe;
    for (const columns::Field& field : schema_->fields) {
      probe.columns.push_back(field.name);
    }
    TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> read, begun_->Probe(probe));
    while (true) {
      TRY_ASSIGN(std::optional<columns::RecordBatch> batch, read->Next());
      if (!batch) return Unit{};
      batches_.push_back(*std::move(batch));
      for (std::int64_t i = 0; i < batches_.back().row_count; ++i) TRY(Know(i));
    }
  }

  Status Know(std::int64_t row) {
    const columns::RecordBatch& batch = batches_.back();
    TRY_ASSIGN(const std::optional<std::string> name,
               cdc::RowView(batch, row).Text("table_name"));
    const auto wanted = name ? rows_.find(*name) : rows_.end();
    if (wanted == rows_.end() || wanted->second.old) return Unit{};
    wanted->second.old = Spot{batches_.size() - 1, row};
    TRY_ASSIGN(wanted->second.now, pipeline::ParseControlRow(batch, row));
    return Unit{};
  }

  // Changed rows give way to what they become; of too many files, all rows move.
  Status Replace() {
    std::vector<columns::RecordBatch> added;
    std::vector<std::vector<std::int64_t>> gone(batches_.size());
    for (const auto& [name, row] : rows_) {
      if (!row.is_changed) continue;
      if (row.old) gone[row.old->batch].push_back(row.old->row);
      added.push_back(Arranged(row));
    }
    const bool moves_all = begun_->files().size() > kFileCountMax;
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      std::vector<std::int64_t> kept;
      for (std::int64_t row = 0; moves_all && row < batches_[i].row_count; ++row) {
        if (std::ranges::find(gone[i], row) == gone[i].end()) kept.push_back(row);
      }
      if (!kept.empty()) added.push_back(Taken(batches_[i], kept));
      gone[i].insert(gone[i].end(), kept.begin(), kept.end());
      TRY(Remove(batches_[i], gone[i]));
    }
    std::vector<std::unique_ptr<columns::BatchReader>> sources;
    sources.push_back(columns::ReadBatches(schema_, std::move(added)));
    return begun_->Add(std::move(sources));
  }

  Status Remove(const columns::RecordBatch& batch,
                const std::vector<std::int64_t>& rows) {
    std::map<std::int32_t, std::vector<std::int64_t>> numbers;
    for (const std::int64_t row : rows) {
      const cdc::RowView place(batch, row);
      TRY_ASSIGN(const std::optional<std::int64_t> file,
                 place.Integer(lake::kFileColumn));
      TRY_ASSIGN(const std::optional<std::int64_t> number,
                 place.Integer(lake::kRowColumn));
      numbers[static_cast<std::int32_t>(file.value_or(0))].push_back(
          number.value_or(0));
    }
    for (const auto& [file, removed] : numbers) TRY(begun_->Remove(file, removed));
    return Unit{};
  }

  // A row in the table's columns; those that this release does not know keep their
  // value.
  columns::RecordBatch Arranged(const Row& row) const {
    const columns::RecordBatch known = pipeline::ControlBatch(row.now);
    columns::RecordBatch batch{schema_, 1, {}};
    for (std::size_t i = 0; i < schema_->fields.size(); ++i) {
      const columns::Field& field = schema_->fields[i];
      const Result<std::size_t> index = cdc::ColumnIndex(*known.schema, field.name);
      if (index.ok()) {
        batch.columns.push_back(known.columns[index.value()]);
      } else if (row.old) {
        const std::int64_t rows[] = {row.old->row};
        batch.columns.push_back(std::make_shared<const columns::Column>(
            columns::Take(*batches_[row.old->batch].columns[i], rows)));
      } else {
        batch.columns.push_back(std::make_shared<const columns::Column>(
            columns::NullColumn(field.type, 1)));
      }
    }
    return batch;
  }

  // Without the places, which are the last two columns.
  columns::RecordBatch Taken(const columns::RecordBatch& from,
                             const std::vector<std::int64_t>& rows) const {
    columns::RecordBatch batch{schema_, static_cast<std::int64_t>(rows.size()), {}};
    for (std::size_t i = 0; i < schema_->fields.size(); ++i) {
      batch.columns.push_back(std::make_shared<const columns::Column>(
          columns::Take(*from.columns[i], rows)));
    }
    return batch;
  }

  const ControlUpdates::Place& place_;
  std::span<Request* const> group_;
  std::shared_ptr<columns::Schema> schema_;
  std::unique_ptr<lake::TableChange> begun_;
  std::vector<columns::RecordBatch> batches_;
  std::map<std::string, Row> rows_;
};

Status ControlUpdates::CommitAll(const Place& place, std::span<Request* const> group) {
  const std::int64_t begin_ns = place.clock.MonotonicNs();
  std::int64_t pause_ms = kPauseFirstMs;
  while (true) {
    TRY_ASSIGN(const bool is_done, Commit(place, group).Try());
    if (is_done) return Unit{};
    const std::int64_t left_ms =
        kRetryMsMax - (place.clock.MonotonicNs() - begin_ns) / 1'000'000;
    if (left_ms <= 0)
      return Error(ErrorId::kLakeConflict).With("table", place.location);
    place.clock.SleepMs(std::min(
        left_ms, static_cast<std::int64_t>(
                     place.dice.Below(static_cast<std::uint64_t>(pause_ms) + 1))));
    pause_ms = std::min(pause_ms * 2, kPauseMaxMs);
  }
}

Result<pipeline::ControlRow> ControlUpdates::Update(const Place& place,
                                                    const std::string& table_name,
                                                    const Change& change) {
  Request mine{table_name, change, {}, {}};
  std::unique_lock lock(mutex_);
  Queue& queue = queues_[place.location];
  queue.waiting.push_back(&mine);
  changed_.wait(lock, [&] { return mine.done || !queue.is_busy; });
  if (!mine.done) {
    queue.is_busy = true;
    const std::vector<Request*> group = std::exchange(queue.waiting, {});
    lock.unlock();
    const Status done = CommitAll(place, group);
    lock.lock();
    for (Request* request : group) request->done = done;
    queue.is_busy = false;
    changed_.notify_all();
  }
  if (!mine.done->ok()) return mine.done->error();
  return std::move(mine.row);
}

std::int64_t ControlUpdates::waiting_count(const std::string& location) const {
  const std::lock_guard lock(mutex_);
  const auto queue = queues_.find(location);
  return queue == queues_.end()
             ? 0
             : static_cast<std::int64_t>(queue->second.waiting.size());
}

}  // namespace mssql_cdc::runtime
