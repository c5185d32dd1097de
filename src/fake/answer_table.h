// A result set under construction, in the types that SQL Server would have sent.

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "columns/batch.h"
#include "columns/schema.h"

namespace mssql_cdc::fake {

struct ResultSet {
  columns::SchemaPtr schema;
  std::vector<columns::RecordBatch> batches;  // None empty of rows.
};

// A column of the product's own, which may be NULL.
inline columns::Field Own(std::string name, columns::Kind kind) {
  return {std::move(name), {kind}, true, ""};
}

class AnswerTable {
 public:
  // `own` are filled with typed cells; `values`, behind them, with values of the fake's
  // rows. Batches have up to `row_count_max` rows.
  explicit AnswerTable(std::vector<columns::Field> own,
                       std::vector<columns::Field> values = {},
                       std::int64_t row_count_max = 10'000);

  // The next cell of the current row; behind the last one the next row begins. The
  // column's kind must be the cell's.
  AnswerTable& Null();
  AnswerTable& Text(std::string_view text);
  AnswerTable& LsnOf(const cdc::Lsn& lsn);  // kBinary.
  AnswerTable& Int(std::int32_t number);
  AnswerTable& Long(std::int64_t number);  // kInt64, kTimestampNtz.
  AnswerTable& Bool(bool value);
  // A cell of `values`, of any kind: what Arrow's safe cast makes of the value's text.
  AnswerTable& Value(const nlohmann::json& value);

  // Errors: FileRefused (facts column, type) for a value that its type does not hold.
  Result<ResultSet> Build();

 private:
  columns::ColumnBuilder& Next();
  void EndCell();
  void EndBatch();

  std::size_t own_count_;
  std::int64_t row_count_max_;
  columns::SchemaPtr schema_;
  std::vector<columns::ColumnBuilder> builders_;  // Of values: texts, cast at the end.
  std::size_t next_ = 0;
  std::vector<columns::RecordBatch> batches_;
  std::optional<Error> failure_;
};

}  // namespace mssql_cdc::fake
