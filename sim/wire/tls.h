// The server's side of TLS over bytes in memory, and the certificates it shows.
//
// A CA and a leaf signed by it: clients built on rustls and Go refuse a leaf that is a
// CA itself. Both are made once and kept in the state directory as ca.pem, server.pem
// and server.key, so that a client can be told to trust ca.pem.

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

struct ssl_st;
struct ssl_ctx_st;

namespace mssql_cdc::sim::wire {

// The two ways TLS is done: inside PRELOGIN packets (TDS 7.x) it must not be TLS 1.3,
// whose later handshake messages do not fit there; strict (TDS 8.0) allows both.
class TlsSettings {
 public:
  // Loads or makes the certificates in `directory`; empty: in memory only.
  // Errors: SimulatorFailed, FileFailed.
  static Result<std::unique_ptr<TlsSettings>> Open(const std::string& directory);

  ssl_ctx_st* Context(bool strict) const {
    return strict ? strict_.get() : wrapped_.get();
  }
  const std::string& authority_pem() const { return authority_pem_; }

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> wrapped_;
  std::unique_ptr<ssl_ctx_st, Free> strict_;
  std::string authority_pem_;
};

// One TLS connection. Read and Encrypt may be called from two threads.
class TlsSession {
 public:
  explicit TlsSession(ssl_ctx_st* context);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  enum class Step : std::uint8_t { kDone, kNeedMore, kFailed };

  void Feed(std::span<const std::uint8_t> ciphertext);
  Step Handshake();
  // Appends what can be decrypted now. kDone: the peer ended the session.
  Step Read(std::vector<std::uint8_t>& plain);
  // The ciphertext of `plain` and of whatever else is due; empty when TLS has failed.
  std::string Encrypt(std::string_view plain);
  std::string TakeOutput();

 private:
  std::string TakeOutputLocked();

  std::mutex mutex_;
  ssl_st* ssl_;
};

}  // namespace mssql_cdc::sim::wire
