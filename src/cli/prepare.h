// A pipeline file's streams, read and checked, before anything is connected to.

#pragma once

#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "runtime/connection.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::cli {

struct Prepared {
  runtime::StreamConfig config;
  runtime::Connection connect;
};

// Warnings go to `output`. Errors: ConfigUnreadable, those of options.
Result<std::vector<Prepared>> Prepare(const PipelineArguments& arguments,
                                      Output& output, Clock& clock);

}  // namespace mssql_cdc::cli
