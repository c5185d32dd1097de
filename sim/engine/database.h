// One database: its file, its published catalog, its log, and who may write.
//
// One transaction writes at a time; it holds the writer lock from its first write to
// its end. Readers use connections of their own and see what was committed when their
// statement (or snapshot) began. The log of transactions that CDC still has to capture
// is in the same file, so a transaction and its log record commit together and a
// transaction of any size stays on disk.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/engine/catalog.h"
#include "sim/engine/cell.h"
#include "sim/engine/database_stay.h"
#include "sim/engine/lsn.h"
#include "sim/engine/sqlite.h"

namespace mssql_cdc::sim {

using CatalogPtr = std::shared_ptr<const Catalog>;

class WriteTransaction;

class Database {
 public:
  struct Identity {
    std::string name;
    std::int32_t id = 0;
    std::string path;
    std::uint64_t seed = 0;
    std::string collation;
    std::string create_date;
  };
  // Opens or creates the file.
  static Result<std::shared_ptr<Database>> Open(Identity identity);

  const std::string& name() const { return identity_.name; }
  std::int32_t id() const { return identity_.id; }
  const std::string& path() const { return identity_.path; }
  const std::string& create_date() const { return identity_.create_date; }
  bool is_system() const { return identity_.id <= 4; }

  CatalogPtr catalog() const;
  Result<std::unique_ptr<Connection>> NewReader() const;
  // What a read transaction belongs to.
  struct Reading {
    CatalogPtr catalog;
    std::uint64_t rewrite_count = 0;  // WriteTransaction::Rewrites.
  };
  // Opens a read transaction on `reader`.
  Reading BeginRead(Connection& reader) const;

  // How waiting for a lock ended. kTimedOut: it was not free in time, or `stop` was
  // set. kDeadlock: who holds it waits for this very owner.
  enum class LockAnswer : std::uint8_t { kHeld, kTimedOut, kDeadlock };
  struct LockWait {
    // Who waits. Null: nobody that holds locks.
    const void* owner = nullptr;
    std::int64_t timeout_ms = -1;  // Below 0: for ever.
    const std::atomic<bool>* stop = nullptr;
  };
  // Waits for the writer lock.
  LockAnswer LockWriter(const LockWait& wait);
  void UnlockWriter();
  // The log records of `lsn` and above do not exist yet. Requires the writer lock.
  LogSequence& log() { return log_; }
  Connection& writer() { return *writer_; }

  // While set, capture stops with this error, as a broken capture job does.
  std::atomic<std::int32_t> capture_fault{0};
  // Set: sys.fn_cdc_get_max_lsn() answers this instead of the newest mapping.
  void FreezeMaxLsn(std::optional<Lsn> lsn);
  std::optional<Lsn> frozen_max_lsn() const;
  // Set: an after image leaves out (max) values that its update did not touch.
  std::atomic<bool> omits_lob_after_images{false};
  // Set: new change tables are as before KB3030352, without __$command_id.
  std::atomic<bool> makes_old_change_tables{false};

  // Exclusive locks on tables, against readers that wait for locks and against writers.
  // A test holds and releases them at once (HoldLock); a session, its own owner, waits
  // for those of others before it reads or takes one.
  void HoldLock(std::int32_t table_id);
  void ReleaseLock(std::int32_t table_id);
  LockAnswer WaitForLock(std::int32_t table_id, bool take, const LockWait& wait);
  // Whether another session holds it.
  bool IsLockedByOthers(std::int32_t table_id, const void* owner);
  void ReleaseLocksOf(const void* owner);

  // Who has it as the current database.
  const std::shared_ptr<StayRegister>& stays() const { return stays_; }

  // Copies the database as it is into a file of that name, and back. Both require the
  // writer lock and no transaction. After the way back the log is another one than
  // before: its recovery fork is new. Errors: SimulatorFailed.
  Status BackUp(const std::string& file);
  Status Restore(const std::string& file);
  std::int64_t recovery_fork() const { return recovery_fork_; }

  // What the Agent last did, in microseconds since 1970 and in days.
  std::atomic<std::int64_t> last_capture_us{0};
  std::atomic<std::int64_t> last_cleanup_us{0};

