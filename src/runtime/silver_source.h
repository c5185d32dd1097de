// Where a stream's silver gets its key and the names of its capture instances from.

#pragma once

#include <optional>

#include "base/error.h"
#include "cdc/source_memory.h"
#include "runtime/session_pool.h"
#include "runtime/silver_config.h"
#include "runtime/source.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::runtime {

// From the options alone: `keys`, and the one configured instance. Requires
// config.silver.
SilverConfig DescribeSilver(const StreamConfig& config);

// The same with what the server told, and the stream remembers.
SilverConfig DescribeSilver(const StreamConfig& config, const Source& source,
                            const std::optional<cdc::SourceMemory>& memory);

// The same with what the server tells: all instances of the table and, where no keys
// are given, those of its unique index. Errors: CaptureInstanceNotFound,
// CdcNotEnabled, PermissionDenied; the checkpoint's; the session's.
Result<SilverConfig> AskSilver(const StreamConfig& config, SessionSource& sessions);

}  // namespace mssql_cdc::runtime
