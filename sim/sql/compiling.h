// While one lives, statements are compiled and not run: what SET changes holds for the
// statements behind it, so none of them may wait for a lock before SET has run.

#pragma once

#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

class Compiling {
 public:
  explicit Compiling(Environment& environment) : environment_(environment) {
    environment_.SetCompiling(true);
  }
  ~Compiling() { environment_.SetCompiling(false); }
  Compiling(const Compiling&) = delete;
  Compiling& operator=(const Compiling&) = delete;

 private:
  Environment& environment_;
};

}  // namespace mssql_cdc::sim
