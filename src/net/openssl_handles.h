// Owners of OpenSSL's objects. Only for the .cc files of this room.

#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

namespace mssql_cdc::net {

template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using Bio = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using Number = std::unique_ptr<BIGNUM, FreeWith<BN_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using Ssl = std::unique_ptr<SSL, FreeWith<SSL_free>>;
using SslContext = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;
using X509Certificate = std::unique_ptr<X509, FreeWith<X509_free>>;
using X509Store = std::unique_ptr<X509_STORE, FreeWith<X509_STORE_free>>;
using X509Extension = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;

}  // namespace mssql_cdc::net
