// A TDS server for the read bench: it knows no SQL, it replays result sets that were
// serialised before the first connection, so that what is measured is the client.
//
// `SELECT * FROM bench.W1 /* rows=5000000 */` answers with the shape W1 and that many
// rows; every other request is answered with success and no rows, which is all that the
// drivers' own statements need. Usage: replay_server [--no-encryption]; prints the port
// it listens on. By default encryption is as the client asks: login only, whole session
// or TDS 8.0.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "bench/connection.h"
#include "bench/shapes.h"

namespace mssql_cdc::bench {
namespace {

constexpr std::size_t kDistinctRowCount = 20'000;
constexpr std::size_t kPacketSizeBytesTls = 16'383;

enum MessageType : std::uint8_t {
  kBatch = 0x01,
  kRpc = 0x03,
  kAttention = 0x06,
  kTransaction = 0x0E,
  kLogin = 0x10,
  kPreLogin = 0x12,
};

struct Server {
  std::vector<Shape> shapes;
  bool no_encryption = false;
  SSL_CTX* wrapped_tls = nullptr;
  SSL_CTX* strict_tls = nullptr;
};

void PutDone(Bytes& out, unsigned token, std::uint64_t status,
             std::uint64_t row_count) {
  PutByte(out, token);
  PutShort(out, status);
  PutShort(out, 0xC1);  // SELECT
  PutLittle(out, row_count, 8);
}

void PutEnvChange(Bytes& out, unsigned type, const Bytes& new_value,
                  const Bytes& old_value) {
  PutByte(out, 0xE3);
  PutShort(out, 1 + new_value.size() + old_value.size());
  PutByte(out, type);
  PutBytes(out, new_value);
  PutBytes(out, old_value);
}

Bytes Name(std::u16string_view text) {
  Bytes out;
  PutName(out, text);
  return out;
}

// What the server will do about encryption, from what the client's PRELOGIN says:
// 0 login only, 1 on, 2 not supported, 3 required.
unsigned AgreedEncryption(const Server& server, const Bytes& prelogin) {
  if (server.no_encryption) return 2;
  for (std::size_t at = 0; at + 5 <= prelogin.size() && prelogin[at] != 0xFF; at += 5) {
    const std::size_t offset =
        static_cast<std::size_t>(prelogin[at + 1]) << 8 | prelogin[at + 2];
    if (prelogin[at] == 1 && offset < prelogin.size()) {
      return prelogin[offset] == 3 ? 1 : prelogin[offset];
    }
  }
  return 2;
}

Bytes PreLoginReply(unsigned encryption) {
  const Bytes values[] = {{16, 0, 0x10, 0x59, 0, 0},  // VERSION 16.0.4185
                          {static_cast<std::uint8_t>(encryption)},
                          {0},   // INSTOPT
                          {},    // THREADID
                          {0}};  // MARS
  Bytes out;
  std::size_t offset = 5 * std::size(values) + 1;
  for (std::size_t i = 0; i < std::size(values); ++i) {
    PutByte(out, static_cast<unsigned>(i));
    PutBytes(out,
             {static_cast<std::uint8_t>(offset >> 8), static_cast<std::uint8_t>(offset),
              0, static_cast<std::uint8_t>(values[i].size())});
    offset += values[i].size();
  }
  PutByte(out, 0xFF);
  for (const Bytes& value : values) PutBytes(out, value);
  return out;
}

// The answer to LOGIN7: what every driver insists on (database, collation, LOGINACK
// with the client's own version, packet size).
Bytes LoginReply(const Bytes& login, bool strict, std::size_t packet_size_bytes) {
  Bytes out;
  PutEnvChange(out, 1, Name(u"bench"), Name(u"master"));
  PutEnvChange(out, 7, {5, 0x09, 0x04, 0xD0, 0x00, 0x34}, {0});
  PutEnvChange(out, 2, Name(u"us_english"), Name(u""));
  Bytes ack = {1};
  if (strict) {
    PutBytes(ack, {0x08, 0, 0, 0});
  } else {
    for (std::size_t i = 8; i-- > 4;) ack.push_back(login[i]);
  }
  PutBytes(ack, Name(u"Microsoft SQL Server"));
  PutBytes(ack, {16, 0, 0x10, 0x59});
  PutByte(out, 0xAD);
  PutShort(out, ack.size());
  PutBytes(out, ack);
  std::u16string size;
  for (const char digit : std::to_string(packet_size_bytes)) {
    size.push_back(static_cast<char16_t>(digit));
  }
  PutEnvChange(out, 4, Name(size), Name(u"4096"));
  PutDone(out, 0xFD, 0, 0);
  return out;
}

// Up to and including the login. False if the connection is to be closed.
bool LogIn(const Server& server, Connection& connection, bool strict) {
  if (strict && !connection.StartStrictTls(server.strict_tls)) return false;
  const std::optional<Message> prelogin = connection.Read();
  if (!prelogin || prelogin->type != kPreLogin) return false;
  const unsigned encryption = AgreedEncryption(server, prelogin->payload);
  const Bytes reply = PreLoginReply(encryption);
  if (!connection.Append(reply) || !connection.Finish()) return false;
  const bool wrapped = !strict && encryption != 2;
  if (wrapped && !connection.StartWrappedTls(server.wrapped_tls)) return false;

  const std::optional<Message> login = connection.Read();
  if (!login || login->type != kLogin || login->payload.size() < 36) return false;
  if (wrapped && encryption == 0) connection.EndTls();
  std::uint32_t wish = 0;
  std::memcpy(&wish, login->payload.data() + 8, sizeof wish);
  std::size_t packet_size = wish == 0 ? 4096 : std::clamp(wish, 512u, 32'767u);
  if (connection.encrypted()) packet_size = std::min(packet_size, kPacketSizeBytesTls);
  const Bytes answer = LoginReply(login->payload, strict, packet_size);
  if (!connection.Append(answer) || !connection.Finish()) return false;
  connection.set_packet_size(packet_size);
  return true;
}

// The ASCII characters of UTF-16 text somewhere in `payload`; the rest as '?'.
std::string AsciiOf(const Bytes& payload, std::size_t from) {
  std::string text;
  for (std::size_t at = from; at + 1 < payload.size(); at += 2) {
    text.push_back(payload[at + 1] == 0 && payload[at] < 0x7F
                       ? static_cast<char>(payload[at])
                       : '?');
  }
  return text;
}

struct Query {
  const Shape* shape = nullptr;
  std::uint64_t row_count = 0;
};

// Finds `bench.NAME` and `rows=N` in the text of a request. A remote call may begin its
// text at an odd offset, so both are tried.
std::optional<Query> FindQuery(const Server& server, const Bytes& payload) {
  for (std::size_t from = 0; from < 2; ++from) {
    const std::string text = AsciiOf(payload, from);
    const std::size_t at = text.find("bench.");
    if (at == std::string::npos) continue;
    const std::string name =
        text.substr(at + 6, text.find_first_of(" ;\n?", at) - at - 6);
    Query query;
    for (const Shape& shape : server.shapes) {
      if (std::u16string(name.begin(), name.end()) == shape.name) query.shape = &shape;
    }
    if (query.shape == nullptr) return std::nullopt;
    const std::size_t rows = text.find("rows=");
    for (std::size_t i = rows + 5; rows != std::string::npos && i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9') break;
      query.row_count =
          query.row_count * 10 + static_cast<std::uint64_t>(text[i] - '0');
    }
    return query;
  }
  return std::nullopt;
}

// What follows the result sets: DONE after a batch; after a remote call the status, the
// handle that sp_prepexec gives back and DONEPROC.
Bytes Closing(bool rpc, bool has_rows, std::uint64_t row_count) {
  Bytes out;
  if (!rpc) {
    PutDone(out, 0xFD, has_rows ? 0x10 : 0, row_count);
    return out;
  }
  if (has_rows) PutDone(out, 0xFF, 0x11, row_count);
  PutBytes(out, {0x79, 0, 0, 0, 0});
  if (has_rows) {
    PutByte(out, 0xAC);
    PutShort(out, 0);                                                 // ParamOrdinal
    PutName(out, u"");                                                // ParamName
    PutBytes(out, {0x01, 0, 0, 0, 0, 0, 0, 0x26, 4, 4, 1, 0, 0, 0});  // OUTPUT int 1
  }
  PutDone(out, 0xFE, 0, 0);
  return out;
}

bool Replay(const Server& server, Connection& connection, const Message& message) {
  const bool rpc = message.type == kRpc;
  const std::optional<Query> query = FindQuery(server, message.payload);
  const Bytes closing = Closing(rpc, query.has_value(), query ? query->row_count : 0);
  if (query) {
    const Shape& shape = *query->shape;
    if (!connection.Append(shape.metadata)) return false;
    std::uint64_t left = query->row_count;
    while (left > 0) {
      const std::uint64_t now = std::min<std::uint64_t>(left, shape.row_ends.size());
      if (!connection.Append(shape.rows.data(), shape.row_ends[now - 1])) return false;
      left -= now;
    }
  }
  return connection.Append(closing) && connection.Finish();
}

// Begin, commit and roll back, each answered as done.
bool AnswerTransaction(Connection& connection, const Message& message) {
  std::uint32_t headers_size = 0;
  if (message.payload.size() < 6) return false;
  std::memcpy(&headers_size, message.payload.data(), sizeof headers_size);
  if (headers_size >= message.payload.size()) return false;
  const Bytes descriptor = {8, 1, 0, 0, 0, 0, 0, 0, 0};
  Bytes out;
  switch (message.payload[headers_size]) {
    case 5:
      PutEnvChange(out, 8, descriptor, {0});
      break;
    case 7:
      PutEnvChange(out, 9, {0}, descriptor);
      break;
    default:
      PutEnvChange(out, 10, {0}, descriptor);
  }
  PutDone(out, 0xFD, 0, 0);
  return connection.Append(out) && connection.Finish();
}

void Serve(const Server& server, int socket) {
  std::uint8_t first = 0;
  if (recv(socket, &first, 1, MSG_PEEK) != 1) first = 0;
  Connection connection(socket);
  if (!LogIn(server, connection, first == 0x16)) return;
  while (const std::optional<Message> message = connection.Read()) {
    bool alive = true;
    if (message->type == kAttention) {
      Bytes out;
      PutDone(out, 0xFD, 0x20, 0);
      alive = connection.Append(out) && connection.Finish();
    } else if (message->type == kTransaction) {
      alive = AnswerTransaction(connection, *message);
    } else {
      alive = Replay(server, connection, *message);
    }
    if (!alive) return;
  }
}

int Listen() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 16) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("replay_server");
    return -1;
  }
  std::printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return listener;
}

int Main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  Server server;
  server.no_encryption = argc > 1 && std::strcmp(argv[1], "--no-encryption") == 0;
  server.shapes = MakeShapes(kDistinctRowCount);
  server.wrapped_tls = MakeTlsContext(false);
  server.strict_tls = MakeTlsContext(true);
  if (argc > 2 && !WriteCertificate(server.strict_tls, argv[2])) return 1;
  const int listener = Listen();
  if (listener < 0) return 1;
  while (true) {
    const int socket = accept(listener, nullptr, nullptr);
    if (socket < 0) continue;
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::thread([&server, socket] { Serve(server, socket); }).detach();
  }
}

}  // namespace
}  // namespace mssql_cdc::bench

int main(int argc, char** argv) { return mssql_cdc::bench::Main(argc, argv); }
