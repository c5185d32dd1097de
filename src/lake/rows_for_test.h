// Rows for tests of lakes: made from a function, shown as text, and one table with
// every kind at its extremes.

#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "columns/batch.h"
#include "lake/lake.h"

namespace mssql_cdc::lake {

// A folder that is removed with the object.
class TestFolder {
 public:
  TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

using MakeValue = std::function<void(std::int64_t row, std::size_t column,
                                     columns::ColumnBuilder& out)>;

// One batch of `row_count` rows, or none without rows.
std::unique_ptr<columns::BatchReader> ReadRows(const columns::Schema& schema,
                                               std::int64_t row_count,
                                               const MakeValue& make);

// Every row as "1|text|NULL"; binary in hex, decimals as unscaled numbers. An error is
// a row of its own.
std::vector<std::string> TextOf(columns::BatchReader& reader);

// The rows of a table as TextOf shows them, sorted by nothing.
std::vector<std::string> RowsOf(Lake& lake, const std::string& location,
                                const ReadSpec& spec);

// A column of every kind (decimals of several widths), and four rows: smallest values,
// largest values, ordinary values, NULL. Years 0001 and 9999 for dates and timestamps.
columns::Schema EveryKindSchema();
std::unique_ptr<columns::BatchReader> EveryKindRows();

}  // namespace mssql_cdc::lake
