// `mssql-cdc apply`, `optimize` and `finalized`: a pipeline file's silver and control
// tables.

#pragma once

#include <optional>
#include <string>

#include "cli/output.h"
#include "cli/pipeline.h"
#include "runtime/silver_keeper.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::cli {

// Tells what is done to a stream's silver.
class SilverProgress final : public runtime::SilverObserver {
 public:
  // Borrows both.
  SilverProgress(const runtime::StreamConfig& config, Output& output)
      : config_(config), output_(output) {}
  void OnApplyDone(const runtime::ApplyOutcome& outcome) override;
  void OnSilverFailed(const Error& error) override;

 private:
  const runtime::StreamConfig& config_;
  Output& output_;
  std::string last_;  // The last text: an apply without news is told once.
};

struct ApplyArguments {
  PipelineArguments pipeline;
  // Keys and instances are those of the file alone: the server is not asked.
  bool offline = false;
};

// Applies bronze to the silver of every stream that has one. Returns the exit code: 0,
// or that of the first failure.
int ApplyPipeline(const ApplyArguments& arguments);

struct OptimizeArguments {
  PipelineArguments pipeline;
  std::string table;  // A location; empty: the silver tables of the file.
  bool enable_vectors = false;
  std::int64_t small_size_mb = 64;
};

int OptimizePipeline(const OptimizeArguments& arguments);

struct FinalizedArguments {
  PipelineArguments pipeline;
  std::optional<std::string> until;  // Ends with 0 if all are complete by then.
  bool advance = false;              // First as far as the checkpoints allow.
};

int ShowFinalized(const FinalizedArguments& arguments);

struct ReconcileArguments {
  PipelineArguments pipeline;
  std::int64_t bucket_rows = 1'000'000;
  double sample = 0.01;
  std::string report;  // A location; empty: none.
  std::int64_t capture_wait_seconds = 15;
  bool repair = false;
  bool show_keys = false;  // Values of the source, so only on request.
};

// Compares silver with the source, stream by stream. Ends with 0 if nothing differs (or
// was put right), with 65 if something does, and with 75 if that may be changes which
// capture has not read yet, or rows of a snapshot that is open.
int ReconcilePipeline(const ReconcileArguments& arguments);

}  // namespace mssql_cdc::cli
