// Rows of one version of bronze, with what each says of itself taken apart.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "lake/lake.h"
#include "pipeline/apply_plan.h"
#include "pipeline/latest_images.h"
#include "runtime/silver_config.h"

namespace mssql_cdc::runtime {

// Reads the marks of the rows of a batch, row after row.
class BronzeMarks {
 public:
  // Borrows `batch`, which has bronze's metadata columns; _seqval, _command_id,
  // _snapshot and _chunk may be missing.
  explicit BronzeMarks(const columns::RecordBatch& batch);

  Result<pipeline::RowMark> Mark(std::int64_t row);
  // Requires that Mark was asked for the row.
  Result<pipeline::ChangeOrder> Order(std::int64_t row, const pipeline::RowMark& mark);
  // Of the row; nullopt: NULL.
  std::optional<std::string_view> Instance(std::int64_t row) const;

 private:
  const columns::Column* Find(std::string_view name) const;

  const columns::RecordBatch& batch_;
  const columns::Column* instance_;
  const columns::Column* lsn_;
  const columns::Column* seqval_;
  const columns::Column* operation_;
  const columns::Column* command_id_;
  const columns::Column* snapshot_;
  const columns::Column* chunk_;
};

// Columns of `wanted` that `schema` has.
std::vector<std::string> Present(const columns::Schema& schema,
                                 const std::vector<std::string>& wanted);

// Whether a capture instance is one of those of the table. Remembers the last answer.
class InstanceFilter {
 public:
  explicit InstanceFilter(const std::vector<std::string>& names) : names_(names) {}
  bool IsOurs(std::string_view instance);

 private:
  const std::vector<std::string>& names_;
  std::string last_;
  bool last_is_ours_ = false;
  bool has_last_ = false;
};

// Where the window's rows are read from.
struct BronzeWindow {
  std::string location;
  std::int64_t version = 0;
  columns::Schema schema;
  pipeline::ApplyWindow window;

  // The rows from the window's bound on, in the same order every time.
  Result<std::unique_ptr<columns::BatchReader>> Read(
      lake::Lake& lake, const std::vector<std::string>& columns) const;
};

// Rows of a window chosen by their ordinals, in the columns asked for.
class ChosenRows final : public columns::BatchReader {
 public:
  // `chosen` has one element a row of `rows`; borrowed.
  ChosenRows(std::unique_ptr<columns::BatchReader> rows,
             const std::vector<bool>& chosen)
      : rows_(std::move(rows)), chosen_(chosen) {}

  columns::SchemaPtr schema() const override { return rows_->schema(); }
  Result<std::optional<columns::RecordBatch>> Next() override;

 private:
  std::unique_ptr<columns::BatchReader> rows_;
  const std::vector<bool>& chosen_;
  std::size_t ordinal_ = 0;
};

}  // namespace mssql_cdc::runtime
