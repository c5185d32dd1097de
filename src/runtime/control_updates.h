// Updates of rows of control tables; a commit holds all that waited for it.
//
// Threads that replace rows of one table at the same time would lose against each
// other, commit after commit. Here the first that comes commits, and those that come
// meanwhile go into the next commit together. A table of many files, which commits of
// single rows leave, becomes one file on the way.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/dice.h"
#include "base/error.h"
#include "lake/lake.h"
#include "pipeline/control.h"

namespace mssql_cdc::runtime {

class ControlUpdates {
 public:
  // Borrows all. Every user of one ControlUpdates brings the same lake.
  struct Place {
    lake::Lake& lake;
    Clock& clock;
    Dice& dice;
    const std::string& location;
  };
  // What a row becomes; nullopt leaves it. Asked again before every try, and from the
  // thread that commits, while the one that wants it waits.
  using Change =
      std::function<std::optional<pipeline::ControlRow>(const pipeline::ControlRow&)>;

  // Replaces the row of `table_name`, an empty one if there is none, by what `change`
  // makes of it. A commit that loses against another writer is tried again for up to a
  // minute. Returns the row as it is then. Errors: LakeConflict, LakeUnreachable (also
  // without a table), the lake's.
  Result<pipeline::ControlRow> Update(const Place& place, const std::string& table_name,
                                      const Change& change);

  // Updates of the table that wait for a commit.
  std::int64_t waiting_count(const std::string& location) const;

 private:
  struct Request {
    const std::string& table_name;
    const Change& change;
    pipeline::ControlRow row;
    std::optional<Status> done;  // Guarded by mutex_.
  };
  struct Queue {
    std::vector<Request*> waiting;
    bool is_busy = false;
  };
  class Commit;

  static Status CommitAll(const Place& place, std::span<Request* const> group);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Queue> queues_;
};

}  // namespace mssql_cdc::runtime
