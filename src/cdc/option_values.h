// How an option's text is read, whatever the option means: the grammar of booleans,
// integers and lists of names.
//
// Errors: OptionInvalid with facts option, value and allowed, the last as the option
// table has it.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace mssql_cdc::cdc {

// What every refusal of a value says. `option` as the table spells it.
Error OptionRefused(std::string_view option, std::string_view value);

// true, 1, yes, y and false, 0, no, n in any case, blanks around them.
Result<bool> ParseBoolOption(std::string_view option, std::string_view text);

// A decimal integer from `min`, blanks around it: an optional sign, leading zeros and
// single _ between digits are taken, as Python's int() takes them. One above 2^63-1
// counts as that.
Result<std::int64_t> ParseIntegerOption(std::string_view option, std::string_view text,
                                        std::int64_t min);

// A JSON list, not empty, of texts that are not empty.
Result<std::vector<std::string>> ParseNamesOption(std::string_view option,
                                                  std::string_view text);

}  // namespace mssql_cdc::cdc
