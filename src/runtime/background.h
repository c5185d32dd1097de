// One piece of work at a time, done while something else goes on.

#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"

namespace mssql_cdc::runtime {

class Background {
 public:
  ~Background() { (void)Wait(); }

  // Requires that the last work was waited for.
  void Start(std::function<Status()> work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    thread_ = std::thread([this, work = std::move(work)] {
      Status status = work();
      if (!status.ok()) failure_ = std::move(status).error();
    });
  }

  // The work's error, to everybody who asks from now on. From several threads.
  Status Wait() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (thread_.joinable()) thread_.join();
    if (failure_) return *failure_;
    return Unit{};
  }

 private:
  std::mutex mutex_;
  std::thread thread_;
  std::optional<Error> failure_;  // Written by the thread, read once it has ended.
};

}  // namespace mssql_cdc::runtime
