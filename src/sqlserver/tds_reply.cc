#include "sqlserver/tds_session.h"

namespace mssql_cdc::sqlserver {
namespace {

// How much is read on after a failure before the session is given up instead.
constexpr std::uint64_t kDrainSizeBytesMax = 4u << 20;

// Result sets, DONEs and messages of one reply.
constexpr int kEventCountMax = 100'000;

tds::ReplyLimits Limits(const BatchLimits& limits) {
  return {limits.row_count_max, limits.size_bytes_max};
}

}  // namespace

TdsReply::TdsReply(TdsSession& session, const BatchLimits& limits)
    : session_(session), decoder_(Limits(limits)) {}

void TdsReply::Take(const tds::Token& token) {
  if (const auto* message = std::get_if<tds::ServerMessage>(&token)) {
    if (message->is_error && !failure_) {
      failure_ = ErrorFrom(*message, Phase::kRequest, session_.redactor_);
    }
  } else if (const auto* done = std::get_if<tds::Done>(&token)) {
    in_result_ = false;
    // The bit counts even where no ERROR token came.
    const bool failed = (done->status & (tds::kDoneError | tds::kDoneServerError)) != 0;
    if (failed && !failure_) {
      failure_ =
          Error(ErrorId::kServerError).With("message", "the server gave no reason");
    }
  }
}

void TdsReply::Drain() {
  session_.LimitWait();
  const std::uint64_t begin = session_.received_bytes_;
  while (session_.received_bytes_ - begin <= kDrainSizeBytesMax) {
    const auto event = session_.NextEvent(decoder_);
    // A server may close the connection behind a severe error; that error stays the
    // outcome.
    if (!event.ok() || !event.value()) return;
  }
  session_.Close();
}

Status TdsReply::CountEvent(const tds::ReplyEvent& event) {
  if (std::holds_alternative<tds::BatchReady>(event)) return Unit{};
  if (++event_count_ <= kEventCountMax) return Unit{};
  session_.Close();
  return Error(ErrorId::kTdsLimitExceeded)
      .With("during", "a reply")
      .With("limit_tokens", std::to_string(kEventCountMax));
}

Status TdsReply::Failed(Error error) {
  failure_ = std::move(error);
  ended_ = true;
  return *failure_;
}

Result<std::optional<tds::ReplyEvent>> TdsReply::Step() {
  if (failure_ && ended_) return *failure_;
  if (ended_) return std::optional<tds::ReplyEvent>{};
  while (true) {
    auto event = session_.NextEvent(decoder_);
    if (!event.ok()) return Failed(std::move(event).error()).error();
    if (!event.value()) {
      ended_ = true;
      if (session_.attention_sent_) failure_ = Error(ErrorId::kStopped);
      if (failure_) return *failure_;
      return std::optional<tds::ReplyEvent>{};
    }
    const auto counted = CountEvent(*event.value());
    if (!counted.ok()) return Failed(counted.error()).error();
    // What a cancelled request still sends is read, and dropped.
    if (session_.attention_sent_) continue;
    if (const auto* token = std::get_if<tds::Token>(&*event.value())) {
      Take(*token);
      if (failure_) {
        Drain();
        ended_ = true;
        return *failure_;
      }
    }
    return event;
  }
}

Result<std::optional<columns::SchemaPtr>> TdsReply::NextResult() {
  in_result_ = false;
  while (!next_schema_) {
    TRY_ASSIGN(auto event, Step());
    if (!event) return std::optional<columns::SchemaPtr>{};
    if (auto* result = std::get_if<tds::ResultBegins>(&*event)) {
      next_schema_ = std::move(result->schema);
    }
  }
  in_result_ = true;
  return std::exchange(next_schema_, std::nullopt);
}

Result<std::optional<columns::RecordBatch>> TdsReply::NextBatch() {
  while (in_result_) {
    TRY_ASSIGN(auto event, Step());
    if (!event) break;
    if (auto* batch = std::get_if<tds::BatchReady>(&*event)) {
      return std::optional<columns::RecordBatch>(std::move(batch->batch));
    }
    // A result set that follows without a DONE in between.
    if (auto* result = std::get_if<tds::ResultBegins>(&*event)) {
      next_schema_ = std::move(result->schema);
      break;
    }
  }
  in_result_ = false;
  return std::optional<columns::RecordBatch>{};
}

Status TdsReply::Finish() {
  while (true) {
    TRY_ASSIGN(const auto event, Step());
    if (!event) return Unit{};
  }
}

}  // namespace mssql_cdc::sqlserver
