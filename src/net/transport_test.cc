// What every Transport keeps, held against the pipe, TCP on this machine and TLS over
// both.

#include "net/transport.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "net/certificate.h"
#include "net/faulty.h"
#include "net/pipe.h"
#include "net/tcp.h"
#include "net/tls.h"

namespace mssql_cdc::net {
namespace {

using Ends = std::pair<std::unique_ptr<Transport>, std::unique_ptr<Transport>>;

SystemClock& RealClock() {
  static SystemClock clock;
  return clock;
}

Ends TcpEnds() {
  auto listener = TcpListener::Listen("127.0.0.1", 0);
  EXPECT_TRUE(listener.ok());
  TcpDialer dialer(RealClock());
  auto client = dialer.Dial("127.0.0.1", listener.value()->port(), 5'000);
  EXPECT_TRUE(client.ok()) << client.error().Text();
  auto server = listener.value()->Accept();
  EXPECT_TRUE(server.ok());
  return {std::move(client).value(), std::move(server).value()};
}

Ends TlsOver(Ends ends, bool tls13) {
  const auto made = MakeCertificates({"db.test"}, RealClock().NowUtcUs());
  EXPECT_TRUE(made.ok());
  std::unique_ptr<Transport> server;
  std::thread accepting([&] {
    TlsServerOptions options;
    options.certificate_chain_pem = made.value().leaf_pem;
    options.private_key_pem = made.value().leaf_key_pem;
    options.tls13_allowed = tls13;
    auto accepted = TlsTransport::Accept(std::move(ends.second), options);
    EXPECT_TRUE(accepted.ok()) << accepted.error().Text();
    if (accepted.ok()) server = std::move(accepted).value();
  });
  TlsClientOptions options;
  options.verify = false;
  options.tls13_allowed = tls13;
  auto client = TlsTransport::Connect(std::move(ends.first), options);
  accepting.join();
  EXPECT_TRUE(client.ok()) << client.error().Text();
  EXPECT_EQ(client.value()->ProtocolVersion(), tls13 ? "TLSv1.3" : "TLSv1.2");
  return {std::move(client).value(), std::move(server)};
}

struct Adapter {
  const char* name;
  std::function<Ends()> make;
};

const Adapter kAdapters[] = {
    {"pipe", [] { return MakePipe(); }},
    {"tcp", TcpEnds},
    {"tls 1.2 over a pipe", [] { return TlsOver(MakePipe(), false); }},
    {"tls 1.3 over a pipe", [] { return TlsOver(MakePipe(), true); }},
    {"tls 1.2 over tcp", [] { return TlsOver(TcpEnds(), false); }},
    {"faulty without faults",
     [] {
       auto [a, b] = MakePipe();
       return Ends(MakeFaulty(std::move(a), {}), std::move(b));
     }},
};

std::vector<std::uint8_t> Pattern(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 131 + (i >> 8));
  }
  return bytes;
}

// All of `size` bytes, or fewer at the peer's end.
std::vector<std::uint8_t> ReadAll(Transport& from, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::size_t count = 0;
  while (count < size) {
    const auto read = from.Read(std::span(bytes).subspan(count));
    if (!read.ok() || read.value() == 0) break;
    count += read.value();
  }
  bytes.resize(count);
  return bytes;
}

TEST(TransportContract, BytesArriveInOrderBothWays) {
  for (const Adapter& adapter : kAdapters) {
    SCOPED_TRACE(adapter.name);
    auto [client, server] = adapter.make();
    // More than any buffer on the way, so that both sides have to take turns.
    const auto sent = Pattern(3u << 20);
    std::vector<std::uint8_t> echoed;
    std::thread echoing([&server = server, &sent] {
      const auto got = ReadAll(*server, sent.size());
      EXPECT_TRUE(server->Write(got).ok());
    });
    EXPECT_TRUE(client->Write(sent).ok());
    EXPECT_TRUE(ReadAll(*client, sent.size()) == sent);
    echoing.join();
  }
}

TEST(TransportContract, SilenceEndsInTimedOutAndTheStreamGoesOn) {
  for (const Adapter& adapter : kAdapters) {
    SCOPED_TRACE(adapter.name);
    auto [client, server] = adapter.make();
    client->SetTimeLimitMs(5);
    std::uint8_t byte = 0;
    const auto silent = client->Read({&byte, 1});
    ASSERT_FALSE(silent.ok());
    EXPECT_EQ(silent.error().id(), ErrorId::kTimedOut);
    client->SetTimeLimitMs(5'000);
    ASSERT_TRUE(server->Write(std::vector<std::uint8_t>{0x2A}).ok());
    const auto later = client->Read({&byte, 1});
    ASSERT_TRUE(later.ok()) << later.error().Text();
    EXPECT_EQ(byte, 0x2A);
  }
}

TEST(TransportContract, ThePeersEndIsReadAsZeroBytesAfterWhatItSent) {
  for (const Adapter& adapter : kAdapters) {
    SCOPED_TRACE(adapter.name);
    auto [client, server] = adapter.make();
    ASSERT_TRUE(server->Write(Pattern(10)).ok());
    server->Close();
    EXPECT_EQ(ReadAll(*client, 100), Pattern(10));
    std::uint8_t byte = 0;
    const auto end = client->Read({&byte, 1});
    ASSERT_TRUE(end.ok()) << end.error().Text();
    EXPECT_EQ(end.value(), 0u);
  }
}

TEST(TransportContract, CloseWakesAReaderInAnotherThread) {
  for (const Adapter& adapter : kAdapters) {
    SCOPED_TRACE(adapter.name);
    auto [client, server] = adapter.make();
    std::thread closing([&client = client] { client->Close(); });
    std::uint8_t byte = 0;
    const auto read = client->Read({&byte, 1});
    closing.join();
    // TCP shows its own shutdown as an end.
    EXPECT_TRUE(!read.ok() || read.value() == 0);
  }
}

TEST(FaultyTransport, CutsReadsAndEndsWhereItIsTold) {
  const auto sent = Pattern(100);
  {
    auto [a, b] = MakePipe();
    const auto faulty = MakeFaulty(std::move(a), {.read_size_bytes_max = 3});
    ASSERT_TRUE(b->Write(sent).ok());
    std::vector<std::uint8_t> into(50);
    EXPECT_EQ(faulty->Read(into).value(), 3u);
  }
  {
    auto [a, b] = MakePipe();
    const auto faulty = MakeFaulty(std::move(a), {.lost_after_read_bytes = 7});
    ASSERT_TRUE(b->Write(sent).ok());
    EXPECT_EQ(ReadAll(*faulty, 100).size(), 7u);
    std::uint8_t byte = 0;
    EXPECT_EQ(faulty->Read({&byte, 1}).error().id(), ErrorId::kConnectionLost);
  }
  {
    auto [a, b] = MakePipe();
    const auto faulty = MakeFaulty(std::move(a), {.ended_after_read_bytes = 7});
    ASSERT_TRUE(b->Write(sent).ok());
    EXPECT_EQ(ReadAll(*faulty, 100).size(), 7u);
    std::uint8_t byte = 0;
    EXPECT_EQ(faulty->Read({&byte, 1}).value(), 0u);
  }
  {
    auto [a, b] = MakePipe();
    const auto faulty = MakeFaulty(std::move(a), {.lost_after_written_bytes = 7});
    EXPECT_EQ(faulty->Write(sent).error().id(), ErrorId::kConnectionLost);
    b->SetTimeLimitMs(5);
    EXPECT_EQ(ReadAll(*b, 100).size(), 7u);
  }
}

}  // namespace
}  // namespace mssql_cdc::net
