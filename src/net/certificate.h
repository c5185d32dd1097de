// Makes certificates on the spot: what the simulator shows to its clients, and tests.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace mssql_cdc::net {

struct Certificates {
  std::string ca_pem;    // The root, to be trusted by clients.
  std::string leaf_pem;  // Issued by it, CA:FALSE, serverAuth.
  std::string leaf_key_pem;
};

// A new root and one leaf for `names` (DNS names and IP addresses), valid from
// `now_utc_us` less a day for ten years. Errors: TlsFailed.
Result<Certificates> MakeCertificates(const std::vector<std::string>& names,
                                      std::int64_t now_utc_us);

}  // namespace mssql_cdc::net
