#include "sim/wire/certificate.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace mssql_cdc::sim::wire {
namespace {

constexpr long kDaySeconds = 86'400;
constexpr long kValidDays = 3650;
// Clocks differ a little between machines.
constexpr long kBackdatedDays = 1;

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using BioPointer = std::unique_ptr<BIO, BioFree>;

Error Failed(const char* step) {
  return Error(ErrorId::kSimulatorFailed).With("step", step);
}

// An EC key: made in no time, and taken by every client that speaks TLS 1.2.
KeyPointer NewKey() { return KeyPointer(EVP_EC_gen("P-256")); }

bool AddExtension(X509* certificate, X509* issuer, int id, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value);
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

// A certificate with subject `name`, its serial number, times and key; not yet signed.
CertificatePointer NewCertificate(const char* name, EVP_PKEY* key) {
  CertificatePointer certificate(X509_new());
  unsigned char serial[16];
  if (certificate == nullptr || RAND_bytes(serial, sizeof serial) != 1) return nullptr;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7F) | 0x01);
  BIGNUM* number = BN_bin2bn(serial, sizeof serial, nullptr);
  const bool numbered =
      number != nullptr &&
      BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get())) != nullptr;
  BN_free(number);
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const bool complete =
      numbered && X509_set_version(certificate.get(), 2) == 1 &&
      X509_gmtime_adj(X509_getm_notBefore(certificate.get()),
                      -kBackdatedDays * kDaySeconds) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(certificate.get()),
                      kValidDays * kDaySeconds) != nullptr &&
      X509_set_pubkey(certificate.get(), key) == 1 &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(name), -1, -1,
                                 0) == 1;
  return complete ? std::move(certificate) : nullptr;
}

CertificatePointer NewAuthority(EVP_PKEY* key) {
  CertificatePointer authority = NewCertificate("SQL Server simulator CA", key);
  if (authority == nullptr) return nullptr;
  X509* raw = authority.get();
  const bool complete =
      X509_set_issuer_name(raw, X509_get_subject_name(raw)) == 1 &&
      AddExtension(raw, raw, NID_basic_constraints, "critical,CA:TRUE") &&
      AddExtension(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      AddExtension(raw, raw, NID_subject_key_identifier, "hash") &&
      X509_sign(raw, key, EVP_sha256()) != 0;
  return complete ? std::move(authority) : nullptr;
}

CertificatePointer NewLeaf(EVP_PKEY* key, X509* authority, EVP_PKEY* authority_key) {
  CertificatePointer leaf = NewCertificate("localhost", key);
  if (leaf == nullptr) return nullptr;
  X509* raw = leaf.get();
  const bool complete =
      X509_set_issuer_name(raw, X509_get_subject_name(authority)) == 1 &&
      AddExtension(raw, authority, NID_basic_constraints, "critical,CA:FALSE") &&
      AddExtension(raw, authority, NID_key_usage,
                   "critical,digitalSignature,keyAgreement") &&
      AddExtension(raw, authority, NID_ext_key_usage, "serverAuth") &&
      AddExtension(raw, authority, NID_subject_alt_name,
                   "DNS:localhost,IP:127.0.0.1,IP:::1") &&
      AddExtension(raw, authority, NID_subject_key_identifier, "hash") &&
      AddExtension(raw, authority, NID_authority_key_identifier, "keyid") &&
      X509_sign(raw, authority_key, EVP_sha256()) != 0;
  return complete ? std::move(leaf) : nullptr;
}

Result<Certificates> MakeCertificates() {
  const KeyPointer authority_key = NewKey();
  Certificates made;
  made.leaf_key = NewKey();
  if (authority_key == nullptr || made.leaf_key == nullptr) return Failed("new key");
  made.authority = NewAuthority(authority_key.get());
  if (made.authority == nullptr) return Failed("CA certificate");
  made.leaf = NewLeaf(made.leaf_key.get(), made.authority.get(), authority_key.get());
  if (made.leaf == nullptr) return Failed("server certificate");
  return made;
}

std::string BioText(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return size > 0 ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
}

std::string KeyPem(EVP_PKEY* key) {
  const BioPointer bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return BioText(bio.get());
}

// Writes a new file beside `path` and puts it in its place, readable by its owner only
// if it is `secret`.
Status WriteFile(const std::filesystem::path& path, const std::string& text,
                 bool secret) {
  const std::string beside = path.string() + ".new";
  const auto failed = [&](const char* step) {
    return Error(ErrorId::kFileFailed)
        .With("file", path.string())
        .With("step", step)
        .With("reason", std::strerror(errno));
  };
  std::remove(beside.c_str());
  const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                        secret ? 0600 : 0644);
  if (file < 0) return failed("create");
  const bool written =
      write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (close(file) != 0 || !written) return failed("write");
  if (std::rename(beside.c_str(), path.c_str()) != 0) return failed("rename");
  return Unit{};
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

CertificatePointer ParseCertificate(const std::string& pem) {
  const BioPointer bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return CertificatePointer(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

KeyPointer ParseKey(const std::string& pem) {
  const BioPointer bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return KeyPointer(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
}

// Holds for another day, so that it does not run out under a test.
bool StaysValid(const X509* certificate) {
  int days = 0;
  int seconds = 0;
  return ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)) ==
             1 &&
         days >= 1;
}

bool BelongTogether(const Certificates& loaded) {
  if (loaded.authority == nullptr || loaded.leaf == nullptr ||
      loaded.leaf_key == nullptr) {
    return false;
  }
  return StaysValid(loaded.authority.get()) && StaysValid(loaded.leaf.get()) &&
         X509_check_private_key(loaded.leaf.get(), loaded.leaf_key.get()) == 1 &&
         X509_verify(loaded.leaf.get(), X509_get0_pubkey(loaded.authority.get())) == 1;
}

}  // namespace

std::string CertificatePem(X509* certificate) {
  const BioPointer bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return BioText(bio.get());
}

Result<Certificates> LoadOrMakeCertificates(const std::string& directory) {
  if (directory.empty()) return MakeCertificates();
  const std::filesystem::path folder(directory);
  Certificates loaded;
  loaded.authority = ParseCertificate(ReadFile(folder / "ca.pem"));
  loaded.leaf = ParseCertificate(ReadFile(folder / "server.pem"));
  loaded.leaf_key = ParseKey(ReadFile(folder / "server.key"));
  if (BelongTogether(loaded)) return loaded;

  TRY_ASSIGN(Certificates made, MakeCertificates());
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  TRY(WriteFile(folder / "ca.pem", CertificatePem(made.authority.get()), false));
  TRY(WriteFile(folder / "server.pem", CertificatePem(made.leaf.get()), false));
  TRY(WriteFile(folder / "server.key", KeyPem(made.leaf_key.get()), true));
  return made;
}

}  // namespace mssql_cdc::sim::wire
