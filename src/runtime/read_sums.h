// What several reads of one batch come to.

#pragma once

#include <optional>

#include "pipeline/facts.h"
#include "reader/change_reader.h"

namespace mssql_cdc::runtime {

// Adds a read; reads come in the order of their windows.
void AddCounts(const reader::ChangeCounts& read, pipeline::BatchCounts& sum);

// The same of what was measured; of what the server said after a read the newest stays.
void AddMetrics(const reader::ChangeCounts& read,
                const std::optional<reader::AfterRead>& after,
                pipeline::ReadMetrics& sum);

}  // namespace mssql_cdc::runtime
