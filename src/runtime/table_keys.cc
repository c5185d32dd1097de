#include "runtime/table_keys.h"

#include <algorithm>
#include <utility>

#include "base/case_fold.h"
#include "base/text.h"
#include "cdc/snapshot_plan.h"
#include "pipeline/chunk_plan.h"
#include "runtime/ask.h"
#include "runtime/source.h"

namespace mssql_cdc::runtime {
namespace {

const std::vector<cdc::CapturedColumn>& CapturedOf(const Source& source) {
  return source.instances.back().columns.captured;
}

// As the newest instance spells it.
std::optional<std::string> CapturedName(const Source& source, const std::string& name) {
  const std::string* found = nullptr;
  for (const cdc::CapturedColumn& column : CapturedOf(source)) {
    if (column.name == name) return name;
    if (EqualsIgnoringCase(column.name, name)) found = &column.name;
  }
  if (found == nullptr) return std::nullopt;
  return *found;
}

// Whether the source table still has the column that was captured.
bool IsPresent(const Source& source, const std::string& name) {
  return std::ranges::any_of(
      source.columns.columns, [&](const cdc::ReadColumn& column) {
        return column.in_source && EqualsIgnoringCase(column.field.name, name);
      });
}

Error RefuseKeys(const std::vector<std::string>& columns) {
  std::string text;
  for (const std::string& column : columns) {
    text += (text.empty() ? "" : ", ") + column;
  }
  return Error(ErrorId::kOptionInvalid)
      .With("option", "snapshotKeys")
      .With("columns", text)
      .With("allowed",
            "captured columns of a type that SQL Server sorts and a bound can be "
            "bound as");
}

Result<std::vector<cdc::ColumnDetail>> AskDetails(const Source& source,
                                                  sqlserver::Session& session) {
  const cdc::CaptureInstance& instance = source.instance;
  TRY_ASSIGN(
      const std::vector<ResultSet> sets,
      Ask(session,
          sqlserver::AskColumnDetails(instance.source_schema, instance.source_table),
          1));
  std::vector<cdc::ColumnDetail> details;
  for (const columns::RecordBatch& batch : sets[0].batches) {
    TRY_ASSIGN(std::vector<cdc::ColumnDetail> some, cdc::ReadColumnDetails(batch));
    for (cdc::ColumnDetail& detail : some) details.push_back(std::move(detail));
  }
  return details;
}

// The key in the answer's only row.
Result<std::optional<pipeline::Key>> AskKey(sqlserver::Session& session,
                                            const sqlserver::Request& request,
                                            const TableKeys& keys) {
  TRY_ASSIGN(const std::vector<ResultSet> sets, Ask(session, request, 1));
  if (sets[0].batches.empty()) return std::optional<pipeline::Key>();
  TRY_ASSIGN(pipeline::Key key, pipeline::ReadKey(sets[0].batches[0], 0, keys.types));
  return std::optional<pipeline::Key>(std::move(key));
}

// A guess: it only sets how fine the first slices are.
std::int64_t AskRowEstimate(RunContext& context, sqlserver::Session& session) {
  const cdc::CaptureInstance& instance = context.source.instance;
  const Result<std::vector<ResultSet>> sets =
      Ask(session,
          sqlserver::AskSpaceUsed(instance.source_schema, instance.source_table), 1);
  if (!sets.ok()) return 0;
  const std::optional<cdc::RowView> row = sets.value()[0].FirstRow();
  if (!row) return 0;
  const Result<std::optional<std::string>> text = row->Text("rows");
  if (!text.ok() || !text.value()) return 0;
  return std::max<std::int64_t>(0, ParseInt64(Trim(*text.value())).value_or(0));
}

Result<std::vector<pipeline::Slice>> AskSlices(
    sqlserver::Session& session, const sqlserver::SliceQuestion& question) {
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(session, sqlserver::CountSlices(question), 1));
  std::vector<pipeline::Slice> slices;
  for (const columns::RecordBatch& batch : sets[0].batches) {
    for (std::int64_t i = 0; i < batch.row_count; ++i) {
      const cdc::RowView row(batch, i);
      TRY_ASSIGN(const std::optional<std::int64_t> slice, row.Integer("slice"));
      TRY_ASSIGN(const std::optional<std::int64_t> count, row.Integer("row_count"));
      TRY_ASSIGN(const std::optional<std::int64_t> min, row.Integer("min_key"));
      TRY_ASSIGN(const std::optional<std::int64_t> max, row.Integer("max_key"));
      slices.push_back(
          {slice.value_or(0), count.value_or(0), min.value_or(0), max.value_or(0)});
    }
  }
  return slices;
}

Result<std::vector<pipeline::KeyRange>> PlanSlices(
    RunContext& context, sqlserver::Session& session, const TableKeys& keys,
    const pipeline::IntegerExtent& extent, std::int64_t chunk_rows,
    const sqlserver::SourceSettings& settings) {
  const cdc::CaptureInstance& instance = context.source.instance;
  pipeline::SlicePlanner planner(extent.min, extent.max, extent.row_estimate,
                                 chunk_rows);
  while (const std::optional<pipeline::SliceWish> wish = planner.Next()) {
    TRY_ASSIGN(std::vector<pipeline::Slice> slices,
               AskSlices(session,
                         {instance.source_schema, instance.source_table, keys.names[0],
                          wish->width, wish->min, wish->max, settings}));
    TRY(planner.Answer(std::move(slices)));
  }
  return planner.Chunks();
}

Result<std::vector<pipeline::KeyRange>> PlanSeeks(
    sqlserver::Session& session, const sqlserver::KeyTable& table,
    const TableKeys& keys, const pipeline::SeekExtent& extent, std::int64_t chunk_rows,
    std::optional<std::int64_t> chunk_count_max) {
  pipeline::SeekPlanner planner(extent.max, keys.is_unique, chunk_rows);
  while (const std::optional<pipeline::SeekWish> wish = planner.Next()) {
    if (chunk_count_max &&
        static_cast<std::int64_t>(planner.Chunks().size()) >= *chunk_count_max) {
      break;
    }
    TRY_ASSIGN(
        std::optional<pipeline::Key> key,
        AskKey(session,
               sqlserver::SeekKey(table, SpanOf(wish->range), wish->skip_count), keys));
    planner.Answer(std::move(key));
  }
  return planner.Chunks();
}

}  // namespace

