#include "runtime/pinned_silver.h"

#include <algorithm>

#include "base/case_fold.h"
#include "columns/take.h"
#include "pipeline/row_key.h"

namespace mssql_cdc::runtime {
namespace {

class Within final : public columns::BatchReader {
 public:
  Within(std::unique_ptr<columns::BatchReader> rows, const OrdinalRange& range,
         const std::vector<std::string>& keys)
      : rows_(std::move(rows)), range_(range), keys_(keys) {}

  columns::SchemaPtr schema() const override { return rows_->schema(); }

  Result<std::optional<columns::RecordBatch>> Next() override {
    while (true) {
      TRY_ASSIGN(std::optional<columns::RecordBatch> batch, rows_->Next());
      if (!batch) return batch;
      TRY_ASSIGN(const pipeline::RowKeys keys, pipeline::RowKeys::Of(*batch, keys_));
      std::vector<std::int64_t> inside;
      for (std::int64_t i = 0; i < batch->row_count; ++i) {
        const auto key = keys.Number(i);
        const bool is_inside = range_.is_null
                                   ? !key
                                   : key && (!range_.lo || *key >= *range_.lo) &&
                                         (!range_.hi || *key < *range_.hi);
        if (is_inside) inside.push_back(i);
      }
      if (inside.empty()) continue;
      columns::RecordBatch kept{
          batch->schema, static_cast<std::int64_t>(inside.size()), {}};
      for (const auto& column : batch->columns) {
        kept.columns.push_back(
            std::make_shared<const columns::Column>(columns::Take(*column, inside)));
      }
      return std::optional<columns::RecordBatch>(std::move(kept));
    }
  }

 private:
  std::unique_ptr<columns::BatchReader> rows_;
  OrdinalRange range_;
  const std::vector<std::string>& keys_;
};

}  // namespace

std::unique_ptr<columns::BatchReader> KeepWithin(
    std::unique_ptr<columns::BatchReader> rows, const OrdinalRange& range,
    const std::vector<std::string>& keys) {
  return std::make_unique<Within>(std::move(rows), range, keys);
}

Result<PinnedSilver> PinnedSilver::Open(lake::Lake& lake, const SilverConfig& config,
                                        std::vector<std::string> keys,
                                        const std::vector<columns::Field>& source) {
  TRY_ASSIGN(const std::optional<lake::TableState> state,
             lake.State(config.target_location));
  if (!state) return Error(ErrorId::kLakeUnreachable).With("table", config.target);
  PinnedSilver silver;
  silver.keys_ = std::move(keys);
  TRY_ASSIGN(silver.pinned_,
             lake.Change(config.target_location, {lake::ChangeKind::kMerge, {}}));
  for (const columns::Field& field : source) {
    const bool is_compared =
        std::ranges::any_of(state->schema.fields, [&](const columns::Field& other) {
          return EqualsIgnoringCase(other.name, field.name) && other.type == field.type;
        });
    (is_compared ? silver.compared_ : silver.left_out_).push_back(field.name);
    const bool is_key = std::ranges::any_of(silver.keys_, [&](const std::string& key) {
      return EqualsIgnoringCase(key, field.name);
    });
    // No key of one type would be equal to one of another.
    if (is_key && !is_compared) {
      return Error(ErrorId::kSilverKeyInvalid)
          .With("column", field.name)
          .With("reason", "silver lacks it, or has it as another type");
    }
  }
  return silver;
}

Result<std::int64_t> PinnedSilver::RowCount() const {
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows, pinned_->Probe({keys_}));
  std::int64_t count = 0;
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) return count;
    count += batch->row_count;
  }
}

Result<std::int64_t> PinnedSilver::EachNumber(
    const std::function<void(std::int64_t)>& take) const {
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows, pinned_->Probe({keys_}));
  std::int64_t null_count = 0;
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) return null_count;
    TRY_ASSIGN(const pipeline::RowKeys keys, pipeline::RowKeys::Of(*batch, keys_));
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      if (const auto key = keys.Number(i)) {
        take(*key);
      } else {
        ++null_count;
      }
    }
  }
}

Result<std::unique_ptr<columns::BatchReader>> PinnedSilver::Rows() const {
  return Probe(std::nullopt);
}

Result<std::unique_ptr<columns::BatchReader>> PinnedSilver::Rows(
    const OrdinalRange& range) const {
  std::optional<lake::ValueRanges> near;
  if (range.lo && range.hi) {
    near = lake::ValueRanges{keys_[0], {{*range.lo, *range.hi - 1}}, {}};
  }
  // A probe gives whole row groups.
  TRY_ASSIGN(std::unique_ptr<columns::BatchReader> rows, Probe(std::move(near)));
  return KeepWithin(std::move(rows), range, keys_);
}

Result<std::unique_ptr<columns::BatchReader>> PinnedSilver::Probe(
    std::optional<lake::ValueRanges> near) const {
  lake::ProbeSpec spec;
  spec.columns = keys_;
  for (const std::string& name : compared_) {
    const bool is_key = std::find(keys_.begin(), keys_.end(), name) != keys_.end();
    if (!is_key) spec.columns.push_back(name);
  }
  spec.columns.emplace_back("_start_lsn");
  spec.near = std::move(near);
  return pinned_->Probe(spec);
}

}  // namespace mssql_cdc::runtime
