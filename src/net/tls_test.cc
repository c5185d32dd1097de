#include "net/tls.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "net/certificate.h"
#include "net/pipe.h"

namespace mssql_cdc::net {
namespace {

Certificates Made(const std::vector<std::string>& names) {
  SystemClock clock;
  auto made = MakeCertificates(names, clock.NowUtcUs());
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

// A file that goes with the test.
class TemporaryPem {
 public:
  explicit TemporaryPem(const std::string& text) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("mssql_cdc_tls_test_" + std::to_string(::getpid()) + "_" +
             std::to_string(count++) + ".pem");
    std::ofstream(path_) << text;
  }
  ~TemporaryPem() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

using Connected = Result<std::unique_ptr<TlsTransport>>;

// A handshake of `options` against a server that shows `identity`.
Connected Connect(const Certificates& identity, const TlsClientOptions& options,
                  const std::string& server_alpn = "") {
  auto [near, far] = MakePipe();
  std::thread accepting([&far = far, &identity, &server_alpn] {
    TlsServerOptions server;
    server.certificate_chain_pem = identity.leaf_pem;
    server.private_key_pem = identity.leaf_key_pem;
    server.tls13_allowed = true;
    server.alpn = server_alpn;
    // Whether it works is the client's to say.
    static_cast<void>(TlsTransport::Accept(std::move(far), server));
  });
  auto connected = TlsTransport::Connect(std::move(near), options);
  accepting.join();
  return connected;
}

TEST(Tls, TheCertificateIsVerifiedAgainstRootsAndNames) {
  const Certificates server = Made({"db.test", "*.pool.test", "10.1.2.3", "::1"});
  const Certificates other = Made({"db.test"});
  const TemporaryPem ca(server.ca_pem);
  const TemporaryPem other_ca(other.ca_pem);
  const TemporaryPem leaf(server.leaf_pem);
  const TemporaryPem other_leaf(other.leaf_pem);

  struct Case {
    const char* name;
    std::string certificate_name;
    std::optional<std::string> ca_file;
    std::optional<std::string> pinned;
    bool verify;
    bool accepted;
  };
  const std::optional<std::string> none;
  const Case cases[] = {
      {"right name, known root", "db.test", ca.path(), none, true, true},
      {"names ignore case", "DB.Test", ca.path(), none, true, true},
      {"wildcard", "a.pool.test", ca.path(), none, true, true},
      {"wildcard is one label", "a.b.pool.test", ca.path(), none, true, false},
      {"address", "10.1.2.3", ca.path(), none, true, true},
      {"version 6 address", "::1", ca.path(), none, true, true},
      {"another address", "10.1.2.4", ca.path(), none, true, false},
      {"another name", "evil.test", ca.path(), none, true, false},
      {"no name", "", ca.path(), none, true, false},
      {"unknown root", "db.test", none, none, true, false},
      {"another root", "db.test", other_ca.path(), none, true, false},
      {"not verified", "evil.test", none, none, false, true},
      {"pinned", "evil.test", none, leaf.path(), true, true},
      {"another pinned", "db.test", ca.path(), other_leaf.path(), true, false},
      {"pinning is not switched off", "db.test", none, other_leaf.path(), false, false},
  };
  for (const Case& c : cases) {
    for (const bool tls13 : {false, true}) {
      SCOPED_TRACE(testing::Message() << c.name << (tls13 ? ", 1.3" : ", 1.2"));
      TlsClientOptions options;
      options.certificate_name = c.certificate_name;
      options.ca_file = c.ca_file;
      options.pinned_certificate_file = c.pinned;
      options.verify = c.verify;
      options.tls13_allowed = tls13;
      const auto connected = Connect(server, options);
      ASSERT_EQ(connected.ok(), c.accepted)
          << (connected.ok() ? "" : connected.error().Text());
      if (c.accepted) {
        EXPECT_EQ(connected.value()->ProtocolVersion(), tls13 ? "TLSv1.3" : "TLSv1.2");
      } else {
        EXPECT_EQ(connected.error().id(), ErrorId::kCertificateUntrusted);
        EXPECT_TRUE(connected.error().Fact("reason").has_value());
      }
    }
  }
}

TEST(Tls, AlpnIsAgreedWhenTheServerKnowsIt) {
  const Certificates server = Made({"db.test"});
  TlsClientOptions options;
  options.verify = false;
  options.server_name = "db.test";
  options.tls13_allowed = true;
  options.alpn = "tds/8.0";
  EXPECT_EQ(Connect(server, options, "tds/8.0").value()->Alpn(), "tds/8.0");
  EXPECT_EQ(Connect(server, options, "other").value()->Alpn(), "");
  EXPECT_EQ(Connect(server, options, "").value()->Alpn(), "");
}

TEST(Tls, AFileThatIsNoCertificateIsNamed) {
  const Certificates server = Made({"db.test"});
  const TemporaryPem garbage("not a certificate");
  for (const std::string& path : {garbage.path(), std::string("/nonexistent.pem")}) {
    for (const bool pinned : {false, true}) {
      TlsClientOptions options;
      options.certificate_name = "db.test";
      (pinned ? options.pinned_certificate_file : options.ca_file) = path;
      const auto connected = Connect(server, options);
      ASSERT_FALSE(connected.ok());
      EXPECT_EQ(connected.error().id(), ErrorId::kFileRefused);
      EXPECT_EQ(connected.error().Fact("file"), path);
    }
  }
}

TEST(Tls, BytesThatAreNoTlsFailTheHandshake) {
  auto [near, far] = MakePipe();
  ASSERT_TRUE(far->Write(std::vector<std::uint8_t>(64, 0x41)).ok());
  TlsClientOptions options;
  options.verify = false;
  const auto connected = TlsTransport::Connect(std::move(near), options);
  ASSERT_FALSE(connected.ok());
  EXPECT_EQ(connected.error().id(), ErrorId::kTlsFailed);
}

TEST(Tls, AServerThatLeavesOrIsSilentEndsTheHandshake) {
  {
    auto [near, far] = MakePipe();
    far->Close();
    const auto connected = TlsTransport::Connect(std::move(near), {.verify = false});
    EXPECT_EQ(connected.error().id(), ErrorId::kConnectionLost);
  }
  {
    auto [near, far] = MakePipe();
    near->SetTimeLimitMs(5);
    const auto connected = TlsTransport::Connect(std::move(near), {.verify = false});
    EXPECT_EQ(connected.error().id(), ErrorId::kTimedOut);
  }
}

TEST(Tls, ReleaseGivesTheLowerTransportBackForUseInClear) {
  const Certificates identity = Made({"db.test"});
  auto [near, far] = MakePipe();
  std::thread serving([&far = far, &identity] {
    TlsServerOptions options;
    options.certificate_chain_pem = identity.leaf_pem;
    options.private_key_pem = identity.leaf_key_pem;
    auto tls = TlsTransport::Accept(std::move(far), options);
    ASSERT_TRUE(tls.ok());
    std::uint8_t secret = 0;
    ASSERT_TRUE(tls.value()->Read({&secret, 1}).ok());
    EXPECT_EQ(secret, 7);
    auto clear = tls.value()->Release();
    ASSERT_TRUE(clear.ok());
    EXPECT_TRUE(clear.value()->Write(std::vector<std::uint8_t>{9}).ok());
  });
  auto tls = TlsTransport::Connect(std::move(near), {.verify = false});
  ASSERT_TRUE(tls.ok());
  ASSERT_TRUE(tls.value()->Write(std::vector<std::uint8_t>{7}).ok());
  auto clear = tls.value()->Release();
  ASSERT_TRUE(clear.ok());
  std::uint8_t byte = 0;
  ASSERT_TRUE(clear.value()->Read({&byte, 1}).ok());
  EXPECT_EQ(byte, 9);
  EXPECT_EQ(tls.value()->Read({&byte, 1}).error().id(), ErrorId::kConnectionLost);
  serving.join();
}

}  // namespace
}  // namespace mssql_cdc::net
