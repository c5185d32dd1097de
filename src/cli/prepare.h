// A pipeline file's streams, read and checked, before anything is connected to.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/secret.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "net/transport.h"
#include "runtime/connection.h"
#include "runtime/session_pool.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::cli {

struct Prepared {
  runtime::StreamConfig config;
  runtime::Connection connect;  // Empty of a stream that has no server.
  // All that a session is opened with: streams that have the same can share sessions.
  // Empty of a stream that has no server.
  Secret login;
};

// Where the stream's sessions come from. Borrows all.
std::unique_ptr<runtime::SessionSource> SessionsOf(const Prepared& stream,
                                                   net::Dialer& dialer, Clock& clock);

// What the streams are read for: some options are for one kind of call only.
enum class CallKind : std::uint8_t { kStream, kSnapshot };

// Warnings go to `output`. Errors: ConfigUnreadable, those of options.
Result<std::vector<Prepared>> Prepare(const PipelineArguments& arguments,
                                      Output& output, Clock& clock,
                                      CallKind kind = CallKind::kStream);

}  // namespace mssql_cdc::cli
