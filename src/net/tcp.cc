#include "net/tcp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "net/gathering.h"

namespace mssql_cdc::net {
namespace {

// An idle connection is probed after a minute and given up two minutes later, so that a
// server that vanished does not keep a reader waiting for ever.
constexpr int kKeepAliveIdleSeconds = 60;
constexpr int kKeepAliveIntervalSeconds = 20;
constexpr int kKeepAliveProbeCount = 6;
// At most so many parts go into one call (Linux takes 1024).
constexpr std::size_t kPartCountMax = 512;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string ErrnoText(int number) {
  return fmt::format("{} ({})", std::strerror(number), number);  // NOLINT
}

// 1: `events` came (or the socket failed, which the next call on it tells); 0: the
// limit passed. A signal begins the wait again.
int WaitOn(int fd, short events, std::int64_t limit_ms) {
  pollfd waiting{fd, events, 0};
  while (true) {
    const int timeout =
        limit_ms <= 0
            ? -1
            : static_cast<int>(std::min<std::int64_t>(limit_ms, 1'000'000'000));
    const int ready = poll(&waiting, 1, timeout);
    if (ready >= 0) return ready;
    if (errno != EINTR) return 1;
  }
}

void SetOption(int fd, int level, int option, int value) {
  // Best effort: each of these only makes a working connection better.
  static_cast<void>(setsockopt(fd, level, option, &value, sizeof(value)));
}

void Tune(int fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbeCount);
}

class TcpTransport final : public GatheringTransport {
 public:
  // Owns `fd`, which is non-blocking.
  explicit TcpTransport(int fd) : socket_(fd) {}

  Result<std::size_t> Read(std::span<std::uint8_t> into) override {
    while (true) {
      const ssize_t count = recv(socket_.fd(), into.data(), into.size(), 0);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        if (WaitOn(socket_.fd(), POLLIN, limit_ms_) == 0) {
          return Error(ErrorId::kTimedOut).With("waited_ms", std::to_string(limit_ms_));
        }
      } else if (errno != EINTR) {
        return Lost();
      }
    }
  }

  Status Write(std::span<const std::uint8_t> bytes) override {
    while (!bytes.empty()) {
      const ssize_t count =
          send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(count));
      } else {
        TRY(WaitToWrite());
      }
    }
    return Unit{};
  }

  Status WriteParts(Parts parts) override {
    for (; !parts.empty();
         parts = parts.subspan(std::min(parts.size(), kPartCountMax))) {
      std::vector<iovec> pieces;
      for (const auto& part : parts.first(std::min(parts.size(), kPartCountMax))) {
        pieces.push_back({const_cast<std::uint8_t*>(part.data()), part.size()});
      }
      TRY(WritePieces(pieces));
    }
    return Unit{};
  }

  void SetTimeLimitMs(std::int64_t limit_ms) override { limit_ms_ = limit_ms; }

  // Shuts down and leaves closing to the destructor: a descriptor closed while another
  // thread reads from it could already name another file.
  void Close() override { shutdown(socket_.fd(), SHUT_RDWR); }

 private:
  Status WritePieces(std::span<iovec> pieces) {
    while (!pieces.empty()) {
      msghdr message{};
      message.msg_iov = pieces.data();
      message.msg_iovlen = pieces.size();
      const ssize_t count = sendmsg(socket_.fd(), &message, MSG_NOSIGNAL);
      if (count < 0) {
        TRY(WaitToWrite());
        continue;
      }
      auto sent = static_cast<std::size_t>(count);
      while (!pieces.empty() && sent >= pieces.front().iov_len) {
        sent -= pieces.front().iov_len;
        pieces = pieces.subspan(1);
      }
      if (pieces.empty()) break;
      iovec& cut = pieces.front();
      cut = {static_cast<std::uint8_t*>(cut.iov_base) + sent, cut.iov_len - sent};
    }
    return Unit{};
  }

  // After a call that sent nothing, by its errno: until the next one may.
  Status WaitToWrite() {
    if (errno == EINTR) return Unit{};
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Lost();
    if (WaitOn(socket_.fd(), POLLOUT, limit_ms_) == 0) {
      return Error(ErrorId::kTimedOut).With("waited_ms", std::to_string(limit_ms_));
    }
    return Unit{};
  }

