#include "sim/wire/connection.h"

#include <thread>

#include "sim/quoting.h"

namespace mssql_cdc::sim::wire {
namespace {

// How long a client may take over its login.
constexpr std::int64_t kLoginLimitMs = 60'000;
constexpr std::size_t kWaitingMessageCountMax = 8;

// The engine's answer to a reset: only what the client must know of it.
class ResetSink final : public ReplySink {
 public:
  explicit ResetSink(Reply& reply) : reply_(reply) {}

  bool Columns(const std::vector<ResultColumn>&) override { return true; }
  bool Row(const std::vector<Value>&) override { return true; }
  bool StatementDone(std::optional<std::uint64_t>, std::uint16_t) override {
    return true;
  }
  bool SendMessage(const Message&) override { return true; }
  bool DatabaseChanged(const std::string& from, const std::string& to) override {
    return reply_.DatabaseChanged(from, to);
  }
  bool TransactionBegan(std::uint64_t descriptor) override {
    return reply_.TransactionBegan(descriptor);
  }
  bool TransactionEnded(std::uint64_t descriptor, bool committed) override {
    return reply_.TransactionEnded(descriptor, committed);
  }
  bool ReturnStatus(std::int32_t) override { return true; }
  bool ReturnValue(const std::string&, const SqlType&, const Value&) override {
    return true;
  }

 private:
  Reply& reply_;
};

// Reads into an inbox; ends, with the connection, when it goes.
class InboxThread {
 public:
  InboxThread(Inbox& inbox, net::Transport& transport)
      : inbox_(inbox), transport_(transport), thread_([&inbox] { inbox.Run(); }) {}
  ~InboxThread() {
    transport_.Close();
    inbox_.Close();
    thread_.join();
  }
  InboxThread(const InboxThread&) = delete;
  InboxThread& operator=(const InboxThread&) = delete;

 private:
  Inbox& inbox_;
  net::Transport& transport_;
  std::thread thread_;
};

}  // namespace

void Inbox::Run() {
  try {
    ReadAll();
  } catch (...) {  // Memory ran out: this client's connection ends.
  }
  Close();
}

void Inbox::ReadAll() {
  ClientMessage message;
  while (link_.ReadMessage(message)) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (message.type == tds::PacketType::kAttention) stop_ = true;
    changed_.wait(
        lock, [this] { return closed_ || messages_.size() < kWaitingMessageCountMax; });
    if (closed_) return;
    messages_.push_back(std::move(message));
    changed_.notify_all();
  }
}

std::optional<ClientMessage> Inbox::Take() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return closed_ || !messages_.empty(); });
  if (messages_.empty()) return std::nullopt;
  ClientMessage message = std::move(messages_.front());
  messages_.pop_front();
  if (message.type == tds::PacketType::kAttention) stop_ = closed_;
  changed_.notify_all();
  return message;
}

void Inbox::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  stop_ = true;
  changed_.notify_all();
}

void Connection::Run() {
  transport_->SetTimeLimitMs(kLoginLimitMs);
  std::optional<LoggedIn> logged_in = LogIn(link_, context_, spid_);
  if (logged_in) {
    transport_->SetTimeLimitMs(0);
    link_.SetMessageSizeMax(context_.options.message_size_bytes_max);
    ServeRequests(std::move(*logged_in));
  }
  transport_->Close();
}

void Connection::ServeRequests(LoggedIn logged_in) {
  session_ = std::move(logged_in.session);
  dialect_ = logged_in.dialect;
  packets_ = std::make_unique<PacketWriter>(
      static_cast<std::uint16_t>(spid_),
      [this](std::string_view bytes) { return link_.Write(bytes); },
      [this](PacketWriter::Parts parts) { return link_.WriteParts(parts); });
  packets_->SetPacketSize(logged_in.packet_size_bytes);
  reply_ = std::make_unique<Reply>(*packets_, dialect_, context_.options.server_name,
                                   session_->stop_requested);
  reply_->FollowCollation(*session_);
  {
    Inbox inbox(link_, session_->stop_requested);
    const InboxThread reader(inbox, *transport_);
    while (const std::optional<ClientMessage> message = inbox.Take()) {
      if (!Answer(*message)) break;
    }
  }
  reply_.reset();
  session_.reset();  // Rolls back what is open.
}

