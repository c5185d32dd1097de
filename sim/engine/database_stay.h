// A session's stay in its current database: while there are stays, the database is in
// use and is not dropped. SET SINGLE_USER WITH ROLLBACK IMMEDIATE ends them all but
// one.

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

namespace mssql_cdc::sim {

// Who stays in one database. Threads: all members may be called from any.
class StayRegister {
 public:
  // Whether somebody stays besides `own_count` stays of the asking session.
  bool HoldsOthers(std::int64_t own_count) const;
  // Ends all stays but `kept`, which may be null: each that has ended says so from then
  // on.
  void EndAll(class DatabaseStay* kept);

  bool single_user() const;
  void SetSingleUser(bool on);

 private:
  friend class DatabaseStay;
  mutable std::mutex mutex_;
  std::uint64_t era_ = 0;
  std::int64_t count_ = 0;  // Of this era.
  bool single_user_ = false;
};

class DatabaseStay {
 public:
  DatabaseStay() = default;
  explicit DatabaseStay(std::shared_ptr<StayRegister> place);
  ~DatabaseStay() { Leave(); }
  DatabaseStay(const DatabaseStay&) = delete;
  DatabaseStay& operator=(DatabaseStay&& other) noexcept;

  // It was ended by somebody else.
  bool has_ended() const;

 private:
  friend class StayRegister;
  void Leave();

  std::shared_ptr<StayRegister> place_;
  std::uint64_t era_ = 0;
};

}  // namespace mssql_cdc::sim
