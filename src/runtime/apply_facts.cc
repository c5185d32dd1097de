#include "runtime/apply_facts.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "cdc/cells.h"
#include "pipeline/tables.h"
#include "runtime/bronze_rows.h"
#include "runtime/snapshot_tables.h"

namespace mssql_cdc::runtime {
namespace {

using Operator = lake::Condition::Operator;

// The tables that the facts tell of.
Result<std::vector<std::string>> ReadTargets(lake::Lake& lake,
                                             const SilverConfig& config) {
  lake::ReadSpec spec;
  spec.columns = {"target"};
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
             lake.Read(config.facts_location, spec));
  std::set<std::string> targets;
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) break;
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      TRY_ASSIGN(const std::optional<std::string> target,
                 cdc::RowView(*batch, i).Text("target"));
      if (target) targets.insert(*target);
    }
  }
  return std::vector<std::string>(targets.begin(), targets.end());
}

// Changes that no snapshot since has made good.
void WarnOfGaps(const std::vector<pipeline::SnapshotFact>& facts,
                const std::optional<cdc::Lsn>& snapshot,
                std::vector<std::string>& warnings) {
  for (const pipeline::SnapshotFact& fact : facts) {
    if (fact.event != "data_skipped" || fact.max_lsn < snapshot) continue;
    warnings.push_back("changes before " + fact.max_lsn.value_or(cdc::Lsn{}).Text() +
                       " were lost: silver keeps old rows until a new snapshot");
  }
}

// Snapshot rows of bronze above the snapshot that silver was rebuilt from.
lake::ReadSpec SnapshotRows(const lake::TableState& bronze,
                            const pipeline::SilverPosition& position) {
  lake::ReadSpec spec;
  spec.version = bronze.version;
  spec.columns = Present(
      bronze.schema, {"_capture_instance", "_operation", "_start_lsn", "_snapshot"});
  spec.conditions = {{"_operation", Operator::kNumberIs, "", 0}};
  if (position.rebuilt_from) {
    spec.conditions.push_back(
        {"_start_lsn", Operator::kAbove, position.rebuilt_from->Text()});
  }
  return spec;
}

// Whether one of them is of a chunk, and above `snapshot`: silver is made of that one
// and of what came since.
Result<bool> HasChunkRows(lake::Lake& lake, const SilverConfig& config,
                          lake::ReadSpec spec,
                          const std::optional<cdc::Lsn>& snapshot) {
  spec.conditions.push_back({"_chunk", Operator::kIsNotNull, ""});
  if (snapshot) {
    spec.conditions.push_back({"_start_lsn", Operator::kAbove, snapshot->Text()});
  }
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
             lake.Read(config.bronze_location, spec));
  InstanceFilter filter(config.instances);
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) return false;
    const BronzeMarks marks(*batch);
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      const std::optional<std::string_view> instance = marks.Instance(i);
      if (instance && filter.IsOurs(*instance)) return true;
    }
  }
}

// Whether bronze has a row of that snapshot, of whatever capture instance.
Result<bool> HoldsSnapshot(lake::Lake& lake, const SilverConfig& config,
                           const lake::TableState& bronze, const cdc::Lsn& snapshot) {
  // Rows of a whole one begin there; those of chunks say so.
  for (const std::string& column :
       Present(bronze.schema, {"_start_lsn", "_snapshot"})) {
    lake::ReadSpec spec;
    spec.version = bronze.version;
    spec.columns = {"_operation"};
    spec.conditions = {{"_operation", Operator::kNumberIs, "", 0},
                       {column, Operator::kEqual, snapshot.Text()}};
    TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
               lake.Read(config.bronze_location, spec));
    while (true) {
      TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
      if (!batch) break;
      if (batch->row_count > 0) return true;
    }
  }
  return false;
}

bool Has(const std::vector<std::string>& columns, std::string_view name) {
  return std::find(columns.begin(), columns.end(), name) != columns.end();
}

// A row that has these of the facts' columns.
Result<pipeline::SnapshotFact> FactOf(const cdc::RowView& row,
                                      const std::vector<std::string>& columns) {
  pipeline::SnapshotFact fact;
  TRY_ASSIGN(const std::optional<std::string> event, row.Text("event"));
  fact.event = event.value_or("");
  TRY_ASSIGN(fact.min_lsn, LsnIn(row, "min_lsn"));
  TRY_ASSIGN(fact.max_lsn, LsnIn(row, "max_lsn"));
  TRY_ASSIGN(fact.rows, row.Integer("rows"));
  if (Has(columns, "detail")) {
    TRY_ASSIGN(const std::optional<std::string> detail, row.Text("detail"));
    fact.detail = detail.value_or("");
  }
  if (Has(columns, "app_id")) {
    TRY_ASSIGN(const std::optional<std::string> app_id, row.Text("app_id"));
    fact.app_id = app_id.value_or("");
  }
  if (Has(columns, "written_at")) {
    TRY_ASSIGN(fact.written_at_us, row.Integer("written_at"));
  }
  return fact;
}

// The version up to which the facts are `known`; nullopt if a commit since may have
// told of a snapshot, or is not there to say.
Result<std::optional<std::int64_t>> StillKnown(lake::Lake& lake,
                                               const std::string& location,
                                               const KnownFacts& known) {
  TRY_ASSIGN(const std::vector<lake::CommitInfo> commits,
             lake.History(location, *known.version + 1));
  std::int64_t version = *known.version;
  for (const lake::CommitInfo& commit : commits) {
    const bool says_nothing =
        commit.version == version + 1 && commit.user_metadata == kNoEvents;
    if (!says_nothing) return std::optional<std::int64_t>();
    version = commit.version;
  }
  return std::optional(version);
}

}  // namespace

