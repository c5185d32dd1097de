#include "cdc/option_values.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "cdc/option_table.h"

namespace mssql_cdc::cdc {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// `digits` without its separators, or nullopt where one stands wrong.
std::optional<std::string> WithoutSeparators(std::string_view digits) {
  std::string plain;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (IsDigit(digits[i])) {
      plain += digits[i];
      continue;
    }
    const bool between = digits[i] == '_' && i != 0 && IsDigit(digits[i - 1]) &&
                         i + 1 < digits.size() && IsDigit(digits[i + 1]);
    if (!between) return std::nullopt;
  }
  if (plain.empty()) return std::nullopt;
  return plain;
}

}  // namespace

Error OptionRefused(std::string_view option, std::string_view value) {
  const OptionRow* row = FindOption(option);
  return Error(ErrorId::kOptionInvalid)
      .With("option", std::string(option))
      .With("value", std::string(value.substr(0, 100)))
      .With("allowed", std::string(row == nullptr ? "" : row->choices));
}

Result<bool> ParseBoolOption(std::string_view option, std::string_view text) {
  const std::string value = LowerAscii(Trim(text));
  for (const std::string_view yes : {"true", "1", "yes", "y"}) {
    if (value == yes) return true;
  }
  for (const std::string_view no : {"false", "0", "no", "n"}) {
    if (value == no) return false;
  }
  return OptionRefused(option, text);
}

Result<std::int64_t> ParseIntegerOption(std::string_view option, std::string_view text,
                                        std::int64_t min) {
  std::string_view digits = Trim(text);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const std::optional<std::string> plain = WithoutSeparators(digits);
  if (!plain) return OptionRefused(option, text);
  // All digits: what does not parse is too large.
  const std::int64_t size =
      ParseInt64(*plain).value_or(std::numeric_limits<std::int64_t>::max());
  const std::int64_t number = negative ? -size : size;
  if (number < min) return OptionRefused(option, text);
  return number;
}

Result<std::vector<std::string>> ParseNamesOption(std::string_view option,
                                                  std::string_view text) {
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array() || list.empty()) return OptionRefused(option, text);
  std::vector<std::string> names;
  for (const nlohmann::json& item : list) {
    const auto* name = item.get_ptr<const std::string*>();
    if (name == nullptr || name->empty()) return OptionRefused(option, text);
    names.push_back(*name);
  }
  return names;
}

}  // namespace mssql_cdc::cdc
