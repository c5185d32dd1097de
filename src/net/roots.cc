#include "net/roots.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <sys/stat.h>

namespace mssql_cdc::net {
namespace {

// OpenSSL knows where its builder kept roots; a static build runs on distributions that
// keep them elsewhere.
X509_STORE* LoadSystemRoots() {
  X509_STORE* store = X509_STORE_new();
  if (store == nullptr) return nullptr;
  X509_STORE_set_default_paths(store);
  struct stat found{};
  for (const char* place :
       {X509_get_default_cert_file(), X509_get_default_cert_dir()}) {
    if (stat(place, &found) == 0) return store;
  }
  for (const char* file :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (stat(file, &found) == 0 && X509_STORE_load_file(store, file) == 1) break;
  }
  return store;
}

X509_STORE* SystemRoots() {
  static X509_STORE* const store = LoadSystemRoots();
  return store;
}

}  // namespace

Result<X509Store> TrustedRoots(const std::optional<std::string>& ca_file) {
  X509_STORE* const system = SystemRoots();
  const Error failed =
      Error(ErrorId::kTlsFailed).With("reason", "no store for trusted roots");
  if (system == nullptr) return failed;
  if (!ca_file) {
    X509_STORE_up_ref(system);
    return X509Store(system);
  }
  TRY(CheckCertificateFile(*ca_file));
  X509Store store(X509_STORE_new());
  if (!store) return failed;
  // Those of a folder are looked up when they are needed; those of files are there.
  X509_LOOKUP* folder = X509_STORE_add_lookup(store.get(), X509_LOOKUP_hash_dir());
  if (folder != nullptr) X509_LOOKUP_add_dir(folder, nullptr, X509_FILETYPE_DEFAULT);
  X509_STORE_lock(system);
  const STACK_OF(X509_OBJECT)* objects = X509_STORE_get0_objects(system);
  for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
    X509* root = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
    if (root != nullptr) X509_STORE_add_cert(store.get(), root);
  }
  X509_STORE_unlock(system);
  const bool loaded = X509_STORE_load_file(store.get(), ca_file->c_str()) == 1;
  ERR_clear_error();
  if (!loaded) return failed;
  return store;
}

Status CheckCertificateFile(const std::string& path) {
  const Bio file(BIO_new_file(path.c_str(), "r"));
  const X509Certificate first(
      file ? PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr) : nullptr);
  ERR_clear_error();
  if (first) return Unit{};
  return Error(ErrorId::kFileRefused)
      .With("file", path)
      .With("reason", file ? "no PEM certificate in it" : "cannot be opened");
}

}  // namespace mssql_cdc::net
