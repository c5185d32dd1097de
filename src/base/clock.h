// Where time comes from. Product code never asks the system clock itself: it is handed
// a Clock, so that a test decides what time it is and never sleeps.

#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace mssql_cdc {

class Clock {
 public:
  virtual ~Clock() = default;
  // Microseconds since 1970-01-01 UTC.
  virtual std::int64_t NowUtcUs() = 0;
  // Nanoseconds from an arbitrary start; never goes back.
  virtual std::int64_t MonotonicNs() = 0;
  virtual void SleepMs(std::int64_t duration_ms) = 0;
};

class SystemClock final : public Clock {
 public:
  std::int64_t NowUtcUs() override {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::int64_t MonotonicNs() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void SleepMs(std::int64_t duration_ms) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(duration_ms));
  }
};

// A clock that moves only when told to, or when somebody sleeps on it.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::int64_t now_utc_us) : now_utc_us_(now_utc_us) {}
  std::int64_t NowUtcUs() override { return now_utc_us_; }
  std::int64_t MonotonicNs() override { return monotonic_ns_; }
  void SleepMs(std::int64_t duration_ms) override { AdvanceMs(duration_ms); }
  void AdvanceMs(std::int64_t duration_ms) {
    now_utc_us_ += duration_ms * 1000;
    monotonic_ns_ += duration_ms * 1'000'000;
  }

 private:
  std::int64_t now_utc_us_;
  std::int64_t monotonic_ns_ = 0;
};

}  // namespace mssql_cdc
