#include "sim/sql/set_switches.h"

#include <string_view>

namespace mssql_cdc::sim {

void SetSwitch(SessionSettings& settings, const std::string& name,
               const std::string& value) {
  struct Switch {
    std::string_view name;
    bool SessionSettings::* field;
  };
  static constexpr Switch kSwitches[] = {
      {"NOCOUNT", &SessionSettings::nocount},
      {"XACT_ABORT", &SessionSettings::xact_abort},
      {"IMPLICIT_TRANSACTIONS", &SessionSettings::implicit_transactions},
      {"QUOTED_IDENTIFIER", &SessionSettings::quoted_identifier},
      {"ANSI_NULLS", &SessionSettings::ansi_nulls},
      {"ANSI_PADDING", &SessionSettings::ansi_padding},
      {"ANSI_WARNINGS", &SessionSettings::ansi_warnings},
      {"ANSI_NULL_DFLT_ON", &SessionSettings::ansi_null_dflt_on},
      {"ARITHABORT", &SessionSettings::arithabort},
      {"CONCAT_NULL_YIELDS_NULL", &SessionSettings::concat_null_yields_null},
      {"NUMERIC_ROUNDABORT", &SessionSettings::numeric_roundabort},
      {"CURSOR_CLOSE_ON_COMMIT", &SessionSettings::cursor_close_on_commit},
      {"FMTONLY", &SessionSettings::fmtonly},
      {"NOEXEC", &SessionSettings::noexec},
      {"PARSEONLY", &SessionSettings::parseonly}};
  for (const Switch& row : kSwitches) {
    if (row.name != name) continue;
    if (value != "ON" && value != "OFF") {
      RaiseSql(102, 15, 1, "Incorrect syntax near '" + value + "'.");
    }
    settings.*row.field = value == "ON";
    return;
  }
  if (name == "ANSI_DEFAULTS") {
    for (const std::string_view part :
         {"ANSI_NULLS", "ANSI_NULL_DFLT_ON", "IMPLICIT_TRANSACTIONS", "ANSI_PADDING",
          "QUOTED_IDENTIFIER", "ANSI_WARNINGS", "CURSOR_CLOSE_ON_COMMIT"}) {
      SetSwitch(settings, std::string(part), value);
    }
    return;
  }
  // Switches without an effect on what the simulator answers.
  if (name == "ANSI_NULL_DFLT_OFF" || name == "ARITHIGNORE" || name == "FORCEPLAN" ||
      name == "REMOTE_PROC_TRANSACTIONS" || name == "NO_BROWSETABLE" ||
      name == "STATISTICS IO" || name == "STATISTICS TIME") {
    return;
  }
  RaiseSql(195, 15, 10, "'" + name + "' is not a recognized SET option.");
}

}  // namespace mssql_cdc::sim
