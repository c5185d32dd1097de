#include "net/tcp.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "net/gathering.h"

namespace mssql_cdc::net {
namespace {

TEST(TcpDialer, APortNobodyListensOnIsConnectFailed) {
  SystemClock clock;
  std::uint16_t port = 0;
  {
    const auto listener = TcpListener::Listen("127.0.0.1", 0);
    ASSERT_TRUE(listener.ok());
    port = listener.value()->port();
  }
  TcpDialer dialer(clock);
  const auto dialed = dialer.Dial("127.0.0.1", port, 5'000);
  ASSERT_FALSE(dialed.ok());
  EXPECT_EQ(dialed.error().id(), ErrorId::kConnectFailed);
  EXPECT_EQ(dialed.error().Fact("port"), std::to_string(port));
}

TEST(TcpDialer, ANameThatCannotExistIsNameNotResolved) {
  SystemClock clock;
  TcpDialer dialer(clock);
  const auto dialed = dialer.Dial("no such host", 1433, 5'000);
  ASSERT_FALSE(dialed.ok());
  EXPECT_EQ(dialed.error().id(), ErrorId::kNameNotResolved);
}

TEST(TcpListener, CloseEndsAccept) {
  const auto listener = TcpListener::Listen("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  listener.value()->Close();
  EXPECT_EQ(listener.value()->Accept().error().id(), ErrorId::kConnectionLost);
}

// More parts than one call takes, more bytes than a socket holds, to a reader that
// takes a little at a time.
TEST(TcpTransport, PartsArriveAsIfTheyHadBeenJoined) {
  SystemClock clock;
  const auto listener = TcpListener::Listen("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  TcpDialer dialer(clock);
  const auto dialed = dialer.Dial("127.0.0.1", listener.value()->port(), 5'000);
  ASSERT_TRUE(dialed.ok());
  const auto accepted = listener.value()->Accept();
  ASSERT_TRUE(accepted.ok());
  auto* gathering = dynamic_cast<GatheringTransport*>(accepted.value().get());
  ASSERT_NE(gathering, nullptr);
  std::vector<std::uint8_t> all;
  std::vector<std::vector<std::uint8_t>> parts;
  for (std::size_t i = 0; i < 1500; ++i) {
    // Some are empty.
    parts.emplace_back(i % 7 * 1000 + i % 7);
    for (std::size_t j = 0; j < parts.back().size(); ++j) {
      parts.back()[j] = static_cast<std::uint8_t>((i + j) % 251);
    }
    all.insert(all.end(), parts.back().begin(), parts.back().end());
  }
  std::vector<std::uint8_t> read;
  std::thread reader([&] {
    std::uint8_t block[4999];
    while (read.size() < all.size()) {
      const auto count = dialed.value()->Read(block);
      if (!count.ok() || count.value() == 0) return;
      read.insert(read.end(), block, block + count.value());
    }
  });
  const std::vector<std::span<const std::uint8_t>> spans(parts.begin(), parts.end());
  EXPECT_TRUE(gathering->WriteParts(spans).ok());
  reader.join();
  EXPECT_EQ(read == all, true);
  dialed.value()->Close();
  // The peer is gone: some write says so.
  Status written = Unit{};
  for (int i = 0; i < 100 && written.ok(); ++i) written = gathering->WriteParts(spans);
  EXPECT_FALSE(written.ok());
}

// The layout is that of MC-SQLR 2.2.5 (SVR_RESP).
struct BrowserCase {
  const char* name;
  std::string text;
  std::optional<std::uint16_t> port;
};

const std::string kSales =
    "ServerName;ILSUNG1;InstanceName;SALES;IsClustered;No;Version;16.0.1000.6;";

const BrowserCase kBrowserCases[] = {
    {"tcp", kSales + "tcp;57137;;", 57137},
    {"tcp behind a named pipe", kSales + "np;\\\\ILSUNG1\\pipe\\sql\\query;tcp;1434;;",
     1434},
    {"no tcp", kSales + "np;\\\\ILSUNG1\\pipe\\sql\\query;;", std::nullopt},
    {"another instance", "ServerName;A;InstanceName;HR;tcp;1;;", std::nullopt},
    {"port too large", kSales + "tcp;65536;;", std::nullopt},
    {"port is no number", kSales + "tcp;x;;", std::nullopt},
    {"cut in the middle", kSales + "tcp", std::nullopt},
    {"nothing", "", std::nullopt},
};

TEST(PortInBrowserReply, ReadsTheInstancesTcpPort) {
  for (const BrowserCase& c : kBrowserCases) {
    SCOPED_TRACE(c.name);
    std::vector<std::uint8_t> reply{0x05, static_cast<std::uint8_t>(c.text.size()), 0};
    reply.insert(reply.end(), c.text.begin(), c.text.end());
    EXPECT_EQ(PortInBrowserReply(reply, "sales"), c.port);
    reply[0] = 0x06;
    EXPECT_EQ(PortInBrowserReply(reply, "sales"), std::nullopt);
  }
}

}  // namespace
}  // namespace mssql_cdc::net
