// How a simulated server instance is set up.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "sim/session.h"

namespace mssql_cdc::sim {

struct SimLogin {
  std::string name;
  Secret password;
  bool admin = false;
  std::string default_database;  // Empty: EngineOptions::default_database.
};

struct EngineOptions {
  // Keeps one file for each database; created if absent.
  std::string state_directory;
  std::uint64_t seed = 1;
  // Present: a clock that starts here (microseconds since 1970, UTC) and moves only
  // when told to. Absent: the system's.
  std::optional<std::int64_t> start_utc_us;
  // The server's zone is UTC plus this much.
  std::int16_t utc_offset_minutes = 0;
  // A zone of AT TIME ZONE's, "W. Europe Standard Time"; counts instead of the offset.
  std::string time_zone;
  Engine::Version version;
  // Azure SQL Database: no Agent; captures every 20 s and cleans up every hour.
  bool azure = false;
  // Sessions with ApplicationIntent=ReadOnly are on a readable secondary.
  bool readable_secondary = false;
  // Created if absent; a password given here replaces the stored one.
  std::vector<SimLogin> logins;
  // Of logins that name none; created if absent. Empty: master.
  std::string default_database;
  std::string collation = "SQL_Latin1_General_CP1_CI_AS";
  // Milliseconds between runs of the capture job; 0: only explicit steps.
  std::int64_t capture_interval_ms = 0;
  // "max text repl size": the longest LOB a tracked table takes; -1: any.
  std::int64_t max_text_repl_size_bytes = 65536;
  std::string server_name = "SIMULATOR";
  // Of rows of change tables that were sent, kept to be sent again; 0: none.
  std::size_t kept_rows_size_bytes_max = std::size_t{2} << 30;
};

// The version of a release: 2016, 2017, 2019, 2022. Absent: not one of these.
std::optional<Engine::Version> VersionOfRelease(int year);
// "2022" of a version.
std::string_view ReleaseOf(const Engine::Version& version);

}  // namespace mssql_cdc::sim
