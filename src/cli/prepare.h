// A pipeline file's streams, read and checked, before anything is connected to.

#pragma once

#include <cstdint>
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

// What the streams are read for: some options are for one kind of call only.
enum class CallKind : std::uint8_t { kStream, kSnapshot };

// Warnings go to `output`. Errors: ConfigUnreadable, those of options.
Result<std::vector<Prepared>> Prepare(const PipelineArguments& arguments,
                                      Output& output, Clock& clock,
                                      CallKind kind = CallKind::kStream);

}  // namespace mssql_cdc::cli
