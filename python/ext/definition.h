// Tables for a catalog's CREATE TABLE: columns as (name, type, comment), the comment,
// the properties.

#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "cdc/spark_ddl.h"
#include "pipeline/tables.h"

namespace mssql_cdc::extension {

inline auto DefinitionOf(const pipeline::TableDefinition& definition) {
  std::vector<std::tuple<std::string, std::string, std::string>> columns;
  for (const columns::Field& field : definition.schema.fields) {
    columns.emplace_back(field.name, cdc::SparkTypeName(field.type), field.comment);
  }
  return std::make_tuple(std::move(columns), definition.description,
                         definition.properties);
}

}  // namespace mssql_cdc::extension
