// The rows of a copy of the source table as rows of a snapshot: its columns found by
// name, everything else made.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cdc/offset.h"
#include "columns/batch.h"

namespace mssql_cdc::reader {

struct CopyPlan {
  std::string capture_instance;
  cdc::Offset stamp;
  bool command_id = true;  // Whether the shape has the (NULL) column.
  // In the target's order, each with the type it is read in.
  std::vector<columns::Field> fields;
  // Where the copy has each of them; absent: NULL.
  std::vector<std::optional<std::size_t>> places;
};

// Which of the copy's columns are `fields`, by name ignoring case, and in which types
// they are read.
CopyPlan PlanCopy(const columns::Schema& copy,
                  const std::vector<columns::Field>& fields);

class CopyReader final : public columns::BatchReader {
 public:
  CopyReader(std::unique_ptr<columns::BatchReader> copy, CopyPlan plan);

  columns::SchemaPtr schema() const override { return schema_; }
  Result<std::optional<columns::RecordBatch>> Next() override;

 private:
  std::unique_ptr<columns::BatchReader> copy_;
  CopyPlan plan_;
  columns::SchemaPtr schema_;
};

}  // namespace mssql_cdc::reader