  static Error Lost() {
    return Error(ErrorId::kConnectionLost).With("reason", ErrnoText(errno));
  }

  Socket socket_;
  std::int64_t limit_ms_ = 0;
};

struct AddressList {
  explicit AddressList(addrinfo* list) : first(list) {}
  ~AddressList() {
    if (first != nullptr) freeaddrinfo(first);
  }
  AddressList(const AddressList&) = delete;
  AddressList& operator=(const AddressList&) = delete;
  addrinfo* first;
};

Result<std::unique_ptr<AddressList>> Resolve(const std::string& host,
                                             std::uint16_t port, int socket_type) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = socket_type;
  addrinfo* found = nullptr;
  const int failure =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure != 0) {
    return Error(ErrorId::kNameNotResolved)
        .With("host", host)
        .With("reason", gai_strerror(failure));
  }
  return std::make_unique<AddressList>(found);
}

// What is left of a limit that began at construction.
class Deadline {
 public:
  Deadline(Clock& clock, std::int64_t limit_ms)
      : clock_(clock), limit_ms_(limit_ms), begin_ns_(clock.MonotonicNs()) {}
  // 0: no limit; -1: it passed.
  std::int64_t LeftMs() const {
    if (limit_ms_ <= 0) return 0;
    const std::int64_t left =
        limit_ms_ - (clock_.MonotonicNs() - begin_ns_) / 1'000'000;
    return left > 0 ? left : -1;
  }

 private:
  Clock& clock_;
  std::int64_t limit_ms_;
  std::int64_t begin_ns_;
};

// A connected, tuned socket for one address, or the errno that says why not (ETIMEDOUT
// for the limit).
Result<int> ConnectOne(const addrinfo& address, std::int64_t limit_ms, int* failure) {
  Socket socket(::socket(address.ai_family,
                         address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                         address.ai_protocol));
  *failure = errno;
  if (socket.fd() < 0) return Error(ErrorId::kConnectFailed);
  if (connect(socket.fd(), address.ai_addr, address.ai_addrlen) != 0) {
    *failure = errno;
    if (errno != EINPROGRESS && errno != EINTR) return Error(ErrorId::kConnectFailed);
    if (WaitOn(socket.fd(), POLLOUT, limit_ms) == 0) {
      *failure = ETIMEDOUT;
      return Error(ErrorId::kTimedOut);
    }
    socklen_t size = sizeof(*failure);
    getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, failure, &size);
    if (*failure != 0) return Error(ErrorId::kConnectFailed);
  }
  Tune(socket.fd());
  return socket.Release();
}

}  // namespace

Result<std::unique_ptr<Transport>> TcpDialer::Dial(const std::string& host,
                                                   std::uint16_t port,
                                                   std::int64_t limit_ms) {
  TRY_ASSIGN(const auto addresses, Resolve(host, port, SOCK_STREAM));
  const Deadline deadline(clock_, limit_ms);
  std::int64_t address_count = 0;
  for (const addrinfo* a = addresses->first; a != nullptr; a = a->ai_next) {
    ++address_count;
  }
  Error last(ErrorId::kConnectFailed);
  for (const addrinfo* a = addresses->first; a != nullptr; a = a->ai_next) {
    const std::int64_t left_ms = deadline.LeftMs();
    if (left_ms < 0) break;
    // Each address gets its share, so that a dead one does not use up the whole limit.
    const std::int64_t share_ms = left_ms == 0 ? 0 : left_ms / address_count + 1;
    --address_count;
    int failure = 0;
    auto socket = ConnectOne(*a, share_ms, &failure);
    if (socket.ok()) {
      return std::unique_ptr<Transport>(std::make_unique<TcpTransport>(socket.value()));
    }
    last = Error(socket.error().id())
               .With("host", host)
               .With("port", std::to_string(port))
               .With("reason", ErrnoText(failure));
  }
  return last;
}

