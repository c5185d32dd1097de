// The batches of another reader, captured columns in the names and types that option
// columns asks for.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "columns/batch.h"

namespace mssql_cdc::reader {

class CastReader final : public columns::BatchReader {
 public:
  // `inner` gives rows in the target's shape (cdc::OutputSchema), its captured columns
  // being as many as `written`. Requires a cast for each pair of types that differ
  // (columns::CastFitOf).
  CastReader(std::unique_ptr<columns::BatchReader> inner, std::string capture_instance,
             std::vector<columns::Field> written);

  columns::SchemaPtr schema() const override { return schema_; }
  // Errors: ValueNotConvertible (facts capture_instance, column, from, to, start_lsn),
  // never with the value; those of the inner reader.
  Result<std::optional<columns::RecordBatch>> Next() override;

 private:
  std::unique_ptr<columns::BatchReader> inner_;
  std::string capture_instance_;
  std::size_t first_ = 0;  // Of the captured columns.
  std::size_t count_ = 0;
  columns::SchemaPtr schema_;
};

}  // namespace mssql_cdc::reader
