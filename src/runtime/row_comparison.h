// Compares rows of silver with rows of the source, key by key, holding one number a
// row.

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
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
  // `columns`: what is compared; the keys are among them or not.
  RowComparison(std::vector<std::string> keys, std::vector<std::string> columns)
      : keys_(std::move(keys)), columns_(std::move(columns)) {}

  // Rows with the keys, the columns and _start_lsn. All of silver comes before the
  // source.
  Status TakeSilver(columns::BatchReader& rows);
  Status TakeSource(columns::BatchReader& rows);
  // No more rows: what silver has and the source lacks.
  void Finish();
  // Silver's rows once more, to name the columns of those that differ.
  Status NameColumns(columns::BatchReader& rows);
  bool needs_names() const { return !changed_.empty(); }

  // Differences whose key is in `moved` are in flight.
  std::vector<Difference> Differences(const std::set<std::string>& moved) const;

 private:
  struct Held {
    std::uint64_t digest = 0;
    std::string lsn;
    std::string key_json;
    bool is_met = false;
  };
  struct Changed {
    std::string key_json;
    std::string lsn;
    std::vector<std::uint64_t> digests;  // Of the source's row, by column.
    std::vector<std::string> columns;
  };

  std::vector<std::string> keys_;
  std::vector<std::string> columns_;
  std::unordered_map<std::string, Held> silver_;
  std::unordered_map<std::string, std::string> missing_;  // Key to JSON.
  std::unordered_map<std::string, Held> superfluous_;
  std::unordered_map<std::string, Changed> changed_;
};

}  // namespace mssql_cdc::runtime