Result<TableKeys> AskTableKeys(RunContext& context, sqlserver::Session& session) {
  const Source& source = context.source;
  const std::vector<std::string>& wanted = context.config.snapshot_keys;
  TableKeys keys;
  keys.is_unique = wanted.empty();
  for (const std::string& name :
       wanted.empty() ? source.instance.key_columns : wanted) {
    keys.names.push_back(CapturedName(source, name).value_or(name));
  }
  if (keys.names.empty()) return keys;
  TRY_ASSIGN(const std::vector<cdc::ColumnDetail> details, AskDetails(source, session));
  cdc::KeyTypes bound = cdc::BindKeys(keys.names, CapturedOf(source), details);
  std::vector<std::string> refused = std::move(bound.unbindable);
  for (const cdc::KeyType& type : bound.types) {
    const bool is_sortable = type.is_sortable || keys.is_unique;
    if (!is_sortable || !IsPresent(source, type.column)) refused.push_back(type.column);
  }
  if (refused.empty()) {
    keys.types = std::move(bound.types);
  } else if (!keys.is_unique) {
    return RefuseKeys(refused);
  }
  return keys;
}

Result<TableKeys> AskKeysOf(sqlserver::Session& session, const Source& source,
                            const std::vector<std::string>& names) {
  TableKeys keys;
  keys.is_unique = false;
  for (const std::string& name : names) {
    keys.names.push_back(CapturedName(source, name).value_or(name));
  }
  TRY_ASSIGN(const std::vector<cdc::ColumnDetail> details, AskDetails(source, session));
  cdc::KeyTypes bound = cdc::BindKeys(keys.names, CapturedOf(source), details);
  const bool is_usable =
      bound.unbindable.empty() &&
      std::ranges::all_of(bound.types, [&](const cdc::KeyType& type) {
        return type.is_sortable && IsPresent(source, type.column);
      });
  if (is_usable) keys.types = std::move(bound.types);
  return keys;
}

std::vector<sqlserver::KeyColumn> KeyColumnsOf(const TableKeys& keys) {
  std::vector<sqlserver::KeyColumn> columns;
  for (const cdc::KeyType& type : keys.types) {
    columns.push_back({type.column, type.sql_type, type.collation,
                       type.form == cdc::KeyForm::kBinary});
  }
  return columns;
}

sqlserver::KeySpan SpanOf(const pipeline::KeyRange& range) {
  const auto bound = [](const std::optional<pipeline::Key>& key) {
    std::optional<sqlserver::KeyBound> texts;
    if (!key) return texts;
    texts.emplace();
    for (const pipeline::KeyValue& value : *key) {
      texts->push_back(pipeline::BoundText(value));
    }
    return texts;
  };
  return {bound(range.lo), bound(range.hi)};
}

sqlserver::KeyTable KeyTableOf(const RunContext& context, const TableKeys& keys,
                               const sqlserver::SourceSettings& settings) {
  const cdc::CaptureInstance& instance = context.source.instance;
  return {instance.source_schema, instance.source_table, KeyColumnsOf(keys), settings};
}

