// Which keys changed while silver was compared with its source: what differs there is
// in flight, not wrong.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "lake/lake.h"
#include "runtime/silver_config.h"
#include "runtime/source_rows.h"

namespace mssql_cdc::runtime {

// Tells the keys of all changes above `lower`: of bronze's, and beyond those of the
// change tables'. A key may come often.
Status EachMovedKey(lake::Lake& lake, const SilverConfig& config, SourceRows& source,
                    const std::vector<std::string>& keys, const cdc::Lsn& lower,
                    const SourceRows::TakeKey& take);

}  // namespace mssql_cdc::runtime
