// The built-in functions that need nothing of the engine but its clock and dice, by
// their names.

#include <map>

#include "sim/sql/function_parts.h"

namespace mssql_cdc::sim {
namespace {

std::map<std::string, BuiltIn> AllFunctions() {
  std::map<std::string, BuiltIn> all;
  for (const auto& table :
       {builtin::TextFunctions(), builtin::MadeTextFunctions(),
        builtin::DateFunctions(), builtin::NumberFunctions(),
        builtin::ChoiceFunctions(), builtin::SurroundingFunctions()}) {
    for (const builtin::FunctionEntry& entry : table)
      all.emplace(entry.name, entry.build);
  }
  return all;
}

}  // namespace

BuiltIn FindBuiltIn(const std::string& upper) {
  static const std::map<std::string, BuiltIn> kAll = AllFunctions();
  const auto at = kAll.find(upper);
  return at == kAll.end() ? nullptr : at->second;
}

}  // namespace mssql_cdc::sim
