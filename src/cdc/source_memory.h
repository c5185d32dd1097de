// What a stream remembers of its source from one run to the next, so that a table or
// instance that was replaced meanwhile is told from the one that was read.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/capture_instance.h"

namespace mssql_cdc::cdc {

struct KnownInstance {
  std::string name;
  std::int64_t created_us = 0;  // create_date, on the server's clock.

  bool operator==(const KnownInstance&) const = default;
};

struct SourceMemory {
  std::string database;
  std::string schema;
  std::string table;
  std::vector<KnownInstance> instances;  // Oldest first.

  bool operator==(const SourceMemory&) const = default;

  std::string Json() const;
  // Reads Json()'s text. Errors: CheckpointUnreadable.
  static Result<SourceMemory> Parse(std::string_view json);
  // Newest first.
  std::vector<std::string> Names() const;
};

SourceMemory Remember(std::string_view database, const InstanceFamily& family);

// Errors: OptionsClash if the checkpoint belongs to another source: to another
// database, or to another table none of whose instances `now` has (a table may have
// been renamed under its instances).
Status CheckSameSource(const SourceMemory& then, const SourceMemory& now);

}  // namespace mssql_cdc::cdc
