#include "runtime/run_guards.h"

#include "cdc/capture_instance.h"
#include "runtime/snapshot_tables.h"

namespace mssql_cdc::runtime {

// A target that is not there yet is no loss: the existing package makes it with its
// first rows.
Status CheckTargetWasEmpty(RunContext& context, const CheckpointState& state) {
  if (!state.position()) return Unit{};
  TRY_ASSIGN(const bool had_rows,
             RowsAreRecorded(context, state.committed_batch_id.has_value()));
  if (!had_rows) return Unit{};
  return Error(ErrorId::kTargetLost)
      .With("target", context.config.target)
      .With("location", context.config.target_location)
      .With("position", state.position()->lsn.Text());
}

Result<cdc::ReadPlan> PlanReadsOf(const StreamConfig& config, const Source& source,
                                  const std::optional<cdc::SourceMemory>& memory,
                                  const cdc::LsnWindow& window,
                                  const std::optional<std::int64_t>& after_commit_us) {
  cdc::ReadFacts facts;
  facts.window = window;
  facts.after_commit_us = after_commit_us;
  facts.instances = source.instances;
  facts.memory = memory;
  facts.clock = source.clock;
  facts.fields = source.fields();
  facts.fields_are_declared = !source.declared.empty();
  facts.policy = config.schema_change_policy;
  facts.fail_on_data_loss = config.fail_on_data_loss;
  return cdc::PlanReads(facts);
}

Status CheckNothingIsGone(const StreamConfig& config, const Source& source,
                          const std::optional<cdc::SourceMemory>& memory,
                          const cdc::Offset& position) {
  const std::optional<cdc::Lsn> first_readable =
      cdc::LostUpTo(source.family().instances, position.lsn);
  if (!first_readable) return Unit{};
  TRY(PlanReadsOf(config, source, memory, {position.lsn, *first_readable},
                  position.commit_us));
  return Unit{};
}

}  // namespace mssql_cdc::runtime
