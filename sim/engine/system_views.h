// The catalogue views, by family. Each family's function gives null for a name that it
// does not know.

#pragma once

#include <memory>
#include <string>

#include "sim/engine/rows_table.h"
#include "sim/engine/session.h"

namespace mssql_cdc::sim {

struct ViewContext {
  Session& session;
  std::shared_ptr<Database> database;
  CatalogPtr catalog;

  // Whether the login sees that the table exists.
  bool Visible(const TableMeta& table) const;
  std::int32_t SchemaId(const std::string& schema) const;
};

using ViewPtr = std::shared_ptr<TableSource>;

ViewPtr ServerView(const ViewContext& context, const std::string& name);  // sys
ViewPtr ObjectView(const ViewContext& context, const std::string& name);  // sys
ViewPtr ColumnView(const ViewContext& context, const std::string& name);  // sys
ViewPtr CdcView(const ViewContext& context, const std::string& name);     // cdc
ViewPtr InformationView(const ViewContext& context, const std::string& name);

}  // namespace mssql_cdc::sim
