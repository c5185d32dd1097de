// A session in clear that plays a fixed list of requests against an engine in an empty
// state, and everything that the server said in it, byte by byte.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/pipe.h"
#include "sim/engine/engine_fixture_test.h"
#include "sim/wire/raw_client_test.h"
#include "sim/wire/server.h"

namespace mssql_cdc::sim {

// Keeps every byte that is read.
class ByteRecorder final : public net::Transport {
 public:
  ByteRecorder(std::unique_ptr<net::Transport> lower, std::string& bytes)
      : lower_(std::move(lower)), bytes_(bytes) {}
  Result<std::size_t> Read(std::span<std::uint8_t> into) override {
    Result<std::size_t> count = lower_->Read(into);
    if (count.ok()) {
      bytes_.append(reinterpret_cast<const char*>(into.data()), count.value());
    }
    return count;
  }
  Status Write(std::span<const std::uint8_t> bytes) override {
    return lower_->Write(bytes);
  }
  void SetTimeLimitMs(std::int64_t limit_ms) override {
    lower_->SetTimeLimitMs(limit_ms);
  }
  void Close() override { lower_->Close(); }

 private:
  std::unique_ptr<net::Transport> lower_;
  std::string& bytes_;
};

class PlayedSessionTest : public EngineTest {
 protected:
  // Begins anew with options that `adjust` changes.
  void OpenEmpty(std::function<void(EngineOptions&)> adjust) {
    session_ = nullptr;
    engine_ = nullptr;
    std::filesystem::remove_all(directory_);
    adjust_ = std::move(adjust);
    Open();
  }

  // One reply a request, the login's first.
  std::vector<std::string> Play(const std::vector<std::u16string>& requests,
                                wire::RawLogin login = {}) {
    wire::ServerOptions options;
    options.listen = false;
    options.tls_mode = wire::TlsMode::kNotSupported;
    auto server = wire::Server::Start(options, engine_);
    EXPECT_TRUE(server.ok());
    auto [near, far] = net::MakePipe();
    server.value()->Serve(std::move(far));
    std::string bytes;
    wire::RawClient client(std::make_unique<ByteRecorder>(std::move(near), bytes));
    client.SendPrelogin(2);
    client.ReadMessage();
    login.password = u"Sa-1";
    client.SendLogin(login);
    client.ReadMessage();
    std::vector<std::string> replies = {std::exchange(bytes, {})};
    for (const std::u16string& request : requests) {
      client.SendBatch(request);
      EXPECT_TRUE(client.ReadMessage().has_value());
      replies.push_back(std::exchange(bytes, {}));
    }
    return replies;
  }
};

}  // namespace mssql_cdc::sim
