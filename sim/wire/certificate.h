// The simulator's certificate authority and server certificate. Only tls.cc uses this.

#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "base/error.h"

namespace mssql_cdc::sim::wire {

struct CertificateFree {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using CertificatePointer = std::unique_ptr<X509, CertificateFree>;
using KeyPointer = std::unique_ptr<EVP_PKEY, CertificateFree>;

struct Certificates {
  CertificatePointer authority;
  CertificatePointer leaf;
  KeyPointer leaf_key;
};

// Those of `directory` if they are whole, belong together and hold for another day;
// else new ones, which replace them. Empty: new ones, kept nowhere.
// Errors: SimulatorFailed, FileFailed.
Result<Certificates> LoadOrMakeCertificates(const std::string& directory);
std::string CertificatePem(X509* certificate);

}  // namespace mssql_cdc::sim::wire