bool Connection::Answer(const ClientMessage& message) {
  if (message.type == tds::PacketType::kAttention) {
    ++context_.counters.attentions;
    reply_->AcknowledgeAttention();
    return !packets_->broken();
  }
  ++context_.counters.messages;
  bool understood = false;
  switch (message.type) {
    case tds::PacketType::kSqlBatch:
      understood = AnswerBatch(message);
      break;
    case tds::PacketType::kRpc:
      understood = AnswerCalls(message);
      break;
    case tds::PacketType::kTransactionManager:
      understood = AnswerTransaction(message);
      break;
    case tds::PacketType::kBulkLoad:  // Only after INSERT BULK, which is refused.
    case tds::PacketType::kReply:
    case tds::PacketType::kAttention:
    case tds::PacketType::kFederatedToken:
    case tds::PacketType::kLogin7:
    case tds::PacketType::kSspi:
    case tds::PacketType::kPrelogin:
      break;
  }
  if (!understood) {
    ++context_.counters.malformed;
    return false;
  }
  reply_->EndMessage();
  return !packets_->broken() && !reply_->broken();
}

void Connection::ResetIfAsked(const ClientMessage& message) {
  const bool reset = (message.status & tds::kStatusResetConnection) != 0;
  const bool keeps_transaction =
      (message.status & tds::kStatusResetConnectionKeepTransaction) != 0;
  if (!reset && !keeps_transaction) return;
  reply_->AcknowledgeReset();
  // The engine resets with a rollback; a transaction that is to be kept goes first.
  if (keeps_transaction && reply_->in_transaction()) return;
  prepared_.clear();
  ResetSink sink(*reply_);
  session_->Reset(sink);
}

bool Connection::AnswerBatch(const ClientMessage& message) {
  const std::optional<std::string> sql = ParseBatch(message.body, dialect_.version);
  if (!sql) return false;
  ++context_.counters.requests;
  reply_->StartBatch();
  ResetIfAsked(message);
  session_->Batch(*sql, *reply_);
  reply_->FinishBatch();
  return true;
}

bool Connection::AnswerCalls(const ClientMessage& message) {
  std::optional<RpcRequest> request = ParseRpc(message.body, dialect_.version);
  if (!request) return false;
  reply_->StartBatch();
  ResetIfAsked(message);
  for (std::size_t i = 0; i < request->calls.size(); ++i) {
    ++context_.counters.requests;
    const bool last = i + 1 == request->calls.size();
    if (last && request->refused) {
      reply_->StartCall(Reply::Status::kOfEngine);
      const std::string token = std::to_string(request->refused->type);
      SendError(8009,
                "The incoming tabular data stream (TDS) protocol stream is incorrect. "
                "Parameter " +
                    std::to_string(request->refused->index + 1) + " (\"" +
                    request->refused->name + "\"): Data type " + token +
                    " is unknown.");
    } else {
      Call(request->calls[i]);
    }
    if (session_->stop_requested) {
      reply_->FinishBatch();
      return true;
    }
    reply_->FinishCall(!last);
  }
  return true;
}

bool Connection::AnswerTransaction(const ClientMessage& message) {
  const std::optional<TransactionRequest> request =
      ParseTransactionRequest(message.body, dialect_.version);
  if (!request) return false;
  ++context_.counters.requests;
  reply_->StartBatch();
  ResetIfAsked(message);
  switch (request->kind) {
    case TransactionRequest::Kind::kBegin:
      session_->BeginTransaction(request->level, *reply_);
      break;
    case TransactionRequest::Kind::kCommit:
      session_->CommitTransaction(request->begins_next, *reply_);
      break;
    case TransactionRequest::Kind::kRollback:
      if (request->name.empty()) {
        session_->RollbackTransaction(request->begins_next, *reply_);
      } else {
        session_->Batch("ROLLBACK TRANSACTION " + Bracketed(request->name), *reply_);
      }
      break;
    case TransactionRequest::Kind::kSave:
      session_->Batch("SAVE TRANSACTION " + Bracketed(request->name), *reply_);
      break;
    case TransactionRequest::Kind::kOther:
      SendError(8501, "MSDTC on server '" + context_.options.server_name +
                          "' is unavailable.");
      break;
  }
  reply_->FinishBatch();
  return true;
}

void Connection::SendError(std::int32_t number, const std::string& text) {
  Message message;
  message.number = number;
  message.text = text;
  reply_->SendMessage(message);
}

}  // namespace mssql_cdc::sim::wire
