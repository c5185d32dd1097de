// A source's options, parsed, and what the runtime's steps borrow while they work on
// it: the base of planner, task and driver.

#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "extension/links.h"
#include "lake/lake.h"
#include "runtime/run_context.h"
#include "runtime/stream.h"

namespace mssql_cdc::extension {

// Keeps warnings until somebody takes them.
class Warnings final : public runtime::StreamObserver {
 public:
  void OnWarning(const std::string& text) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    texts_.push_back(text);
  }
  std::vector<std::string> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(texts_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

class SourceContext {
 public:
  // Borrows `lake`, which may be absent where none is touched. Warns of options that
  // nobody knows. Errors: those of cdc::ParseSourceOptions and of LinkOf; OptionInvalid
  // for a backend that is not there.
  static Result<std::unique_ptr<SourceContext>> Open(const Options& options,
                                                     const Access& access,
                                                     lake::Lake* lake);

  runtime::StreamConfig& config() { return config_; }
  runtime::RunContext& run() { return run_; }
  runtime::SessionPool& pool() { return *link_.pool; }
  runtime::SessionSource& sessions() { return *link_.sessions; }
  Clock& clock() { return link_.clock; }
  Warnings& warnings() { return warnings_; }
  // Ends what is being read.
  void Stop() { stop_ = true; }

  // What the server says of the source, asked once. Errors: those of AskSource.
  Status KnowSource(sqlserver::Session& session,
                    const std::optional<cdc::SourceMemory>& memory);
  bool knows_source() const { return knows_source_; }
  // The next KnowSource asks again.
  void ForgetSource() { knows_source_ = false; }

  // Runs `step`, and again after an error that may pass: at once, since a kept session
  // may have died unnoticed, then after a pause. Nothing is taken over from a failed
  // attempt.
  template <typename T, typename F>
  Result<T> WithRetries(F step);

 private:
  SourceContext(runtime::StreamConfig config, Link& link, lake::Lake* lake);

  runtime::StreamConfig config_;
  Link& link_;
  std::unique_ptr<lake::Lake> no_lake_;
  Warnings warnings_;
  std::atomic<bool> stop_{false};
  runtime::RunContext run_;
  bool knows_source_ = false;
};

template <typename T, typename F>
Result<T> SourceContext::WithRetries(F step) {
  for (std::int64_t attempt = 0;; ++attempt) {
    Result<T> result = step();
    const bool may_pass = !result.ok() && result.error().remedy() == Remedy::kRetry &&
                          result.error().id() != ErrorId::kStopped && !stop_;
    if (!may_pass || attempt >= config_.retry_count_max) return result;
    link_.pool->DropIdle();
    if (attempt > 0) clock().SleepMs(config_.retry_wait_first_ms << (attempt - 1));
  }
}

}  // namespace mssql_cdc::extension
