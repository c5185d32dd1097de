#include "net/pipe.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <vector>

namespace mssql_cdc::net {
namespace {

// One direction: a ring of bytes that grows up to its capacity.
struct Channel {
  explicit Channel(std::size_t capacity) : capacity_bytes(capacity) {}

  const std::size_t capacity_bytes;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::uint8_t> bytes;  // Unread: [begin, bytes.size()).
  std::size_t begin = 0;
  bool writer_closed = false;
  bool reader_closed = false;

  std::size_t unread() const { return bytes.size() - begin; }
};

template <typename Ready>
bool WaitFor(Channel& channel, std::unique_lock<std::mutex>& lock,
             std::int64_t limit_ms, Ready ready) {
  if (limit_ms <= 0) {
    channel.changed.wait(lock, ready);
    return true;
  }
  return channel.changed.wait_for(lock, std::chrono::milliseconds(limit_ms), ready);
}

class PipeEnd final : public Transport {
 public:
  PipeEnd(std::shared_ptr<Channel> in, std::shared_ptr<Channel> out)
      : in_(std::move(in)), out_(std::move(out)) {}
  ~PipeEnd() override { Close(); }

  Result<std::size_t> Read(std::span<std::uint8_t> into) override {
    if (into.empty()) return std::size_t{0};
    std::unique_lock lock(in_->mutex);
    const bool ready = WaitFor(*in_, lock, limit_ms_, [&] {
      return in_->unread() > 0 || in_->writer_closed || in_->reader_closed;
    });
    if (!ready) return Error(ErrorId::kTimedOut);
    if (in_->reader_closed) return Error(ErrorId::kConnectionLost);
    const std::size_t count = std::min(in_->unread(), into.size());
    if (count == 0) return std::size_t{0};
    std::memcpy(into.data(), in_->bytes.data() + in_->begin, count);
    in_->begin += count;
    if (in_->begin == in_->bytes.size()) {
      in_->bytes.clear();
      in_->begin = 0;
    }
    in_->changed.notify_all();
    return count;
  }

  Status Write(std::span<const std::uint8_t> bytes) override {
    while (!bytes.empty()) {
      std::unique_lock lock(out_->mutex);
      const bool ready = WaitFor(*out_, lock, limit_ms_, [&] {
        return out_->unread() < out_->capacity_bytes || out_->reader_closed ||
               out_->writer_closed;
      });
      if (!ready) return Error(ErrorId::kTimedOut);
      if (out_->reader_closed || out_->writer_closed) {
        return Error(ErrorId::kConnectionLost);
      }
      if (out_->begin > 0 && out_->bytes.size() + bytes.size() > out_->capacity_bytes) {
        out_->bytes.erase(
            out_->bytes.begin(),
            out_->bytes.begin() + static_cast<std::ptrdiff_t>(out_->begin));
        out_->begin = 0;
      }
      const std::size_t count =
          std::min(bytes.size(), out_->capacity_bytes - out_->unread());
      out_->bytes.insert(out_->bytes.end(), bytes.begin(),
                         bytes.begin() + static_cast<std::ptrdiff_t>(count));
      bytes = bytes.subspan(count);
      out_->changed.notify_all();
    }
    return Unit{};
  }

  void SetTimeLimitMs(std::int64_t limit_ms) override { limit_ms_ = limit_ms; }

  void Close() override {
    {
      const std::lock_guard lock(in_->mutex);
      in_->reader_closed = true;
      in_->changed.notify_all();
    }
    const std::lock_guard lock(out_->mutex);
    out_->writer_closed = true;
    out_->changed.notify_all();
  }

 private:
  std::shared_ptr<Channel> in_;
  std::shared_ptr<Channel> out_;
  std::int64_t limit_ms_ = 0;
};

}  // namespace

std::pair<std::unique_ptr<Transport>, std::unique_ptr<Transport>> MakePipe(
    std::size_t capacity_bytes) {
  auto there = std::make_shared<Channel>(capacity_bytes);
  auto back = std::make_shared<Channel>(capacity_bytes);
  return {std::make_unique<PipeEnd>(back, there),
          std::make_unique<PipeEnd>(there, back)};
}

}  // namespace mssql_cdc::net
