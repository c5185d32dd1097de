#include "sim/sql/message_format.h"

#include "sim/sql/convert.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {

std::string FormattedMessage(const std::string& pattern,
                             const std::vector<TypedValue>& values) {
  std::string text;
  std::size_t next = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      text += pattern[i];
      continue;
    }
    if (pattern[i + 1] == '%') {
      text += '%';
      ++i;
      continue;
    }
    const std::size_t end = pattern.find_first_of("dsiuxXo", i + 1);
    if (end == std::string::npos) {
      RaiseSql(2787, 16, 1,
               "Invalid format specification: '" + pattern.substr(i) + "'.");
    }
    if (next < values.size()) {
      const TypedValue& value = values[next++];
      const Value held = ConvertValue(value.value, value.type, NVarCharType(kMax), {});
      text += held.IsNull() ? "(null)" : Utf8(std::get<Text>(held.held));
    } else {
      text += "(null)";
    }
    i = end;
  }
  return text;
}

}  // namespace mssql_cdc::sim
