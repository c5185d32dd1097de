#include "sim/wire/fault_transport.h"

#include <algorithm>

#include "net/faulty.h"

namespace mssql_cdc::sim::wire {
namespace {

// A login with its certificates takes some 3000 bytes; beyond is the replies' part.
constexpr std::uint64_t kFaultBytesMax = 20'000;
constexpr std::size_t kPieceSizeBytesMax = 700;
constexpr std::int64_t kDelayMsMax = 20;

class FaultTransport final : public net::Transport {
 public:
  FaultTransport(std::unique_ptr<net::Transport> lower, const FaultPlan& plan,
                 Clock& clock)
      : lower_(std::move(lower)), plan_(plan), clock_(clock), dice_(plan.seed) {}

  Result<std::size_t> Read(std::span<std::uint8_t> into) override {
    return lower_->Read(into);
  }

  Status Write(std::span<const std::uint8_t> bytes) override {
    if (dropped_) return Error(ErrorId::kConnectionLost);
    while (!bytes.empty()) {
      std::size_t size = bytes.size();
      if (plan_.piece_size_bytes_max) {
        size =
            std::min<std::size_t>(size, 1 + dice_.Below(*plan_.piece_size_bytes_max));
      }
      if (plan_.delay_ms_max > 0) {
        clock_.SleepMs(static_cast<std::int64_t>(
            dice_.Below(static_cast<std::uint64_t>(plan_.delay_ms_max) + 1)));
      }
      const Status written = WritePiece(bytes.first(size));
      if (!written.ok()) lower_->Close();
      TRY(written);
      if (dropped_) return Unit{};
      bytes = bytes.subspan(size);
    }
    return Unit{};
  }

  void SetTimeLimitMs(std::int64_t limit_ms) override {
    lower_->SetTimeLimitMs(limit_ms);
  }
  void Close() override { lower_->Close(); }

 private:
  Status WritePiece(std::span<const std::uint8_t> piece) {
    if (plan_.drop_after_bytes) {
      const std::uint64_t left = *plan_.drop_after_bytes - written_bytes_;
      if (left < piece.size()) {
        // The server believes that all of it went out; the client hears the end.
        dropped_ = true;
        if (left > 0) TRY(lower_->Write(piece.first(left)));
        lower_->Close();
        return Unit{};
      }
    }
    written_bytes_ += piece.size();
    return lower_->Write(piece);
  }

  std::unique_ptr<net::Transport> lower_;
  const FaultPlan plan_;
  Clock& clock_;
  Dice dice_;
  std::uint64_t written_bytes_ = 0;  // At most what the plan lets through.
  bool dropped_ = false;
};

}  // namespace

FaultPlan DrawFaults(Dice& dice) {
  FaultPlan plan;
  plan.seed = dice.Next();
  const std::uint64_t kind = dice.Below(5);
  if (kind == 1 || kind == 2) {
    plan.piece_size_bytes_max = 1 + dice.Below(kPieceSizeBytesMax);
  }
  if (kind == 2) plan.delay_ms_max = kDelayMsMax;
  if (kind == 3) plan.cut_after_bytes = dice.Below(kFaultBytesMax);
  if (kind == 4) plan.drop_after_bytes = dice.Below(kFaultBytesMax);
  return plan;
}

std::unique_ptr<net::Transport> WithFaults(std::unique_ptr<net::Transport> lower,
                                           const FaultPlan& plan, Clock& clock) {
  if (plan.cut_after_bytes) {
    lower = net::MakeFaulty(std::move(lower),
                            {.lost_after_written_bytes = plan.cut_after_bytes});
  }
  return std::make_unique<FaultTransport>(std::move(lower), plan, clock);
}

}  // namespace mssql_cdc::sim::wire
