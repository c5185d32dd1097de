// One client from its first byte to its last: login, then requests until it leaves.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/session.h"
#include "sim/wire/column.h"
#include "sim/wire/link.h"
#include "sim/wire/reply.h"
#include "sim/wire/request.h"
#include "sim/wire/server.h"
#include "sim/wire/tls.h"

namespace mssql_cdc::sim::wire {

// What all connections of a server share.
struct ServerContext {
  ServerOptions options;
  std::shared_ptr<Engine> engine;
  std::unique_ptr<TlsSettings> tls;
  Counters counters;
};

// A client that is logged in.
struct LoggedIn {
  std::unique_ptr<EngineSession> session;
  Dialect dialect;
  std::size_t packet_size_bytes = 4096;
};

// PRELOGIN, TLS and LOGIN7, and the reply to them. nullopt: the connection must end,
// with whatever the client has to know already said.
std::optional<LoggedIn> LogIn(Link& link, ServerContext& context, std::int32_t spid);

// Reads messages on a thread of its own, so that an attention reaches the engine while
// it works. Holds few messages; the client waits when it sends more.
class Inbox {
 public:
  Inbox(Link& link, std::atomic<bool>& stop) : link_(link), stop_(stop) {}

  // Runs until the client is gone.
  void Run();
  // The next message; nullopt: no more will come. A taken attention clears `stop`.
  std::optional<ClientMessage> Take();
  // Ends Run at its next message.
  void Close();

 private:
  void ReadAll();

  Link& link_;
  std::atomic<bool>& stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ClientMessage> messages_;
  bool closed_ = false;
};

class Connection {
 public:
  Connection(std::unique_ptr<net::Transport> transport, ServerContext& context,
             std::int32_t spid)
      : transport_(std::move(transport)),
        context_(context),
        spid_(spid),
        link_(*transport_) {}

  // Serves the client until it leaves or breaks the protocol.
  void Run();
  // Makes Run end. Safe from another thread.
  void Close() { transport_->Close(); }

 private:
  struct Prepared {
    bool is_procedure = false;
    std::string text;          // The statement, or the procedure's name.
    std::string declarations;  // "@P1 int, @P2 nvarchar(max)".
  };

  void ServeRequests(LoggedIn logged_in);
  // Answers one message; false: the connection must end.
  bool Answer(const ClientMessage& message);
  void ResetIfAsked(const ClientMessage& message);
  bool AnswerBatch(const ClientMessage& message);
  bool AnswerCalls(const ClientMessage& message);
  bool AnswerTransaction(const ClientMessage& message);

  // calls.cc: the procedures that the wire carries out itself, and all others.
  void Call(RpcCall& call);
  void CallExecuteSql(RpcCall& call);
  void CallPrepare(RpcCall& call);
  void CallExecute(RpcCall& call);
  void CallPrepExec(RpcCall& call, bool is_procedure);
  void CallUnprepare(RpcCall& call);
  void CallOther(RpcCall& call);
  // `first_index`: the place of the first of `parameters` in the call.
  void RunPrepared(const Prepared& prepared, std::vector<RpcParameter> parameters,
                   std::size_t first_index);
  void RunStatement(const std::string& sql, const std::string& declarations,
                    std::vector<RpcParameter> parameters, std::size_t first_index);
  void RunProcedure(const std::string& name, std::vector<RpcParameter> parameters,
                    std::size_t first_index);
  void SendError(std::int32_t number, const std::string& text);

  std::unique_ptr<net::Transport> transport_;
  ServerContext& context_;
  std::int32_t spid_;
  Link link_;

  // From login on.
  std::unique_ptr<EngineSession> session_;
  Dialect dialect_;
  std::unique_ptr<PacketWriter> packets_;
  std::unique_ptr<Reply> reply_;
  std::map<std::int32_t, Prepared> prepared_;
  std::int32_t last_handle_ = 0;
};

}  // namespace mssql_cdc::sim::wire
