#include "sim/sql/function_rules.h"

#include <string_view>
#include <utility>

#include "base/text.h"
#include "sim/sql/dates.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

// The major version that brought a function, after 2016 (13): Microsoft's pages on
// each.
constexpr std::pair<std::string_view, int> kSince[] = {
    {"CONCAT_WS", 14}, {"STRING_AGG", 14}, {"TRANSLATE", 14},
    {"TRIM", 14},      {"GREATEST", 16},   {"LEAST", 16},
};

}  // namespace

bool IsOfRelease(const std::string& function, Environment& environment) {
  for (const auto& [name, major] : kSince) {
    if (name != function) continue;
    const auto version = environment.GlobalVariable("@@MICROSOFTVERSION");
    const auto* number =
        version ? std::get_if<std::int64_t>(&version->value.held) : nullptr;
    return number == nullptr || (*number >> 24) >= major;
  }
  return true;
}

void CheckArgumentTypes(const std::string& function, const ast::Call& call,
                        std::span<const Bound> arguments) {
  if (arguments.empty()) return;
  const SqlType& type = arguments[0]->type;
  if (function == "SUBSTRING" && arguments.size() == 3 && !IsText(type.id) &&
      !IsBinary(type.id) && type.id != TypeId::kNull) {
    RaiseSql(8116, 16, 1,
             "Argument data type " + TypeWord(type) +
                 " is invalid for argument 1 of substring function.");
  }
  if ((function != "DATEPART" && function != "DATENAME") ||
      arguments.back()->type.id != TypeId::kDate) {
    return;
  }
  const auto part = ParseDatePart(call.date_part);
  if (!part || *part < DatePart::kHour || *part > DatePart::kNanosecond) return;
  RaiseSql(9810, 16, 1,
           "The datepart " + call.date_part + " is not supported by date function " +
               LowerAscii(function) + " for data type date.");
}

}  // namespace mssql_cdc::sim
