// What a table of the fake answers of its own rows: its columns, its keys, a snapshot.
// It is cut on integers alone; other columns are no key that bounds are known of.

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "columns/schema.h"
#include "fake/answer_table.h"
#include "fake/fake_files.h"
#include "sqlserver/question.h"

namespace mssql_cdc::fake {

// As SQL Server says of an object that is not there.
Error Gone(const std::string& name);

// The newest instance's type of each column of a table, in the order they came.
Result<std::vector<columns::Field>> FieldsOf(const Files& files,
                                             const std::string& table);

// The value of `column` in a row, by the exact name or ignoring case; null if absent.
const nlohmann::json& ValueOf(const nlohmann::json& row, const std::string& column);

class TableAnswers {
 public:
  // Borrows `files`.
  TableAnswers(const Files& files, std::int64_t row_count_max)
      : files_(files), row_count_max_(row_count_max) {}

  using Sets = std::vector<ResultSet>;
  using Question = sqlserver::Question;
  Result<Sets> operator()(const Question::ColumnDetails& asked) const;
  Result<Sets> operator()(const Question::KeyExtent& asked) const;
  Result<Sets> operator()(const Question::SpaceUsed& asked) const;
  Result<Sets> operator()(const Question::LastKey& asked) const;
  Result<Sets> operator()(const Question::SeekKey& asked) const;
  Result<Sets> operator()(const Question::SeekAbove& asked) const;
  Result<Sets> operator()(const sqlserver::SliceQuestion& asked) const;
  Result<Sets> operator()(const sqlserver::SnapshotQuestion& asked) const;
  Result<Sets> operator()(const sqlserver::ChunkQuestion& asked) const;

 private:
  using Rows = std::vector<nlohmann::json>;
  Result<Sets> Read(const std::string& table,
                    const std::vector<sqlserver::SelectedColumn>& columns,
                    const Rows& rows) const;

  const Files& files_;
  std::int64_t row_count_max_;
};

}  // namespace mssql_cdc::fake
