// Tells the idle streams of one database which of them have something to read, with one
// statement for all.
//
// A stream that is up to date waits here instead of polling. A round asks for the
// newest commit and, of each table that is waited for, whether its change table has
// anything above what its stream knows of. A round that fails wakes all: each then asks
// for itself, and the one whose table is gone finds out, while the others come back.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cdc/lsn.h"
#include "runtime/session_pool.h"

namespace mssql_cdc::runtime {

class ChangeWatch {
 public:
  // What a stream that begins to wait knows.
  struct Interest {
    std::vector<std::string> capture_instances;
    cdc::Lsn after;  // Up to here it has read, or knows of nothing.
    // From then on any commit above is news; while other tables have changes, only
    // kMoveGraceNs later: who has something to read goes first.
    std::int64_t move_at_ns = 0;
    bool knows_stall = false;  // That the capture stands still is no news.
  };

  static constexpr std::int64_t kMoveGraceNs = 10'000'000'000;
  // What a round learned of one table, and of the database.
  struct Told {
    std::optional<cdc::Lsn> newest;
    bool is_stalled = false;  // The capture stands still.
    bool has_changes = false;
    bool others_have = false;
  };
  static bool IsNews(const Interest& interest, const Told& told, std::int64_t now_ns);

  // Borrows both.
  ChangeWatch(SessionPool& pool, Clock& clock) : pool_(pool), clock_(clock) {}

  // Waits until there is news for the stream, or Stop. Wakes too if nothing was asked
  // for five minutes' time. From the streams' threads.
  void Wait(const Interest& interest);

  // Rounds until Stop: one at once, the next after `first_ms`, each wait twice as long
  // as the one before up to `max_ms`; from the beginning again when a table had
  // changes. One thread's.
  void Run(std::int64_t first_ms, std::int64_t max_ms);
  // One round. Returns whether a table had changes.
  bool Round();
  void Stop();

  // Statements sent so far.
  std::int64_t statement_count() const;
  // Streams that wait now and have not been told of news.
  std::int64_t waiting_count() const;

 private:
  // Each is woken by itself: of hundreds, a round has news for few.
  struct Waiter {
    Waiter(Interest of, std::int64_t now_ns)
        : interest(std::move(of)), since_ns(now_ns) {}
    Interest interest;
    std::int64_t since_ns;
    bool has_news = false;
    std::condition_variable woken;
  };
  // What a round learned.
  struct Answer {
    std::optional<cdc::Lsn> newest;
    std::optional<std::int64_t> age_seconds;
    std::vector<bool> has_changes;  // One for each interest asked about.
  };
  Result<Answer> Ask(const std::vector<Interest>& interests);
  void Wake(const Result<Answer>& answer, const std::vector<Waiter*>& asked);

  SessionPool& pool_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  std::list<Waiter> waiters_;
  bool stopped_ = false;
  std::int64_t statement_count_ = 0;
  SessionPool::Lease session_;  // Of the thread that makes the rounds.
};

// How many streams work at once; the others wait their turn. Bounds the sessions: each
// holds one, and while it reads in ranges up to numPartitions.
class WorkPermits {
 public:
  explicit WorkPermits(std::int64_t count) : free_(count) {}

  class Permit {
   public:
    Permit() = default;
    explicit Permit(WorkPermits* from) : from_(from) {}
    Permit(Permit&& other) noexcept : from_(std::exchange(other.from_, nullptr)) {}
    Permit& operator=(Permit&& other) noexcept {
      GiveBack();
      from_ = std::exchange(other.from_, nullptr);
      return *this;
    }
    ~Permit() { GiveBack(); }
    explicit operator bool() const { return from_ != nullptr; }

   private:
    void GiveBack();
    WorkPermits* from_ = nullptr;
  };

  // Waits for one.
  Permit Take();

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::int64_t free_;
};

}  // namespace mssql_cdc::runtime
