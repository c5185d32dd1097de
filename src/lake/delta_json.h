// The JSON texts that src/lake and rust/delta exchange.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lake/lake.h"

namespace mssql_cdc::lake {

std::string CreateJson(const CreateSpec& spec);
std::string AlterJson(const std::vector<columns::Field>& add,
                      const std::map<std::string, std::string>& properties);
std::string AppendJson(const AppendSpec& spec,
                       const std::vector<columns::Field>& fields);
std::string ReadJson(const ReadSpec& spec);
std::string ChangeJson(const ChangeSpec& spec);
std::string ProbeJson(const ProbeSpec& spec);

// Errors: LakeTableUnsupported for a column type outside of columns/schema.h.
Result<TableState> ParseState(std::string_view text);
Result<std::vector<CommitInfo>> ParseHistory(std::string_view text);
Result<std::vector<DataFile>> ParseFiles(std::string_view text);

// The catalogue's error for a code of delta_abi.h and its failure text.
Error DeltaError(std::int32_t code, std::string_view failure,
                 const std::string& location);

}  // namespace mssql_cdc::lake