Result<pipeline::Extent> AskExtent(RunContext& context, sqlserver::Session& session,
                                   const TableKeys& keys,
                                   const sqlserver::SourceSettings& settings) {
  if (keys.types.empty()) return pipeline::Extent(pipeline::SeekExtent{});
  if (!keys.IsOneInteger()) {
    pipeline::SeekExtent extent;
    TRY_ASSIGN(
        extent.max,
        AskKey(session, sqlserver::AskLastKey(KeyTableOf(context, keys, settings)),
               keys));
    return pipeline::Extent(std::move(extent));
  }
  const cdc::CaptureInstance& instance = context.source.instance;
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(session,
                 sqlserver::AskKeyExtent(instance.source_schema, instance.source_table,
                                         keys.types[0].column, settings),
                 1));
  if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
    TRY_ASSIGN(const std::optional<std::int64_t> min, row->Integer("min_key"));
    TRY_ASSIGN(const std::optional<std::int64_t> max, row->Integer("max_key"));
    if (min && max) {
      return pipeline::Extent(
          pipeline::IntegerExtent{*min, *max, AskRowEstimate(context, session)});
    }
  }
  return pipeline::Extent(pipeline::SeekExtent{});
}

Result<pipeline::ChunkPlan> AskChunkPlan(RunContext& context,
                                         sqlserver::Session& session,
                                         const TableKeys& keys,
                                         const pipeline::Extent& extent,
                                         std::int64_t chunk_rows,
                                         const sqlserver::SourceSettings& settings) {
  pipeline::ChunkPlan plan;
  plan.chunk_rows = chunk_rows;
  if (const auto* integer = std::get_if<pipeline::IntegerExtent>(&extent)) {
    TRY_ASSIGN(plan.chunks,
               PlanSlices(context, session, keys, *integer, chunk_rows, settings));
    return plan;
  }
  const auto& seek = std::get<pipeline::SeekExtent>(extent);
  TRY_ASSIGN(plan.chunks, PlanSeeks(session, KeyTableOf(context, keys, settings), keys,
                                    seek, chunk_rows, std::nullopt));
  if (!seek.max) return plan;
  TRY_ASSIGN(plan.chunks.back().hi,
             AskKeyAbove(context, session, keys, *seek.max, settings));
  return plan;
}

Result<std::vector<pipeline::KeyRange>> AskKeyRanges(
    RunContext& context, sqlserver::Session& session, const TableKeys& keys,
    std::int64_t range_count_max, const sqlserver::SourceSettings& settings) {
  const std::vector<pipeline::KeyRange> one(1);
  if (keys.types.empty() || range_count_max < 2) return one;
  const std::int64_t row_count = AskRowEstimate(context, session);
  const std::int64_t count = std::min(range_count_max, row_count);
  if (count < 2) return one;
  pipeline::SeekExtent extent;
  TRY_ASSIGN(extent.max,
             AskKey(session, sqlserver::AskLastKey(KeyTableOf(context, keys, settings)),
                    keys));
  return PlanSeeks(session, KeyTableOf(context, keys, settings), keys, extent,
                   (row_count + count - 1) / count, count);
}

Result<std::vector<pipeline::KeyRange>> AskSeekRanges(
    sqlserver::Session& session, const Source& source, const TableKeys& keys,
    std::int64_t row_count, const sqlserver::SourceSettings& settings) {
  const sqlserver::KeyTable table{source.instance.source_schema,
                                  source.instance.source_table, KeyColumnsOf(keys),
                                  settings};
  pipeline::SeekExtent extent;
  TRY_ASSIGN(extent.max, AskKey(session, sqlserver::AskLastKey(table), keys));
  return PlanSeeks(session, table, keys, extent, row_count, std::nullopt);
}

Result<std::optional<pipeline::Key>> AskKeyAbove(
    RunContext& context, sqlserver::Session& session, const TableKeys& keys,
    const pipeline::Key& max, const sqlserver::SourceSettings& settings) {
  TRY_ASSIGN(std::optional<pipeline::Key> key,
             AskKey(session,
                    sqlserver::SeekAbove(KeyTableOf(context, keys, settings),
                                         *SpanOf({max, std::nullopt}).lo),
                    keys));
  if (key == max) key.reset();
  return key;
}

Result<cdc::Offset> AskStamp(RunContext& context, sqlserver::Session& session) {
  const Source& source = context.source;
  TRY_ASSIGN(const std::optional<cdc::Offset> newest, AskNewest(session, source));
  const std::optional<cdc::Lsn> lsn = cdc::SnapshotLsn(
      newest ? std::optional(newest->lsn) : std::nullopt, source.oldest().start_lsn);
  if (!lsn) {
    return Error(ErrorId::kCaptureHasNotRun)
        .With("capture_instance", source.instance.name);
  }
  if (newest && newest->lsn == *lsn) return *newest;
  return AskOffset(session, source, *lsn);
}

}  // namespace mssql_cdc::runtime
