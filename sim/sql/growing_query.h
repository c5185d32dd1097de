// A query of change tables whose answer only grows: what it sends of a commit today it
// sends again tomorrow. Recognised by what it is bound to, never by its text; its rows
// are sent from KeptRows as far as they are there, and kept while the plan sends the
// rest. All other queries know nothing of it.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/sql/operators.h"

namespace mssql_cdc::sim {

// Bare columns of one or two tables, equal in their first columns, which are LSNs;
// restricted by nothing but ranges of these, in their ascending order.
struct GrowingQuery {
  std::vector<std::shared_ptr<TableSource>> sources;
  // On the LSN.
  std::vector<ScanConstraintSpec> bounds;
  std::size_t lsn_index = 0;  // Among the query's columns.
  // The same for two queries of the same sources whose rows are alike.
  std::string shape;
};

// Sends all rows of `plan`, or none: absent, where the answer cannot be kept. Returns
// how many it sent. `columns` are the query's, and the sink knows them.
std::optional<std::int64_t> SendGrowing(const GrowingQuery& query,
                                        const std::vector<OutputColumn>& columns,
                                        Operator& plan, Context& context,
                                        ReplySink& sink);

}  // namespace mssql_cdc::sim
