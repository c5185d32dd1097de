#include "net/faulty.h"

#include <algorithm>

namespace mssql_cdc::net {
namespace {

class FaultyTransport final : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> lower, const TransportFaults& faults)
      : lower_(std::move(lower)), faults_(faults) {}

  Result<std::size_t> Read(std::span<std::uint8_t> into) override {
    if (faults_.read_size_bytes_max) {
      into = into.first(std::min(into.size(), *faults_.read_size_bytes_max));
    }
    if (faults_.lost_after_read_bytes) {
      const std::uint64_t left = *faults_.lost_after_read_bytes - read_bytes_;
      if (left == 0) return Error(ErrorId::kConnectionLost);
      into = into.first(std::min<std::uint64_t>(into.size(), left));
    }
    if (faults_.ended_after_read_bytes) {
      const std::uint64_t left = *faults_.ended_after_read_bytes - read_bytes_;
      into = into.first(std::min<std::uint64_t>(into.size(), left));
      if (into.empty()) return std::size_t{0};
    }
    TRY_ASSIGN(const std::size_t count, lower_->Read(into));
    read_bytes_ += count;
    return count;
  }

  Status Write(std::span<const std::uint8_t> bytes) override {
    if (!faults_.lost_after_written_bytes) return lower_->Write(bytes);
    const std::uint64_t left = *faults_.lost_after_written_bytes - written_bytes_;
    const auto kept = bytes.first(std::min<std::uint64_t>(bytes.size(), left));
    if (!kept.empty()) TRY(lower_->Write(kept));
    written_bytes_ += kept.size();
    if (kept.size() < bytes.size()) return Error(ErrorId::kConnectionLost);
    return Unit{};
  }

  void SetTimeLimitMs(std::int64_t limit_ms) override {
    lower_->SetTimeLimitMs(limit_ms);
  }
  void Close() override { lower_->Close(); }

 private:
  std::unique_ptr<Transport> lower_;
  TransportFaults faults_;
  std::uint64_t read_bytes_ = 0;  // At most what faults_ lets through.
  std::uint64_t written_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Transport> MakeFaulty(std::unique_ptr<Transport> lower,
                                      const TransportFaults& faults) {
  return std::make_unique<FaultyTransport>(std::move(lower), faults);
}

}  // namespace mssql_cdc::net
