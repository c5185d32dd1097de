// The version of the program.

#pragma once

namespace mssql_cdc::cli {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace mssql_cdc::cli
