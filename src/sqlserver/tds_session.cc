#include "sqlserver/tds_session.h"

#include <algorithm>

#include "base/check.h"
#include "sqlserver/messages.h"

namespace mssql_cdc::sqlserver {
namespace {

// How long a wait goes on before it looks whether the request is to be cancelled.
constexpr std::int64_t kCancelPollMs = 50;
// How long the end of a reply is waited for whose outcome is known.
constexpr std::int64_t kEndWaitMs = 5'000;

}  // namespace

Result<std::unique_ptr<Session>> Session::Open(const ConnectOptions& options,
                                               net::Dialer& dialer, Clock& clock) {
  TRY_ASSIGN(LoggedIn connection, LogIn(options, dialer, clock));
  return std::unique_ptr<Session>(
      std::make_unique<TdsSession>(std::move(connection), options, clock));
}

TdsSession::TdsSession(LoggedIn connection, const ConnectOptions& options, Clock& clock)
    : connection_(std::move(connection)),
      redactor_(RedactorOf(options)),
      silence_timeout_ms_(options.silence_timeout_ms),
      clock_(clock) {
  context_.collation = connection_.collation;
}

void TdsSession::Close() {
  state_ = State::kClosed;
  connection_.transport->Close();
}

Result<std::unique_ptr<Reply>> TdsSession::Execute(const Request& request,
                                                   const BatchLimits& limits) {
  if (state_ == State::kClosed) return Error(ErrorId::kConnectionLost);
  if (state_ != State::kClean) {
    return Error(ErrorId::kInternalError)
        .With("why", "a request while the reply to another is unread");
  }
  const bool as_batch = request.parameters.empty();
  const auto payload =
      as_batch ? tds::EncodeBatch(request.sql, context_)
               : tds::EncodeExecuteSql(request.sql, request.parameters, context_);
  cancel_wanted_ = false;
  attention_sent_ = false;
  attention_acknowledged_ = false;
  end_deadline_ns_.reset();
  received_bytes_ = 0;
  reply_size_bytes_max_ = limits.reply_size_bytes_max;
  connection_.reader.BeginMessage();
  state_ = State::kReading;
  connection_.transport->SetTimeLimitMs(silence_timeout_ms_);
  const auto sent =
      SendMessage(*connection_.transport,
                  as_batch ? tds::PacketType::kSqlBatch : tds::PacketType::kRpc,
                  payload, connection_.packet_size_bytes);
  if (!sent.ok()) {
    Close();
    return sent.error();
  }
  ++request_count_;
  return std::unique_ptr<Reply>(std::make_unique<TdsReply>(*this, limits));
}

void TdsSession::LimitWait() {
  if (!end_deadline_ns_)
    end_deadline_ns_ = clock_.MonotonicNs() + kEndWaitMs * 1'000'000;
}

Status TdsSession::SendAttention() {
  attention_sent_ = true;
  LimitWait();
  connection_.transport->SetTimeLimitMs(kEndWaitMs);
  return SendMessage(*connection_.transport, tds::PacketType::kAttention, {},
                     connection_.packet_size_bytes);
}

Status TdsSession::CheckWait(std::int64_t wait_began_ns) const {
  const std::int64_t now_ns = clock_.MonotonicNs();
  const bool silent = silence_timeout_ms_ > 0 &&
                      now_ns - wait_began_ns >= silence_timeout_ms_ * 1'000'000;
  const bool endless = end_deadline_ns_ && now_ns >= *end_deadline_ns_;
  if (!silent && !endless) return Unit{};
  return Error(ErrorId::kTimedOut)
      .With("during", endless ? "the end of a reply" : "a reply")
      .With("limit_ms", std::to_string(endless ? kEndWaitMs : silence_timeout_ms_));
}

Status TdsSession::Receive() {
  const std::int64_t began_ns = clock_.MonotonicNs();
  while (true) {
    if (cancel_wanted_ && !attention_sent_) TRY(SendAttention());
    TRY(CheckWait(began_ns));
    connection_.transport->SetTimeLimitMs(kCancelPollMs);
    const auto received = ReceiveInto(*connection_.transport, connection_.reader);
    if (received.ok()) {
      received_bytes_ += received.value();
      if (!reply_size_bytes_max_ || received_bytes_ <= *reply_size_bytes_max_) {
        return Unit{};
      }
      return Error(ErrorId::kTdsLimitExceeded)
          .With("during", "a reply")
          .With("limit_bytes", std::to_string(*reply_size_bytes_max_));
    }
    if (received.error().id() != ErrorId::kTimedOut) return received.error();
  }
}

void TdsSession::Note(const tds::Token& token) {
  if (const auto* transaction = std::get_if<tds::TransactionChanged>(&token)) {
    context_.transaction_descriptor = transaction->descriptor;
  } else if (const auto* database = std::get_if<tds::DatabaseChanged>(&token)) {
    connection_.facts.database = database->name;
  } else if (const auto* done = std::get_if<tds::Done>(&token)) {
    if ((done->status & tds::kDoneAttention) != 0) attention_acknowledged_ = true;
  }
}

Result<std::optional<tds::ReplyEvent>> TdsSession::Decode(tds::ReplyDecoder& decoder) {
  tds::PacketReader& reader = connection_.reader;
  while (true) {
    // Also without bytes: rows may wait in the decoder.
    TRY_ASSIGN(tds::ReplyProgress progress,
               decoder.Consume(reader.Payload(), !reader.message_ended()));
    reader.Consume(progress.consumed);
    if (!std::holds_alternative<tds::NeedMore>(progress.event)) {
      return std::optional<tds::ReplyEvent>(std::move(progress.event));
    }
    TRY_ASSIGN(const bool advanced, reader.Advance());
    if (advanced) continue;
    if (!reader.message_ended()) {
      TRY(Receive());
      continue;
    }
    if (!reader.Payload().empty() || !decoder.at_boundary()) {
      return Error(ErrorId::kTdsMalformed).With("why", "the reply ends inside a token");
    }
    // The acknowledgement of an attention may be a message of its own, behind the one
    // that was interrupted.
    const bool complete = !attention_sent_ || attention_acknowledged_;
    if (!complete) {
      reader.BeginMessage();
      continue;
    }
    if (reader.has_more_than_message()) {
      return Error(ErrorId::kTdsMalformed).With("why", "bytes behind the reply");
    }
    state_ = State::kClean;
    return std::optional<tds::ReplyEvent>{};
  }
}

Result<std::optional<tds::ReplyEvent>> TdsSession::NextEvent(
    tds::ReplyDecoder& decoder) {
  if (state_ != State::kReading) return Error(ErrorId::kConnectionLost);
  if (cancel_wanted_ && !attention_sent_ && !connection_.reader.message_ended()) {
    const auto sent = SendAttention();
    if (!sent.ok()) {
      Close();
      return sent.error();
    }
  }
  auto event = Decode(decoder);
  if (!event.ok()) {
    Close();
  } else if (event.value()) {
    if (const auto* token = std::get_if<tds::Token>(&*event.value())) Note(*token);
  }
  return event;
}

}  // namespace mssql_cdc::sqlserver
