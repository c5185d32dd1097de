// One version of a silver table, looked at again and again: its keys, and rows of a
// part of it. Nothing is changed.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "columns/batch.h"
#include "lake/lake.h"
#include "runtime/silver_config.h"

namespace mssql_cdc::runtime {

// Keys from `lo` on and below `hi`; absent: open.
struct OrdinalRange {
  std::optional<std::int64_t> lo;
  std::optional<std::int64_t> hi;
  bool is_null = false;  // Those that are NULL, which lie in no other range.
};

// The rows of `rows` whose only key lies in `range`. Borrows `keys`.
std::unique_ptr<columns::BatchReader> KeepWithin(
    std::unique_ptr<columns::BatchReader> rows, const OrdinalRange& range,
    const std::vector<std::string>& keys);

class PinnedSilver {
 public:
  // The newest version. `source`: columns to compare, of which those count that silver
  // has with the same type. Errors: LakeUnreachable without the table; SilverKeyInvalid
  // for a key that does not count; the lake's.
  static Result<PinnedSilver> Open(lake::Lake& lake, const SilverConfig& config,
                                   std::vector<std::string> keys,
                                   const std::vector<columns::Field>& source);

  std::int64_t version() const { return pinned_->version(); }
  const std::vector<std::string>& compared() const { return compared_; }
  // Columns of the source that silver lacks, or has as another type.
  const std::vector<std::string>& left_out() const { return left_out_; }

  Result<std::int64_t> RowCount() const;
  // The only key of every row, as a number. Returns the number of rows where it is
  // NULL, which are left out.
  Result<std::int64_t> EachNumber(const std::function<void(std::int64_t)>& take) const;
  // Keys, compared columns, _start_lsn, file and row number of all rows.
  Result<std::unique_ptr<columns::BatchReader>> Rows() const;
  // Of those whose only key lies in the range.
  Result<std::unique_ptr<columns::BatchReader>> Rows(const OrdinalRange& range) const;

 private:
  Result<std::unique_ptr<columns::BatchReader>> Probe(
      std::optional<lake::ValueRanges> near) const;

  std::unique_ptr<lake::TableChange> pinned_;
  std::vector<std::string> keys_;
  std::vector<std::string> compared_;
  std::vector<std::string> left_out_;
};

}  // namespace mssql_cdc::runtime
