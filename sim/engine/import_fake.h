// Histories of the existing package's fake of CDC (its files of JSON, formats.md), as a
// database of the simulator: same instances, LSNs, command ids and commit times.

#pragma once

#include <string>

#include "base/error.h"
#include "sim/engine/engine.h"

namespace mssql_cdc::sim {

// Fills `database`, made if it is not there, from the fake in `directory`. Each table
// of the fake is dbo.<its name>, with the columns of all its instances. Errors:
// SimulatorFailed (facts file, reason) if the fake cannot be read or the database
// already has CDC.
Status ImportFake(SimEngine& engine, const std::string& database,
                  const std::string& directory);

}  // namespace mssql_cdc::sim
