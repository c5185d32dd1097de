#include "runtime/ask.h"

#include <utility>

namespace mssql_cdc::runtime {

std::int64_t ResultSet::row_count() const {
  std::int64_t count = 0;
  for (const columns::RecordBatch& batch : batches) count += batch.row_count;
  return count;
}

std::optional<cdc::RowView> ResultSet::FirstRow() const {
  if (batches.empty()) return std::nullopt;
  return cdc::RowView(batches[0], 0);
}

Result<std::vector<ResultSet>> Ask(sqlserver::Session& session,
                                   const sqlserver::Request& request,
                                   std::size_t set_count) {
  constexpr std::int64_t kRowCountMax = 100'000;
  sqlserver::BatchLimits limits;
  limits.reply_size_bytes_max = sqlserver::kCollectSizeBytesMax;
  std::vector<ResultSet> sets;
  TRY_ASSIGN(const std::unique_ptr<sqlserver::Reply> reply,
             session.Execute(request, limits));
  while (true) {
    TRY_ASSIGN(std::optional<columns::SchemaPtr> schema, reply->NextResult());
    if (!schema) break;
    ResultSet set{*std::move(schema), {}};
    while (true) {
      TRY_ASSIGN(std::optional<columns::RecordBatch> batch, reply->NextBatch());
      if (!batch) break;
      if (batch->row_count != 0) set.batches.push_back(*std::move(batch));
      if (set.row_count() > kRowCountMax) {
        return Error(ErrorId::kTdsLimitExceeded)
            .With("reason", "a small answer is not small");
      }
    }
    sets.push_back(std::move(set));
  }
  TRY(reply->Finish());
  if (sets.size() < set_count) {
    return Error(ErrorId::kTdsMalformed)
        .With("reason", "an answer is incomplete")
        .With("expected", std::to_string(set_count))
        .With("got", std::to_string(sets.size()));
  }
  return sets;
}

Result<std::optional<cdc::Offset>> ReadOffset(const ResultSet& set,
                                              const cdc::CommitClock& clock) {
  const std::optional<cdc::RowView> row = set.FirstRow();
  if (!row) return std::optional<cdc::Offset>();
  TRY_ASSIGN(const std::optional<cdc::Lsn> lsn, row->LsnOf("lsn"));
  if (!lsn) return std::optional<cdc::Offset>();
  cdc::Offset offset{*lsn, std::nullopt};
  TRY_ASSIGN(const std::optional<std::int64_t> time, row->Integer("commit_time"));
  if (time) offset.commit_us = cdc::CommitUtcUs(clock, *time);
  return std::optional<cdc::Offset>(offset);
}

}  // namespace mssql_cdc::runtime
