// Goal: no PRELOGIN reply can do more than cause an error. Method: decode any bytes;
// what was accepted decodes the same from an exact-size copy, so that reads past the
// end show under ASan.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "tds/prelogin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using mssql_cdc::tds::DecodePrelogin;
  const std::vector<std::uint8_t> copy(data, data + size);
  const auto reply = DecodePrelogin(copy);
  if (reply.ok()) {
    const auto again = DecodePrelogin({data, size});
    CHECK(again.ok() && again.value() == reply.value());
  }
  return 0;
}
