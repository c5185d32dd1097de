#include "net/certificate.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>

#include "net/openssl_handles.h"

namespace mssql_cdc::net {
namespace {

constexpr std::int64_t kDaySeconds = 86'400;
constexpr std::int64_t kLifetimeSeconds = 3650 * kDaySeconds;

Error Failed(const char* step) {
  ERR_clear_error();
  return Error(ErrorId::kTlsFailed)
      .With("during", "making a certificate")
      .With("step", step);
}

std::string SubjectAltName(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    unsigned char address[16];
    const bool ip = inet_pton(AF_INET, name.c_str(), address) == 1 ||
                    inet_pton(AF_INET6, name.c_str(), address) == 1;
    list += (list.empty() ? "" : ",") + std::string(ip ? "IP:" : "DNS:") + name;
  }
  return list;
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const X509Extension extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// An unsigned certificate: version 3, a random serial number, named `common_name`.
X509Certificate Blank(const std::string& common_name, EVP_PKEY* key, X509_NAME* issuer,
                      std::int64_t now_utc_s) {
  X509Certificate certificate(X509_new());
  const Number serial(BN_new());
  constexpr int kSerialBits = 127;
  if (!certificate || !serial ||
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())) ==
          nullptr) {
    return nullptr;
  }
  X509* x = certificate.get();
  X509_NAME* name = X509_get_subject_name(x);
  const auto* text = reinterpret_cast<const unsigned char*>(common_name.c_str());
  const auto from = static_cast<std::time_t>(now_utc_s - kDaySeconds);
  const auto until = static_cast<std::time_t>(now_utc_s + kLifetimeSeconds);
  const bool made = X509_set_version(x, X509_VERSION_3) == 1 &&
                    X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
                                               text, -1, -1, 0) == 1 &&
                    X509_set_issuer_name(x, issuer == nullptr ? name : issuer) == 1 &&
                    ASN1_TIME_set(X509_getm_notBefore(x), from) != nullptr &&
                    ASN1_TIME_set(X509_getm_notAfter(x), until) != nullptr &&
                    X509_set_pubkey(x, key) == 1;
  return made ? std::move(certificate) : nullptr;
}

template <typename Write>
std::string Pem(Write write) {
  const Bio out(BIO_new(BIO_s_mem()));
  if (!out || write(out.get()) != 1) return {};
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return std::string(text, static_cast<std::size_t>(size));
}

}  // namespace

Result<Certificates> MakeCertificates(const std::vector<std::string>& names,
                                      std::int64_t now_utc_us) {
  const std::int64_t now_utc_s = now_utc_us / 1'000'000;
  const PrivateKey ca_key(EVP_EC_gen("P-256"));
  const PrivateKey leaf_key(EVP_EC_gen("P-256"));
  if (!ca_key || !leaf_key || names.empty()) return Failed("keys");

  const X509Certificate ca = Blank("mssql-cdc root", ca_key.get(), nullptr, now_utc_s);
  if (!ca ||
      !AddExtension(ca.get(), ca.get(), NID_basic_constraints,
                    "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(ca.get(), ca.get(), NID_key_usage,
                    "critical,keyCertSign,cRLSign") ||
      !AddExtension(ca.get(), ca.get(), NID_subject_key_identifier, "hash") ||
      X509_sign(ca.get(), ca_key.get(), EVP_sha256()) == 0) {
    return Failed("root");
  }

  const X509Certificate leaf =
      Blank(names.front(), leaf_key.get(), X509_get_subject_name(ca.get()), now_utc_s);
  if (!leaf ||
      !AddExtension(leaf.get(), ca.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(leaf.get(), ca.get(), NID_key_usage,
                    "critical,digitalSignature,keyEncipherment") ||
      !AddExtension(leaf.get(), ca.get(), NID_ext_key_usage, "serverAuth") ||
      !AddExtension(leaf.get(), ca.get(), NID_authority_key_identifier, "keyid") ||
      !AddExtension(leaf.get(), ca.get(), NID_subject_alt_name,
                    SubjectAltName(names)) ||
      X509_sign(leaf.get(), ca_key.get(), EVP_sha256()) == 0) {
    return Failed("leaf");
  }

  Certificates made;
  made.ca_pem = Pem([&](BIO* out) { return PEM_write_bio_X509(out, ca.get()); });
  made.leaf_pem = Pem([&](BIO* out) { return PEM_write_bio_X509(out, leaf.get()); });
  made.leaf_key_pem = Pem([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, leaf_key.get(), nullptr, nullptr, 0, nullptr,
                                    nullptr);
  });
  if (made.ca_pem.empty() || made.leaf_pem.empty() || made.leaf_key_pem.empty()) {
    return Failed("text");
  }
  return made;
}

}  // namespace mssql_cdc::net
