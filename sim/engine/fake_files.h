// What the files of the existing package's fake say, as values.

#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace mssql_cdc::sim {

struct FakeColumn {
  std::string name;
  std::string spark_type;  // "DECIMAL(18,2)"
};

struct FakeChange {
  std::string start_lsn;  // "0x" and 20 digits.
  std::string seqval;
  std::int32_t command_id = 0;
  int operation = 0;
  nlohmann::json row;
};

struct FakeInstance {
  std::string name;
  std::string table;
  std::string created;  // ISO, or empty: as old as the table.
  std::string min_lsn;
  std::vector<FakeColumn> columns;
  std::vector<FakeChange> changes;
  std::vector<std::pair<std::string, std::string>> ddl;  // LSN, command.
};

struct FakeTable {
  std::vector<std::string> keys;
  std::vector<nlohmann::json> rows;  // As they are now.
  std::vector<std::string> dropped;  // Columns, in lower case.
  std::vector<std::string> computed;
};

struct Fake {
  std::vector<std::pair<std::string, std::string>> mapping;  // LSN, time.
  std::vector<FakeInstance> instances;                       // Oldest first.
  std::map<std::string, FakeTable> tables;
};

// Errors: SimulatorFailed with facts file and reason.
Result<Fake> ReadFake(const std::string& directory);

}  // namespace mssql_cdc::sim