 private:
  friend class WriteTransaction;
  explicit Database(Identity identity) : identity_(std::move(identity)) {}
  Status Load();
  // `blocker`: who holds the lock; absent: nobody but the one who waits.
  LockAnswer WaitUntilFree(std::unique_lock<std::mutex>& lock, const LockWait& wait,
                           const std::function<std::optional<const void*>()>& blocker);
  bool IsWaitedForBy(const void* owner, const void* other) const;

  const Identity identity_;
  const std::shared_ptr<StayRegister> stays_ = std::make_shared<StayRegister>();
  mutable std::mutex publish_mutex_;  // Commits and the start of reads, catalog_.
  CatalogPtr catalog_;
  std::uint64_t rewrite_count_ = 0;
  std::optional<Lsn> frozen_max_lsn_;
  std::atomic<std::int64_t> recovery_fork_{0};

  std::mutex lock_mutex_;
  std::map<std::int32_t, const void*> held_locks_;  // The owner of each; null: a test.
  std::map<const void*, const void*> waits_;        // Of those that wait: for whom.
  std::condition_variable lock_freed_;
  bool locked_ = false;
  const void* writer_owner_ = nullptr;

  // Owned by whoever holds the writer lock.
  std::unique_ptr<Connection> writer_;
  LogSequence log_;
  std::uint64_t row_version_ = 2000;
  std::int64_t next_transaction_ = 1;
  std::map<std::int32_t, std::int64_t> identities_;  // Last value of each table.
};

// What a log record says.
enum class LogAction : std::uint8_t {
  kDelete = 1,
  kInsert = 2,
  kUpdate = 4,
  kDefinition = 10,  // DDL on a tracked table: `before` holds JSON.
  kInstance = 11,    // A capture instance was created: `before` holds its name.
};

// A transaction that writes one database. Requires the writer lock for its life; its
// end (Commit, Rollback, destructor) frees it.
class WriteTransaction {
 public:
  // `begin_time`: server-local.
  static std::unique_ptr<WriteTransaction> Begin(std::shared_ptr<Database> database,
                                                 const DateTimeValue& begin_time);
  ~WriteTransaction();

  Database& database() { return *database_; }
  Connection& connection() { return database_->writer(); }
  CatalogPtr catalog() const { return current_; }
  // The transaction's own copy, to be changed.
  Catalog& Change();

  // Savepoints nest; `mark` is what SavePoint returned.
  std::size_t SavePoint();
  void RollbackTo(std::size_t mark);
  void Release(std::size_t mark);

  std::optional<std::int64_t> LastIdentity(std::int32_t table_id);
  void SetIdentity(std::int32_t table_id, std::int64_t value);
  std::int64_t RowCount(std::int32_t table_id);
  void AddRowCount(std::int32_t table_id, std::int64_t change);
  std::uint64_t NextRowVersion() { return ++database_->row_version_; }

  // Changes rows of CDC's tables otherwise than by the newest commits: nobody may rely
  // any more on what was read of them. A change of the catalog always does.
  void Rewrites() { rewrites_ = true; }

  // Appends to the log. `before` and `after` are images.
  Lsn NextRecord();
  void Log(LogAction action, std::int32_t table_id, const Lsn& seqval,
           const std::string& before, const std::string& after);
  // Rewrites what the log holds about a table: used when its layout changes.
  bool has_logged() const { return change_count_ > 0; }

  // False: SQLite failed; the transaction is rolled back.
  bool Commit(const DateTimeValue& end_time);
  void Rollback();
  Lsn commit_lsn() const { return commit_lsn_; }

 private:
  explicit WriteTransaction(std::shared_ptr<Database> database)
      : database_(std::move(database)) {}
  bool Flush(const DateTimeValue& end_time);

  struct Mark {
    CatalogPtr catalog;
    std::map<std::int32_t, std::int64_t> row_counts;
    std::int64_t change_count = 0;
  };

  std::shared_ptr<Database> database_;
  CatalogPtr current_;
  CatalogPtr original_;
  std::shared_ptr<Catalog> own_;
  std::vector<Mark> marks_;
  std::map<std::int32_t, std::int64_t> row_counts_;  // Changed ones.
  std::map<std::int32_t, bool> identities_changed_;
  DateTimeValue begin_time_;
  Lsn begin_lsn_;
  Lsn commit_lsn_;
  std::int64_t id_ = 0;
  std::int64_t change_count_ = 0;
  bool open_ = false;
  bool rewrites_ = false;
};

}  // namespace mssql_cdc::sim
