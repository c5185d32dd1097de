#include "base/near_names.h"

#include <gtest/gtest.h>

namespace mssql_cdc {
namespace {

TEST(NearNames, Table) {
  const struct {
    const char* wanted;
    std::vector<std::string> names;
    const char* nearest;
  } kRows[] = {
      {"orders", {"ORDERS", "order"}, "ORDERS"},
      {"factstable", {"facts_table"}, "facts_table"},
      {"Grösse", {"GRÖSSE"}, "GRÖSSE"},
      {"oders", {"lines", "orders"}, "orders"},
      {"zzz", {"id", "orders"}, ""},
      {"xy", {"id"}, ""},  // Two edits make any short name out of any other.
      {"ab", {"b_a_c", "a_b_c"}, "a_b_c"},
      {"orders", {}, ""},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.wanted);
    NearNames names(row.wanted);
    for (const std::string& name : row.names) names.Offer(name);
    EXPECT_EQ(names.Nearest(), row.nearest);
  }
  NearNames names("order");
  names.Offer("orders_v2");
  names.Offer("order2");
  names.Take("order_lines_of_today");
  EXPECT_EQ(names.Best(2),
            (std::vector<std::string>{"order_lines_of_today", "order2"}));
}

}  // namespace
}  // namespace mssql_cdc
