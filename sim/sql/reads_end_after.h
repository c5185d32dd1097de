// While one lives, something outside of statements reads: compiling, or an expression
// of control of flow. At its end what was read may change again.

#pragma once

#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

class ReadsEndAfter {
 public:
  explicit ReadsEndAfter(Environment& environment) : environment_(environment) {}
  ~ReadsEndAfter() { environment_.ReadsEnd(); }
  ReadsEndAfter(const ReadsEndAfter&) = delete;
  ReadsEndAfter& operator=(const ReadsEndAfter&) = delete;

 private:
  Environment& environment_;
};

}  // namespace mssql_cdc::sim
