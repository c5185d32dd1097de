// Carries out one merge of a window of bronze into silver.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "lake/lake.h"
#include "pipeline/apply_chunks.h"
#include "pipeline/latest_images.h"
#include "runtime/bronze_rows.h"
#include "runtime/silver_config.h"

namespace mssql_cdc::runtime {

class SilverMerge {
 public:
  // Borrows all. `captured`: the columns of bronze that silver has.
  SilverMerge(lake::Lake& lake, const SilverConfig& config, const BronzeWindow& window,
              const std::vector<columns::Field>& captured);

  // Reads the window's marks and keys: top(), window_row_count(). Errors:
  // RowsOfAnotherInstance.
  Status Look();

  // The largest LSN of the window's changes.
  const std::optional<cdc::Lsn>& top() const { return top_; }
  std::int64_t window_row_count() const { return window_row_count_; }

  // Requires Look, and that silver exists with all its columns. `version`: silver's
  // before the window was chosen; absent: there was no table. Commits also what changes
  // no row, for it says that the window was looked at. Errors: LakeConflict when silver
  // has another version by now.
  Result<lake::ChangeResult> Merge(const std::optional<std::int64_t>& version);

 private:
  // Keeps the images of one part of the keys. False: they are too many, there are more
  // parts now.
  Result<bool> ReadPart(std::uint64_t part);
  Status TakeRows(const columns::RecordBatch& batch, std::uint64_t part,
                  std::int64_t first_ordinal);
  Status ProbePart(lake::TableChange& change, std::uint64_t part);
  Status MeetRows(const columns::RecordBatch& batch, std::uint64_t part,
                  lake::TableChange& change);
  std::optional<lake::ValueRanges> NearKeys() const;
  void Choose();
  Status AddChosen(lake::TableChange& change);
  bool IsInPart(std::uint64_t hash, std::uint64_t part) const {
    return (hash >> 40) % part_count_ == part;
  }

  lake::Lake& lake_;
  const SilverConfig& config_;
  const BronzeWindow& window_;
  const std::vector<columns::Field>& captured_;
  std::vector<columns::Field> key_fields_;
  pipeline::ChunkRanges chunk_ranges_;
  InstanceFilter filter_;
  std::uint64_t part_count_ = 1;
  pipeline::LatestImages images_;  // Of the part at hand.
  std::vector<bool> chosen_;       // By ordinal: rows that silver gets.
  std::optional<cdc::Lsn> top_;
  std::int64_t window_row_count_ = 0;
};

}  // namespace mssql_cdc::runtime