Result<std::unique_ptr<TcpListener>> TcpListener::Listen(const std::string& address,
                                                         std::uint16_t port) {
  TRY_ASSIGN(const auto addresses, Resolve(address, port, SOCK_STREAM));
  const addrinfo& first = *addresses->first;
  const auto failed = [&] {
    return Error(ErrorId::kConnectFailed)
        .With("host", address)
        .With("port", std::to_string(port))
        .With("reason", ErrnoText(errno));
  };
  Socket socket(::socket(first.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                         first.ai_protocol));
  if (socket.fd() < 0) return failed();
  SetOption(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(socket.fd(), first.ai_addr, first.ai_addrlen) != 0) return failed();
  if (listen(socket.fd(), SOMAXCONN) != 0) return failed();

  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return failed();
  }
  const std::uint16_t bound_port =
      bound.ss_family == AF_INET6
          ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
          : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port;
  int wake[2];
  if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) return failed();
  return std::unique_ptr<TcpListener>(
      new TcpListener(socket.Release(), wake[0], wake[1], ntohs(bound_port)));
}

TcpListener::~TcpListener() {
  close(socket_);
  close(wake_read_);
  close(wake_write_);
}

Result<std::unique_ptr<Transport>> TcpListener::Accept() {
  while (true) {
    pollfd waiting[2] = {{socket_, POLLIN, 0}, {wake_read_, POLLIN, 0}};
    if (poll(waiting, 2, -1) < 0 && errno != EINTR) {
      return Error(ErrorId::kConnectionLost).With("reason", ErrnoText(errno));
    }
    if (waiting[1].revents != 0) return Error(ErrorId::kConnectionLost);
    const int fd = accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      Tune(fd);
      return std::unique_ptr<Transport>(std::make_unique<TcpTransport>(fd));
    }
    // Whatever a client did to its own attempt does not stop the listener; running out
    // of descriptors must not make this loop spin.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      static_cast<void>(WaitOn(wake_read_, POLLIN, 50));
    }
  }
}

void TcpListener::Close() {
  const char byte = 0;
  static_cast<void>(!write(wake_write_, &byte, 1));
}

Result<std::uint16_t> TcpDialer::InstancePort(const std::string& host,
                                              const std::string& instance,
                                              std::int64_t limit_ms) {
  constexpr std::uint16_t kBrowserPort = 1434;
  return AskBrowser(host, kBrowserPort, instance, limit_ms);
}

Result<std::uint16_t> TcpDialer::AskBrowser(const std::string& host,
                                            std::uint16_t browser_port,
                                            const std::string& instance,
                                            std::int64_t limit_ms) {
  TRY_ASSIGN(const auto addresses, Resolve(host, browser_port, SOCK_DGRAM));
  const Deadline deadline(clock_, limit_ms);
  const auto failed = [&](ErrorId id, std::string_view reason) {
    return Error(id)
        .With("host", host)
        .With("instance", instance)
        .With("reason", std::string(reason));
  };
  std::string question = "\x04" + instance;  // MC-SQLR CLNT_UCAST_INST.
  question += '\0';
  Error last = failed(ErrorId::kTimedOut, "SQL Browser (UDP 1434) did not answer");
  for (const addrinfo* a = addresses->first; a != nullptr; a = a->ai_next) {
    Socket socket(::socket(a->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket.fd() < 0) continue;
    // Connected, so that only the host that was asked can answer.
    if (connect(socket.fd(), a->ai_addr, a->ai_addrlen) != 0 ||
        send(socket.fd(), question.data(), question.size(), 0) < 0) {
      last = failed(ErrorId::kConnectFailed, ErrnoText(errno));
      continue;
    }
    const std::int64_t left_ms = deadline.LeftMs();
    if (left_ms < 0) break;
    if (WaitOn(socket.fd(), POLLIN, left_ms) == 0) continue;
    std::uint8_t reply[4096];
    const ssize_t count = recv(socket.fd(), reply, sizeof(reply), 0);
    if (count < 0) {
      last = failed(ErrorId::kConnectFailed, ErrnoText(errno));
      continue;
    }
    const auto port =
        PortInBrowserReply({reply, static_cast<std::size_t>(count)}, instance);
    if (port) return *port;
    last = failed(ErrorId::kConnectFailed, "SQL Browser names no TCP port for it");
  }
  return last;
}

}  // namespace mssql_cdc::net
