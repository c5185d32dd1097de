// Names and texts as T-SQL writes them.

#pragma once

#include <string>
#include <string_view>

namespace mssql_cdc::sim {

// `name` as a delimited identifier: [a]]b] for a]b.
std::string Bracketed(std::string_view name);

// `text` (UTF-8) as a literal: N'a''b' for a'b.
std::string Quoted(std::string_view text);

}  // namespace mssql_cdc::sim
