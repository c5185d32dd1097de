// The Session over TDS, and the Reply it gives out.

#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "sqlserver/login.h"
#include "sqlserver/session.h"
#include "tds/reply.h"

namespace mssql_cdc::sqlserver {

class TdsSession final : public Session {
 public:
  // `clock` must outlive the session.
  TdsSession(LoggedIn connection, const ConnectOptions& options, Clock& clock);
  ~TdsSession() override { Close(); }

  Result<std::unique_ptr<Reply>> Execute(const Request& request,
                                         const BatchLimits& limits) override;
  void Cancel() override { cancel_wanted_ = true; }
  bool clean() const override { return state_ == State::kClean; }
  const ServerFacts& facts() const override { return connection_.facts; }
  std::int64_t request_count() const override { return request_count_; }
  void Close() override;

 private:
  friend class TdsReply;
  enum class State : std::uint8_t {
    kClean,    // The next request may be sent.
    kReading,  // A reply is not read to its end.
    kClosed,
  };

  // The next event of the reply, or nullopt at its end: the end of its message or, if
  // an attention was sent, of the message that acknowledges it. Errors close the
  // session.
  Result<std::optional<tds::ReplyEvent>> NextEvent(tds::ReplyDecoder& decoder);
  Result<std::optional<tds::ReplyEvent>> Decode(tds::ReplyDecoder& decoder);
  // Waits for more bytes. Sends the attention once it is wanted.
  Status Receive();
  // Errors: TimedOut once a limit of waiting has passed.
  Status CheckWait(std::int64_t wait_began_ns) const;
  Status SendAttention();
  // From now on the reply must end soon.
  void LimitWait();
  // What a token means for the session as such.
  void Note(const tds::Token& token);

  LoggedIn connection_;
  Redactor redactor_;
  std::int64_t silence_timeout_ms_;
  Clock& clock_;
  tds::RequestContext context_;
  State state_ = State::kClean;
  std::int64_t request_count_ = 0;

  std::atomic<bool> cancel_wanted_ = false;
  bool attention_sent_ = false;
  bool attention_acknowledged_ = false;
  std::optional<std::int64_t> end_deadline_ns_;  // When the reply must have ended.
  std::uint64_t received_bytes_ = 0;             // Since the request was sent.
  std::optional<std::uint64_t> reply_size_bytes_max_;
};

class TdsReply final : public Reply {
 public:
  TdsReply(TdsSession& session, const BatchLimits& limits);

  Result<std::optional<columns::SchemaPtr>> NextResult() override;
  Result<std::optional<columns::RecordBatch>> NextBatch() override;
  Status Finish() override;

 private:
  // The next event that concerns rows, or nullopt at the reply's end. Once something
  // failed, reads on to the end and gives the failure.
  Result<std::optional<tds::ReplyEvent>> Step();
  Status Failed(Error error);
  // Reads on, within bounds, to the end of a reply whose outcome is an error, so that
  // the session stays usable; closes it where that takes too much.
  void Drain();
  void Take(const tds::Token& token);
  // Errors: TdsLimitExceeded for a reply that has more events other than rows than any
  // request of the product can cause.
  Status CountEvent(const tds::ReplyEvent& event);

  TdsSession& session_;
  tds::ReplyDecoder decoder_;
  bool in_result_ = false;
  bool ended_ = false;
  int event_count_ = 0;                            // Other than rows.
  std::optional<columns::SchemaPtr> next_schema_;  // Seen before it was asked for.
  std::optional<Error> failure_;
};

}  // namespace mssql_cdc::sqlserver
