#include "sqlserver/session.h"

namespace mssql_cdc::sqlserver {
namespace {

columns::RecordBatch NoRows(const columns::SchemaPtr& schema) {
  columns::RecordBatch batch;
  batch.schema = schema;
  for (const columns::Field& field : schema->fields) {
    columns::ColumnBuilder builder(field.type, 0);
    batch.columns.push_back(std::make_shared<const columns::Column>(builder.Finish()));
  }
  return batch;
}

}  // namespace

Result<std::vector<columns::RecordBatch>> Collect(Session& session,
                                                  const Request& request,
                                                  std::int64_t row_count_max) {
  BatchLimits limits;
  limits.row_count_max = row_count_max;
  limits.reply_size_bytes_max = kCollectSizeBytesMax;
  TRY_ASSIGN(const auto reply, session.Execute(request, limits));
  std::vector<columns::RecordBatch> results;
  while (true) {
    TRY_ASSIGN(const auto schema, reply->NextResult());
    if (!schema) break;
    TRY_ASSIGN(auto batch, reply->NextBatch());
    if (!batch) {
      results.push_back(NoRows(*schema));
      continue;
    }
    TRY_ASSIGN(const auto more, reply->NextBatch());
    if (more) {
      return Error(ErrorId::kTdsLimitExceeded)
          .With("why", "an answer with more rows than its question allows")
          .With("row_count_max", std::to_string(row_count_max));
    }
    results.push_back(std::move(*batch));
  }
  TRY(reply->Finish());
  return results;
}

}  // namespace mssql_cdc::sqlserver
