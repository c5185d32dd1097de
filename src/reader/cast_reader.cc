#include "reader/cast_reader.h"

#include <utility>

#include "cdc/cells.h"
#include "cdc/output_columns.h"
#include "columns/cast.h"

namespace mssql_cdc::reader {
namespace {

columns::SchemaPtr WithFields(const columns::Schema& inner, std::size_t first,
                              const std::vector<columns::Field>& written) {
  columns::Schema schema = inner;
  for (std::size_t i = 0; i < written.size(); ++i)
    schema.fields[first + i] = written[i];
  return std::make_shared<const columns::Schema>(std::move(schema));
}

}  // namespace

CastReader::CastReader(std::unique_ptr<columns::BatchReader> inner,
                       std::string capture_instance,
                       std::vector<columns::Field> written)
    : inner_(std::move(inner)),
      capture_instance_(std::move(capture_instance)),
      count_(written.size()) {
  const columns::SchemaPtr shape = inner_->schema();
  first_ = shape->fields.size() - cdc::SinkColumns().size() - count_;
  schema_ = WithFields(*shape, first_, written);
}

Result<std::optional<columns::RecordBatch>> CastReader::Next() {
  TRY_ASSIGN(std::optional<columns::RecordBatch> batch, inner_->Next());
  if (!batch) return batch;
  for (std::size_t i = first_; i < first_ + count_; ++i) {
    std::shared_ptr<const columns::Column>& column = batch->columns[i];
    const columns::Type& to = schema_->fields[i].type;
    if (column->type == to) continue;
    columns::CastOutcome outcome = columns::Cast(*column, to);
    if (outcome.failed_row) {
      TRY_ASSIGN(const std::optional<std::string> lsn,
                 cdc::RowView(*batch, *outcome.failed_row).Text("_start_lsn"));
      return Error(ErrorId::kValueNotConvertible)
          .With("capture_instance", capture_instance_)
          .With("column", schema_->fields[i].name)
          .With("from", columns::DeltaTypeName(column->type))
          .With("to", columns::DeltaTypeName(to))
          .With("start_lsn", lsn.value_or("none"));
    }
    column = std::make_shared<const columns::Column>(std::move(outcome.column));
  }
  batch->schema = schema_;
  return batch;
}

}  // namespace mssql_cdc::reader
