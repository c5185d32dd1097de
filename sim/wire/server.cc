#include "sim/wire/server.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <thread>

#include "net/tcp.h"
#include "sim/wire/connection.h"
#include "sim/wire/fault_transport.h"

namespace mssql_cdc::sim::wire {
namespace {

constexpr std::int32_t kFirstUserSpid = 51;
constexpr std::int32_t kSpidCount = 32'000;

class ThreadedServer final : public Server {
 public:
  explicit ThreadedServer(std::unique_ptr<ServerContext> context)
      : context_(std::move(context)) {}
  ~ThreadedServer() override { Stop(); }

  Status Listen() {
    TRY_ASSIGN(listener_, net::TcpListener::Listen(context_->options.bind_address,
                                                   context_->options.port));
    acceptor_ = std::thread([this] { AcceptAll(); });
    return Unit{};
  }

  std::uint16_t port() const override {
    return listener_ == nullptr ? std::uint16_t{0} : listener_->port();
  }

  void Serve(std::unique_ptr<net::Transport> transport) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    JoinFinished();
    ++context_->counters.connections;
    if (context_->options.fault_seed) {
      Dice dice(*context_->options.fault_seed * 0x1000003 + next_);
      transport = WithFaults(std::move(transport), DrawFaults(dice), clock_);
    }
    const std::int32_t spid =
        kFirstUserSpid + static_cast<std::int32_t>(next_++ % kSpidCount);
    Served& served = served_.emplace_back();
    served.connection =
        std::make_unique<Connection>(std::move(transport), *context_, spid);
    try {
      served.thread = std::thread([&served] { Run(served); });
    } catch (...) {
      served_.pop_back();
      throw;
    }
  }

  void Stop() override {
    if (listener_ != nullptr) listener_->Close();
    if (acceptor_.joinable()) acceptor_.join();
    std::list<Served> last;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
      last.swap(served_);
    }
    for (Served& served : last) served.connection->Close();
    for (Served& served : last) served.thread.join();
  }

  const Counters& counters() const override { return context_->counters; }
  const std::string& authority_pem() const override {
    return context_->tls->authority_pem();
  }

 private:
  struct Served {
    std::unique_ptr<Connection> connection;
    std::atomic<bool> finished{false};
    std::thread thread;
  };

  static void Run(Served& served) {
    try {
      served.connection->Run();
    } catch (...) {  // Memory ran out: this client's connection ends, no other.
      served.connection->Close();
    }
    served.finished = true;
  }

  void AcceptAll() {
    for (;;) {
      Result<std::unique_ptr<net::Transport>> transport = listener_->Accept();
      if (!transport.ok()) return;
      try {
        Serve(std::move(transport).value());
      } catch (...) {  // No thread or memory for one more client: it is turned away.
      }
    }
  }

  // Requires mutex_.
  void JoinFinished() {
    for (auto served = served_.begin(); served != served_.end();) {
      if (served->finished) {
        served->thread.join();
        served = served_.erase(served);
      } else {
        ++served;
      }
    }
  }

  SystemClock clock_;
  std::unique_ptr<ServerContext> context_;
  std::unique_ptr<net::TcpListener> listener_;
  std::thread acceptor_;
  std::mutex mutex_;
  std::list<Served> served_;  // A list: threads hold references to their elements.
  std::uint64_t next_ = 0;
  bool stopped_ = false;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options,
                                              std::shared_ptr<Engine> engine) {
  auto context = std::make_unique<ServerContext>();
  TRY_ASSIGN(context->tls, TlsSettings::Open(options.certificate_directory));
  context->options = std::move(options);
  context->engine = std::move(engine);
  const bool listens = context->options.listen;
  auto server = std::make_unique<ThreadedServer>(std::move(context));
  if (listens) TRY(server->Listen());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace mssql_cdc::sim::wire
