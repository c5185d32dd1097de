// The certificates that a client trusts. Only for the .cc files of this room.

#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "net/openssl_handles.h"

namespace mssql_cdc::net {

// The system's roots, and those of `ca_file` (PEM) beside them. The system's are read
// once in the life of the process, which takes tens of milliseconds; SSL_CERT_FILE and
// SSL_CERT_DIR are honoured then. Errors: TlsFailed, FileFailed.
Result<X509Store> TrustedRoots(const std::optional<std::string>& ca_file);

// That the first certificate in the PEM file `path` can be read. Errors: FileFailed.
Status CheckCertificateFile(const std::string& path);

}  // namespace mssql_cdc::net