Result<std::optional<std::vector<pipeline::SnapshotFact>>> ReadSnapshotFacts(
    lake::Lake& lake, const SilverConfig& config, KnownFacts* known) {
  using Facts = std::vector<pipeline::SnapshotFact>;
  if (!config.facts_table) return std::optional<Facts>();
  TRY_ASSIGN(const std::optional<lake::TableState> state,
             lake.State(config.facts_location));
  if (!state) return std::optional<Facts>();
  if (known != nullptr && known->version && *known->version <= state->version) {
    TRY_ASSIGN(const std::optional<std::int64_t> version,
               StillKnown(lake, config.facts_location, *known));
    if (version && *version >= state->version) {
      known->version = version;
      return std::optional<Facts>(known->facts);
    }
  }
  lake::ReadSpec spec;
  spec.version = state->version;
  spec.columns = Present(state->schema, {"event", "target", "min_lsn", "max_lsn",
                                         "rows", "detail", "app_id", "written_at"});
  // Tables of early releases have no events.
  Facts facts;
  if (!Has(spec.columns, "event")) return std::optional<Facts>(std::move(facts));
  spec.conditions = {{"event", Operator::kIsNotNull, ""},
                     {"target", Operator::kEqual, config.bronze}};
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
             lake.Read(config.facts_location, spec));
  // Without details there was no chunked snapshot.
  const bool has_detail = Has(spec.columns, "detail");
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) break;
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      TRY_ASSIGN(pipeline::SnapshotFact fact, FactOf({*batch, i}, spec.columns));
      fact.target = config.bronze;
      if (!has_detail && fact.event == "snapshot_open") continue;
      facts.push_back(std::move(fact));
    }
  }
  facts = pipeline::OfNewestStream(std::move(facts));
  if (known != nullptr) *known = {state->version, facts};
  return std::optional<Facts>(std::move(facts));
}

Result<pipeline::OpenSnapshot> ReadSnapshot(
    lake::Lake& lake, const SilverConfig& config, const cdc::Lsn& lsn,
    const std::vector<pipeline::SnapshotFact>& facts) {
  TRY_ASSIGN(const std::vector<pipeline::PlansRow> plans,
             ReadPlans(lake, config.plans_location, lsn));
  return pipeline::AssembleSnapshot(lsn, facts, plans, config.plans_location);
}

Result<pipeline::ApplyFacts> GatherFacts(lake::Lake& lake, const SilverConfig& config,
                                         const pipeline::SilverPosition& position,
                                         std::vector<std::string>& warnings,
                                         KnownFacts* known) {
  pipeline::ApplyFacts facts;
  facts.position = position;
  facts.bronze = config.bronze;
  TRY_ASSIGN(const std::optional<std::vector<pipeline::SnapshotFact>> rows,
             ReadSnapshotFacts(lake, config, known));
  if (!rows) return facts;
  facts.has_facts = true;
  facts.completion = pipeline::NewestCompletion(*rows);
  // Until bronze is looked at.
  facts.completion_is_gone = pipeline::CompletionHadRows(*rows);
  const std::optional<cdc::Lsn> opened = pipeline::NewestChunkedOpen(*rows);
  if (opened > facts.completion) {
    TRY_ASSIGN(facts.open, ReadSnapshot(lake, config, *opened, *rows));
  } else if (opened) {
    facts.open = pipeline::OpenSnapshot{*opened, {}, {}};
  }
  WarnOfGaps(*rows, std::max(facts.completion, position.rebuilt_from), warnings);
  return facts;
}

Status GatherBronze(lake::Lake& lake, const SilverConfig& config,
                    const lake::TableState& bronze, pipeline::ApplyFacts& facts) {
  const lake::ReadSpec all = SnapshotRows(bronze, facts.position);
  const bool has_chunks = !Present(bronze.schema, {"_chunk"}).empty();
  lake::ReadSpec spec = all;
  if (has_chunks) spec.conditions.push_back({"_chunk", Operator::kIsNull, ""});
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
             lake.Read(config.bronze_location, spec));
  InstanceFilter filter(config.instances);
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) break;
    BronzeMarks marks(*batch);
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      const std::optional<std::string_view> instance = marks.Instance(i);
      if (!instance || !filter.IsOurs(*instance)) continue;
      TRY_ASSIGN(const pipeline::RowMark mark, marks.Mark(i));
      facts.whole =
          std::max(facts.whole, std::optional(mark.snapshot.value_or(mark.lsn)));
    }
  }
  // What silver was made of was there.
  const bool is_new =
      facts.completion > std::max(facts.position.rebuilt_from, facts.whole);
  if (!is_new) facts.completion_is_gone = false;
  if (facts.completion_is_gone) {
    TRY_ASSIGN(const bool holds,
               HoldsSnapshot(lake, config, bronze, *facts.completion));
    facts.completion_is_gone = !holds;
  }
  // Rows of chunks are as many as the table has, and matter only unexplained.
  if (has_chunks && (!facts.has_facts || !facts.open)) {
    TRY_ASSIGN(
        facts.has_chunk_rows,
        HasChunkRows(lake, config, all, std::max(facts.completion, facts.whole)));
  }
  if (facts.has_chunk_rows && facts.has_facts && !facts.open) {
    TRY_ASSIGN(facts.facts_targets, ReadTargets(lake, config));
  }
  return Unit{};
}

}  // namespace mssql_cdc::runtime
