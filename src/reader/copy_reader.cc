#include "reader/copy_reader.h"

#include <utility>

#include "base/case_fold.h"
#include "cdc/output_columns.h"
#include "reader/make_columns.h"

namespace mssql_cdc::reader {

using columns::Kind;

CopyPlan PlanCopy(const columns::Schema& copy,
                  const std::vector<columns::Field>& fields) {
  CopyPlan plan;
  for (const columns::Field& field : fields) {
    std::optional<std::size_t> place;
    for (std::size_t i = 0; i < copy.fields.size(); ++i) {
      if (!EqualsIgnoringCase(copy.fields[i].name, field.name)) continue;
      if (!place || copy.fields[i].name == field.name) place = i;
    }
    plan.fields.push_back({field.name, place ? copy.fields[*place].type : field.type});
    plan.places.push_back(place);
  }
  return plan;
}

CopyReader::CopyReader(std::unique_ptr<columns::BatchReader> copy, CopyPlan plan)
    : copy_(std::move(copy)),
      plan_(std::move(plan)),
      schema_(std::make_shared<const columns::Schema>(
          cdc::OutputSchema(plan_.fields, plan_.command_id))) {}

Result<std::optional<columns::RecordBatch>> CopyReader::Next() {
  TRY_ASSIGN(std::optional<columns::RecordBatch> batch, copy_->Next());
  if (!batch) return batch;
  const std::int64_t row_count = batch->row_count;
  const ColumnPtr stamp = TextConstant(plan_.stamp.lsn.Text(), row_count);
  const ColumnPtr no_number = NullColumn({Kind::kInt32}, row_count);
  std::vector<ColumnPtr> made = {
      TextConstant(plan_.capture_instance, row_count), stamp,
      NullColumn({Kind::kUtf8}, row_count),
      Int32Constant(static_cast<int>(cdc::Operation::kSnapshot), row_count)};
  if (plan_.command_id) made.push_back(no_number);
  made.push_back(plan_.stamp.commit_us
                     ? TimestampConstant(*plan_.stamp.commit_us, row_count)
                     : NullColumn({Kind::kTimestampNtz}, row_count));
  for (std::size_t i = 0; i < plan_.fields.size(); ++i) {
    made.push_back(plan_.places[i] ? batch->columns[*plan_.places[i]]
                                   : NullColumn(plan_.fields[i].type, row_count));
  }
  made.push_back(no_number);  // _batch_id
  made.push_back(stamp);      // _snapshot
  made.push_back(no_number);  // _chunk
  columns::RecordBatch shaped{schema_, row_count, std::move(made)};
  return std::optional<columns::RecordBatch>(std::move(shaped));
}

}  // namespace mssql_cdc::reader
