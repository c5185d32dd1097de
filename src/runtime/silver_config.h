// What is told about one silver table: where it and what it is made of are.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/control.h"

namespace mssql_cdc::runtime {

struct SilverConfig {
  std::string bronze;  // As the stream names its target.
  std::string bronze_location;
  std::string target;  // As given: the key of the control table's row.
  std::string target_location;
  std::string control_location;
  std::optional<std::string> facts_table;  // As given.
  std::string facts_location;
  std::string plans_location;
  // Lower-case names of all capture instances of the source table.
  std::vector<std::string> instances;
  std::vector<std::string> keys;  // As bronze spells them.
  pipeline::Granularity granularity = pipeline::Granularity::kHour;
  // A new table is made with deletion vectors.
  bool deletion_vectors = true;
  // Keys are held in passes over bronze, each of about so many bytes.
  std::size_t key_size_bytes_max = std::size_t{256} << 20;
};

}  // namespace mssql_cdc::runtime
