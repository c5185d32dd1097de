// Compares rows of silver with rows of the source, key by key, in a bounded memory.
//
// The source's rows are taken in groups: of each row its key and a number a column are
// held. Against every group silver is read once; a bit a row remembers which of its
// rows were met, so that in the end those are known that the source lacks. Nothing here
// needs to know how keys are ordered.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "columns/batch.h"
#include "pipeline/reconcile.h"

namespace mssql_cdc::runtime {

struct Difference {
  std::string key;  // As row_key.h has it.
  pipeline::Finding finding;
};

class RowComparison {
 public:
  // `columns`: what is compared; the keys are among them or not. A group is held until
  // it has about `size_bytes_max` bytes.
  RowComparison(std::vector<std::string> keys, std::vector<std::string> columns,
                std::size_t size_bytes_max)
      : keys_(std::move(keys)),
        columns_(std::move(columns)),
        size_bytes_max_(size_bytes_max) {}

  // Rows with the keys and the columns. True: the group is full, and `rows` may have
  // more. `bounds`: the JSON of the range that the rows are of, for findings.
  using Bounds = std::pair<std::optional<std::string>, std::optional<std::string>>;
  Result<bool> TakeSource(columns::BatchReader& rows, const Bounds& bounds);

  // Silver's rows, as a probe gives them: with _start_lsn, file and row number last.
  // `all_source_taken`: the group is the last one, and the groups together were all
  // that silver should have. Then the group is empty again.
  Status MeetSilver(columns::BatchReader& rows, bool all_source_taken);

  std::int64_t group_count() const { return group_count_; }
  // Whether the group has no row of the source.
  bool is_empty() const { return group_.empty(); }

  // Whether a key is among those that differ.
  bool IsDifferent(std::string_view key) const;
  // Whether a key differs that is not in `moved`.
  bool HasDifferenceBeside(const std::set<std::string>& moved) const;
  // Differences whose key is in `moved` are in flight.
  std::vector<Difference> Differences(const std::set<std::string>& moved) const;

 private:
  struct Held {
    std::uint64_t digest = 0;
    std::size_t first_column = 0;  // In column_digests_.
    std::string key_json;
    std::int32_t bounds = 0;
    bool is_met = false;
  };
  struct Found {
    const char* type;
    std::string key_json;
    std::string detail;
    std::int32_t bounds = -1;
  };

  Status MeetRow(const columns::RecordBatch& batch, std::int64_t row,
                 std::string_view key, std::uint64_t digest, Held& held);
  Status AddSuperfluous(const columns::RecordBatch& batch, std::int64_t row,
                        std::string_view key);
  // Remembers a row of silver; whether it was remembered before.
  bool WasMet(const columns::RecordBatch& batch, std::int64_t row, bool is_met);

  std::vector<std::string> keys_;
  std::vector<std::string> columns_;
  std::size_t size_bytes_max_;
  std::size_t size_bytes_ = 0;  // Of the group.
  std::int64_t group_count_ = 0;
  std::vector<Bounds> bounds_;
  std::unordered_map<std::string, Held> group_;
  std::vector<std::uint32_t> column_digests_;      // Of the group.
  std::map<std::int32_t, std::vector<bool>> met_;  // By file and row.
  std::map<std::string, Found, std::less<>> found_;
};

}  // namespace mssql_cdc::runtime
