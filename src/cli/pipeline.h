// `mssql-cdc run` and `mssql-cdc check`: a pipeline file's streams, each in a thread of
// its own.

#pragma once

#include <optional>
#include <string>

#include "cli/output.h"

namespace mssql_cdc::cli {

struct PipelineArguments {
  std::string file;
  std::optional<std::string> trigger;  // Overrides the file's, for every stream.
  LogForm log = LogForm::kText;
};

// Runs every stream until its trigger ends it, a signal (SIGINT, SIGTERM,
// SIGHUP) or a reader that closed the output stops it, or it fails. A stream that fails
// does not stop the others. Returns the exit code: 0, or that of the first failure.
int RunPipeline(const PipelineArguments& arguments);

// Parses, connects, and says what a run would do. Writes nothing. Returns the exit
// code.
int CheckPipeline(const PipelineArguments& arguments);

}  // namespace mssql_cdc::cli
