// The history that the existing package's fake keeps as JSON files in one directory
// (`fakePath`), as values. Its writer goes on while it is read: every answer reads what
// is there at that moment.

#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "columns/schema.h"

namespace mssql_cdc::fake {

struct Commit {
  cdc::Lsn lsn;
  std::int64_t commit_us = 0;
};

struct Change {
  cdc::Lsn lsn;
  cdc::Lsn seqval;
  std::int32_t command_id = 0;
  std::int32_t operation = 0;
  nlohmann::json row;
};

struct Ddl {
  cdc::Lsn lsn;
  std::string command;
};

struct Instance {
  std::string name;
  std::string table;
  std::int64_t created_us = 0;  // 0: as old as the table.
  cdc::Lsn min_lsn;
  // Captured columns in order; those of an instance that keeps none are the names that
  // occur in its rows, as text.
  std::vector<columns::Field> columns;
};

// What the directory says of a table.
struct Table {
  std::vector<std::string> keys;
  std::set<std::string> dropped;   // Lower-case names.
  std::set<std::string> computed;  // Lower-case names.
};

class Files {
 public:
  explicit Files(std::string directory) : directory_(std::move(directory)) {}

  // In LSN order. Errors, here and below: FileRefused (facts path, reason) for a
  // directory that holds no fake and for what is no such file, FileFailed.
  Result<std::vector<Commit>> Mapping() const;
  // Oldest first.
  Result<std::vector<Instance>> Instances() const;
  Result<Table> TableOf(const std::string& table) const;
  // In the change table's order. None if there is no such instance.
  Result<std::vector<Change>> Changes(const std::string& instance) const;
  Result<std::vector<Ddl>> DdlOf(const std::string& instance) const;
  // Its current rows; none of a table without a key, of which the fake keeps none.
  Result<std::vector<nlohmann::json>> Rows(const std::string& table) const;

 private:
  // An absent file is empty.
  Result<nlohmann::json> Object(const std::string& name) const;
  Result<std::vector<nlohmann::json>> Lines(const std::string& name) const;
  Error Refused(const std::string& name, std::string reason) const;

  std::string directory_;
};

}  // namespace mssql_cdc::fake
