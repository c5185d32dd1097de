#include "runtime/silver_source.h"

#include <memory>

#include "base/case_fold.h"
#include "pipeline/tables.h"
#include "runtime/checkpoint.h"
#include "runtime/checkpoint_notes.h"

namespace mssql_cdc::runtime {

SilverConfig DescribeSilver(const StreamConfig& config) {
  SilverConfig silver;
  silver.bronze = config.target;
  silver.bronze_location = config.target_location;
  silver.target = config.silver.value_or("");
  silver.target_location = config.silver_location;
  silver.control_location = config.control_location;
  silver.facts_table = config.facts_table;
  silver.facts_location = config.facts_location;
  silver.plans_location = pipeline::PlansTableOf(config.target_location);
  silver.instances = {LowerCase(config.capture_instance)};
  silver.keys = config.silver_keys;
  silver.granularity = config.granularity;
  silver.deletion_vectors = config.deletion_vectors;
  return silver;
}

SilverConfig DescribeSilver(const StreamConfig& config, const Source& source,
                            const std::optional<cdc::SourceMemory>& memory) {
  SilverConfig silver = DescribeSilver(config);
  silver.instances = source.names;
  // Rows of instances that were dropped are still in bronze.
  if (memory) {
    for (const std::string& name : memory->Names()) {
      silver.instances.push_back(LowerCase(name));
    }
  }
  if (silver.keys.empty()) silver.keys = source.instance.key_columns;
  return silver;
}

Result<SilverConfig> AskSilver(const StreamConfig& config, SessionSource& sessions) {
  TRY_ASSIGN(const CheckpointState state, ReadCheckpoint(config.checkpoint));
  TRY_ASSIGN(const std::optional<cdc::SourceMemory> memory,
             CheckpointNotes(state.directory).ReadMemory());
  TRY_ASSIGN(const std::unique_ptr<sqlserver::Session> session, sessions.Open());
  TRY_ASSIGN(const Source source, AskSource(*session, config, memory));
  return DescribeSilver(config, source, memory);
}

}  // namespace mssql_cdc::runtime
