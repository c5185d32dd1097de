#include "tds/reply.h"

#include <optional>
#include <string>
#include <utility>

#include "tds/row_decoder.h"

namespace mssql_cdc::tds {
namespace {

bool EndsRows(TokenId id) {
  return id == TokenId::kDone || id == TokenId::kDoneProc ||
         id == TokenId::kDoneInProc || id == TokenId::kColMetadata;
}

}  // namespace

class ReplyDecoder::Impl {
 public:
  explicit Impl(const ReplyLimits& limits) : limits_(limits) {}

  Result<ReplyProgress> Consume(std::span<const std::uint8_t> payload,
                                bool more_follows) {
    auto progress = Next(payload, more_follows);
    if (progress.ok()) offset_ += progress.value().consumed;
    return progress;
  }

  bool at_boundary() const {
    return !rows_ || (!rows_->in_row() && !rows_->has_rows());
  }

 private:
  Result<ReplyProgress> Next(std::span<const std::uint8_t> payload, bool more_follows) {
    std::size_t consumed = 0;
    if (rows_) {
      TRY_ASSIGN(consumed, rows_->Decode(payload, offset_, more_follows));
      if (rows_->batch_is_full()) {
        return ReplyProgress{consumed, BatchReady{rows_->TakeBatch()}};
      }
      if (rows_->row_waits()) return ReplyProgress{consumed, NeedMore{}};
    }
    if (consumed == payload.size()) return ReplyProgress{consumed, NeedMore{}};

    const auto rest = payload.subspan(consumed);
    const auto id = static_cast<TokenId>(rest[0]);
    if (rows_ && rows_->has_rows() && EndsRows(id)) {
      return ReplyProgress{consumed, BatchReady{rows_->TakeBatch()}};
    }
    if (id == TokenId::kColMetadata) return Metadata(rest, consumed);
    if (id == TokenId::kRow || id == TokenId::kNbcRow) {
      // Were there columns, the row decoder would have taken it.
      return At(Error(ErrorId::kTdsMalformed).With("token", "ROW without COLMETADATA"),
                consumed);
    }
    return Other(rest, consumed, id);
  }

  Result<ReplyProgress> Metadata(std::span<const std::uint8_t> rest,
                                 std::size_t consumed) {
    Reader in(rest);
    auto plan = ReadColMetadata(in);
    if (!plan.ok()) return At(std::move(plan).error(), consumed);
    if (!plan.value().has_value()) {
      if (rest.size() >= kReplyTailSizeBytesMax) {
        return At(Error(ErrorId::kTdsLimitExceeded).With("token", "COLMETADATA"),
                  consumed);
      }
      return ReplyProgress{consumed, NeedMore{}};
    }
    consumed += in.offset();
    rows_.reset();
    if (plan.value()->columns.empty()) {
      return ReplyProgress{consumed, Token(Skipped{TokenId::kColMetadata})};
    }
    rows_.emplace(std::move(*plan.value()), limits_);
    return ReplyProgress{consumed, ResultBegins{rows_->schema()}};
  }

  Result<ReplyProgress> Other(std::span<const std::uint8_t> rest, std::size_t consumed,
                              TokenId id) {
    Reader in(rest);
    auto token = DecodeToken(in);
    if (!token.ok()) return At(std::move(token).error(), consumed);
    if (!token.value().has_value()) {
      if (rest.size() >= kReplyTailSizeBytesMax) {
        return At(Error(ErrorId::kTdsLimitExceeded)
                      .With("token", std::to_string(static_cast<unsigned>(id))),
                  consumed);
      }
      return ReplyProgress{consumed, NeedMore{}};
    }
    if (EndsRows(id)) rows_.reset();
    if (std::holds_alternative<FedAuthInfo>(*token.value())) {
      return At(Error(ErrorId::kTdsRefusedToken).With("token", "FEDAUTHINFO"),
                consumed);
    }
    return ReplyProgress{consumed + in.offset(), std::move(*token.value())};
  }

  Error At(Error error, std::size_t consumed) const {
    error.Add("offset", std::to_string(offset_ + consumed));
    return error;
  }

  ReplyLimits limits_;
  std::optional<RowDecoder> rows_;  // Of the current result set.
  std::uint64_t offset_ = 0;        // Bytes of the reply consumed before.
};

ReplyDecoder::ReplyDecoder(ReplyLimits limits)
    : impl_(std::make_unique<Impl>(limits)) {}
ReplyDecoder::~ReplyDecoder() = default;
ReplyDecoder::ReplyDecoder(ReplyDecoder&&) noexcept = default;
ReplyDecoder& ReplyDecoder::operator=(ReplyDecoder&&) noexcept = default;

Result<ReplyProgress> ReplyDecoder::Consume(std::span<const std::uint8_t> payload,
                                            bool more_follows) {
  return impl_->Consume(payload, more_follows);
}

bool ReplyDecoder::at_boundary() const { return impl_->at_boundary(); }

}  // namespace mssql_cdc::tds
