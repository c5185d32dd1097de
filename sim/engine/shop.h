// The demo's sample shop: a database with tables of all kinds of types, CDC enabled, a
// login with just the rights a reader needs; and a writer that keeps the shop busy.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dice.h"

namespace mssql_cdc::sim {

// The shop's tables in schema dbo; each is captured as dbo_<name>.
std::vector<std::string> ShopTableNames();
// A script with batches ended by GO, for an administrator of an empty server. It
// creates database shop and login cdc_reader with `reader_password`.
std::string ShopScript(std::string_view reader_password = "Reader-1");

// Makes up the shop's next transaction. The same seed gives the same transactions.
class ShopWriter {
 public:
  explicit ShopWriter(std::uint64_t seed) : dice_(seed) {}

  // T-SQL for one batch; it names database shop itself.
  std::string Next();

 private:
  std::string PlaceOrder();
  std::string MoveOrder();
  std::string CancelOrder();
  std::string ChangePrices();
  std::string ChangeCustomer();
  std::string LogEvents();
  std::string RenumberLines();

  Dice dice_;
  std::int64_t order_count_ = 40;  // Orders placed so far; their ids are 1, 2, ...
  std::int64_t event_count_ = 0;
};

}  // namespace mssql_cdc::sim
