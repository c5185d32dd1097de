// The engine's stored procedures, by family.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/engine/session.h"

namespace mssql_cdc::sim {

// Absent: no procedure of the family has that name (lower case).
std::optional<std::int32_t> CdcProcedure(Session& session, const std::string& name,
                                         std::vector<ProcedureArgument>& given,
                                         ReplySink& sink);
// What ODBC and JDBC drivers ask of the catalogue.
std::optional<std::int32_t> OdbcProcedure(Session& session, const std::string& name,
                                          std::vector<ProcedureArgument>& given,
                                          ReplySink& sink);
// What a statement would return and take.
std::optional<std::int32_t> DescribeProcedure(Session& session, const std::string& name,
                                              std::vector<ProcedureArgument>& given,
                                              ReplySink& sink);
// sp_datatype_info and sp_datatype_info_100, which differ in nothing here.
std::int32_t TypeInfoCall(const std::string& procedure,
                          std::vector<ProcedureArgument>& given, ReplySink& sink);
// Schema sim: the simulator's explicit steps. For administrators only.
std::optional<std::int32_t> StepProcedure(Session& session, const std::string& name,
                                          std::vector<ProcedureArgument>& given);

// Raises 226 if the session holds the database's writer lock: the step takes it itself.
void RequireNoTransaction(Session& session, const char* procedure);

}  // namespace mssql_cdc::sim
