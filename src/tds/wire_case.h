// Reads tests/wire/*.tdscase and writes columns as the text those files use. For tests.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "columns/batch.h"

namespace mssql_cdc::tds {

struct WireCase {
  std::vector<std::uint8_t> wire;
  std::vector<std::string> schema;  // Lines; of every result set "result" comes first.
  std::vector<std::string> rows;    // The same.
  std::string error;                // Empty: none.
};

// All cases, in order of name.
std::vector<std::string> WireCasePaths();
// Fails the test at hand if the file is no case.
WireCase ReadWireCase(const std::string& path);
WireCase ParseWireCase(std::string_view text);

// "id  int32  not null"
std::string SchemaLine(const columns::Field& field);
// "42 | NULL | \"text\" | 0x0A0B"
std::string RowLine(const columns::RecordBatch& batch, std::int64_t row);

}  // namespace mssql_cdc::tds
