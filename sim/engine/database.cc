#include "sim/engine/database.h"

#include <chrono>
#include <utility>

#include "base/check.h"

namespace mssql_cdc::sim {
namespace {

// state: one row. table_stat: what changes too often for the catalog. log_*: committed
// transactions that capture has not taken yet.
constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS state(id INTEGER PRIMARY KEY, lsn BLOB,"
    " row_version INTEGER, next_transaction INTEGER);"
    "CREATE TABLE IF NOT EXISTS catalog(id INTEGER PRIMARY KEY, json TEXT);"
    "CREATE TABLE IF NOT EXISTS table_stat(table_id INTEGER PRIMARY KEY,"
    " identity_last INTEGER, row_count INTEGER);"
    "CREATE TABLE IF NOT EXISTS log_transaction(id INTEGER PRIMARY KEY, commit_lsn "
    "BLOB,"
    " begin_lsn BLOB, begin_days INTEGER, begin_ticks INTEGER, end_days INTEGER,"
    " end_ticks INTEGER);"
    "CREATE TABLE IF NOT EXISTS log_change(transaction_id INTEGER, number INTEGER,"
    " table_id INTEGER, action INTEGER, seqval BLOB, before BLOB, after BLOB,"
    " PRIMARY KEY(transaction_id, number)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS recovery(id INTEGER PRIMARY KEY, fork INTEGER);";

std::int64_t RowVersionBits(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

Error Failed(const Connection& connection, const std::string& path) {
  return Error(ErrorId::kSimulatorFailed)
      .With("file", path)
      .With("sqlite", connection.LastError());
}

}  // namespace

Result<std::shared_ptr<Database>> Database::Open(Identity identity) {
  std::shared_ptr<Database> database(new Database(std::move(identity)));
  TRY(database->Load());
  return database;
}

Status Database::Load() {
  if (writer_ == nullptr) {
    TRY_ASSIGN(writer_, Connection::Open(identity_.path, Connection::Users::kMany));
  }
  if (!writer_->Execute(kSchema)) return Failed(*writer_, identity_.path);
  identities_.clear();
  {
    Statement state =
        writer_->Prepare("SELECT lsn, row_version, next_transaction FROM state");
    Lsn last;
    if (state && state.Next() == Step::kRow) {
      const std::string_view bytes = state.Blob(0);
      for (std::size_t i = 0; i < last.bytes.size() && i < bytes.size(); ++i) {
        last.bytes[i] = static_cast<std::uint8_t>(bytes[i]);
      }
      row_version_ = static_cast<std::uint64_t>(state.Int(1));
      next_transaction_ = state.Int(2);
    }
    Statement recovery = writer_->Prepare("SELECT fork FROM recovery");
    recovery_fork_ = recovery && recovery.Next() == Step::kRow ? recovery.Int(0) : 0;
    // Each fork's log draws its own distances.
    const auto fork = static_cast<std::uint64_t>(recovery_fork_.load());
    log_ = LogSequence(identity_.seed ^ fork * 0x9E3779B97F4A7C15ull, last);
  }
  {
    Statement identities = writer_->Prepare(
        "SELECT table_id, identity_last FROM table_stat WHERE identity_last IS NOT "
        "NULL");
    while (identities && identities.Next() == Step::kRow) {
      identities_[static_cast<std::int32_t>(identities.Int(0))] = identities.Int(1);
    }
  }
  std::string json;
  {
    Statement catalog = writer_->Prepare("SELECT json FROM catalog");
    if (catalog && catalog.Next() == Step::kRow) json = catalog.Blob(0);
  }
  CatalogPtr loaded;
  if (json.empty()) {
    loaded = std::make_shared<Catalog>(Catalog::New(identity_.collation));
  } else {
    TRY_ASSIGN(Catalog catalog, Catalog::FromJson(json));
    loaded = std::make_shared<Catalog>(std::move(catalog));
  }
  const std::lock_guard lock(publish_mutex_);
  catalog_ = std::move(loaded);
  ++rewrite_count_;
  return Unit{};
}

Status Database::BackUp(const std::string& file) {
  TRY_ASSIGN(std::unique_ptr<Connection> target, Connection::Open(file));
  if (!writer_->CopyTo(*target)) return Failed(*target, file);
  return Unit{};
}

Status Database::Restore(const std::string& file) {
  const std::int64_t fork = recovery_fork_ + 1;
  TRY_ASSIGN(std::unique_ptr<Connection> source, Connection::Open(file));
  if (!source->CopyTo(*writer_)) return Failed(*writer_, identity_.path);
  Statement put =
      writer_->Prepare("INSERT OR REPLACE INTO recovery(id, fork) VALUES(1, ?)");
  put.BindInt(1, fork);
  if (put.Run() != Step::kDone) return Failed(*writer_, identity_.path);
  put = {};
  return Load();
}

void Database::HoldLock(std::int32_t table_id) {
  const std::lock_guard lock(lock_mutex_);
  held_locks_[table_id] = nullptr;
}

void Database::ReleaseLock(std::int32_t table_id) {
  const std::lock_guard lock(lock_mutex_);
  held_locks_.erase(table_id);
  lock_freed_.notify_all();
}

Database::LockAnswer Database::WaitForLock(std::int32_t table_id, bool take,
                                           const LockWait& wait) {
  std::unique_lock lock(lock_mutex_);
  const LockAnswer answer =
      WaitUntilFree(lock, wait, [&]() -> std::optional<const void*> {
        const auto held = held_locks_.find(table_id);
        if (held == held_locks_.end() || held->second == wait.owner)
          return std::nullopt;
        return held->second;
      });
  if (answer == LockAnswer::kHeld && take) held_locks_[table_id] = wait.owner;
  return answer;
}

bool Database::IsLockedByOthers(std::int32_t table_id, const void* owner) {
  const std::lock_guard lock(lock_mutex_);
  const auto held = held_locks_.find(table_id);
  return held != held_locks_.end() && held->second != nullptr && held->second != owner;
}

void Database::ReleaseLocksOf(const void* owner) {
  const std::lock_guard lock(lock_mutex_);
  std::erase_if(held_locks_, [&](const auto& held) { return held.second == owner; });
  lock_freed_.notify_all();
}

CatalogPtr Database::catalog() const {
  const std::lock_guard lock(publish_mutex_);
  return catalog_;
}

Result<std::unique_ptr<Connection>> Database::NewReader() const {
  return Connection::Open(identity_.path);
}

Database::Reading Database::BeginRead(Connection& reader) const {
  const std::lock_guard lock(publish_mutex_);
  // SQLite takes its snapshot at the first read, not at BEGIN.
  Statement begin = reader.Prepare("BEGIN");
  begin.Run();
  Statement touch = reader.Prepare("SELECT lsn FROM state");
  touch.Run();
  return {catalog_, rewrite_count_};
}

Database::LockAnswer Database::LockWriter(const LockWait& wait) {
  std::unique_lock lock(lock_mutex_);
  const LockAnswer answer =
      WaitUntilFree(lock, wait, [&]() -> std::optional<const void*> {
        return locked_ ? std::optional(writer_owner_) : std::nullopt;
      });
  if (answer != LockAnswer::kHeld) return answer;
  locked_ = true;
  writer_owner_ = wait.owner;
  return answer;
}

// Whether `other` waits for `owner`, at once or through others that wait.
bool Database::IsWaitedForBy(const void* owner, const void* other) const {
  for (std::size_t i = 0; i <= waits_.size() && other != nullptr; ++i) {
    if (other == owner) return true;
    const auto next = waits_.find(other);
    other = next == waits_.end() ? nullptr : next->second;
  }
  return false;
}

Database::LockAnswer Database::WaitUntilFree(
    std::unique_lock<std::mutex>& lock, const LockWait& wait,
    const std::function<std::optional<const void*>()>& blocker) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(wait.timeout_ms);
  LockAnswer answer = LockAnswer::kHeld;
  while (const std::optional<const void*> holder = blocker()) {
    if (wait.owner != nullptr && IsWaitedForBy(wait.owner, *holder)) {
      answer = LockAnswer::kDeadlock;
      break;
    }
    if (wait.owner != nullptr) waits_[wait.owner] = *holder;
    const auto now = std::chrono::steady_clock::now();
    const bool late = wait.timeout_ms >= 0 && now >= deadline;
    if (late || (wait.stop != nullptr && wait.stop->load())) {
      answer = LockAnswer::kTimedOut;
      break;
    }
    auto until = now + std::chrono::milliseconds(20);
    if (wait.timeout_ms >= 0 && deadline < until) until = deadline;
    lock_freed_.wait_until(lock, until);
  }
  waits_.erase(wait.owner);
  return answer;
}

void Database::UnlockWriter() {
  {
    const std::lock_guard lock(lock_mutex_);
    locked_ = false;
    writer_owner_ = nullptr;
  }
  lock_freed_.notify_all();
}

void Database::FreezeMaxLsn(std::optional<Lsn> lsn) {
  const std::lock_guard lock(publish_mutex_);
  frozen_max_lsn_ = lsn;
}

std::optional<Lsn> Database::frozen_max_lsn() const {
  const std::lock_guard lock(publish_mutex_);
  return frozen_max_lsn_;
}

std::unique_ptr<WriteTransaction> WriteTransaction::Begin(
    std::shared_ptr<Database> database, const DateTimeValue& begin_time) {
  std::unique_ptr<WriteTransaction> transaction(
      new WriteTransaction(std::move(database)));
  Statement begin = transaction->connection().Prepare("BEGIN IMMEDIATE");
  if (!begin || begin.Run() != Step::kDone) {
    transaction->database_->UnlockWriter();
    return nullptr;
  }
  transaction->open_ = true;
  transaction->begin_time_ = begin_time;
  transaction->current_ = transaction->database_->catalog();
  transaction->original_ = transaction->current_;
  transaction->id_ = transaction->database_->next_transaction_++;
  return transaction;
}

WriteTransaction::~WriteTransaction() {
  if (open_) Rollback();
}

Catalog& WriteTransaction::Change() {
  // A savepoint that still refers to this copy keeps it as it is.
  const bool alone = own_ != nullptr && own_.use_count() == 2;
  if (!alone) {
    own_ = std::make_shared<Catalog>(*current_);
    current_ = own_;
  }
  return *own_;
}

std::size_t WriteTransaction::SavePoint() {
  const std::size_t mark = marks_.size();
  connection().Prepare("SAVEPOINT s" + std::to_string(mark)).Run();
  marks_.push_back({current_, row_counts_, change_count_});
  return mark;
}

void WriteTransaction::RollbackTo(std::size_t mark) {
  connection().Prepare("ROLLBACK TO s" + std::to_string(mark)).Run();
  current_ = marks_[mark].catalog;
  own_ = nullptr;
  row_counts_ = marks_[mark].row_counts;
  change_count_ = marks_[mark].change_count;
  marks_.resize(mark + 1);
}

void WriteTransaction::Release(std::size_t mark) {
  connection().Prepare("RELEASE s" + std::to_string(mark)).Run();
  marks_.resize(mark);
}

std::optional<std::int64_t> WriteTransaction::LastIdentity(std::int32_t table_id) {
  const auto found = database_->identities_.find(table_id);
  if (found == database_->identities_.end()) return std::nullopt;
  return found->second;
}

void WriteTransaction::SetIdentity(std::int32_t table_id, std::int64_t value) {
  database_->identities_[table_id] = value;
  identities_changed_[table_id] = true;
}

std::int64_t WriteTransaction::RowCount(std::int32_t table_id) {
  const auto found = row_counts_.find(table_id);
  if (found != row_counts_.end()) return found->second;
  Statement read =
      connection().Prepare("SELECT row_count FROM table_stat WHERE table_id = ?");
  read.BindInt(1, table_id);
  return read.Next() == Step::kRow ? read.Int(0) : 0;
}

void WriteTransaction::AddRowCount(std::int32_t table_id, std::int64_t change) {
  row_counts_[table_id] = RowCount(table_id) + change;
}

Lsn WriteTransaction::NextRecord() {
  if (begin_lsn_.IsZero()) {
    database_->log_.NextBlock();
    begin_lsn_ = database_->log_.NextRecord();
  }
  return database_->log_.NextRecord();
}

void WriteTransaction::Log(LogAction action, std::int32_t table_id, const Lsn& seqval,
                           const std::string& before, const std::string& after) {
  Statement insert =
      connection().Prepare("INSERT INTO log_change VALUES(?, ?, ?, ?, ?, ?, ?)");
  insert.BindInt(1, id_);
  insert.BindInt(2, ++change_count_);
  insert.BindInt(3, table_id);
  insert.BindInt(4, static_cast<int>(action));
  insert.BindBlob(5, seqval.bytes.data(), seqval.bytes.size());
  insert.BindBlob(6, before.data(), before.size());
  insert.BindBlob(7, after.data(), after.size());
  insert.Run();
}

bool WriteTransaction::Flush(const DateTimeValue& end_time) {
  for (const auto& [table_id, changed] : identities_changed_) {
    Statement put = connection().Prepare(
        "INSERT INTO table_stat(table_id, identity_last) VALUES(?, ?)"
        " ON CONFLICT(table_id) DO UPDATE SET identity_last = excluded.identity_last");
    put.BindInt(1, table_id);
    put.BindInt(2, database_->identities_[table_id]);
    if (put.Run() != Step::kDone) return false;
  }
  for (const auto& [table_id, count] : row_counts_) {
    Statement put = connection().Prepare(
        "INSERT INTO table_stat(table_id, row_count) VALUES(?, ?)"
        " ON CONFLICT(table_id) DO UPDATE SET row_count = excluded.row_count");
    put.BindInt(1, table_id);
    put.BindInt(2, count);
    if (put.Run() != Step::kDone) return false;
  }
  if (begin_lsn_.IsZero()) {
    database_->log_.NextBlock();
    begin_lsn_ = database_->log_.NextRecord();
  }
  commit_lsn_ = database_->log_.NextRecord();
  if (change_count_ > 0) {
    Statement put =
        connection().Prepare("INSERT INTO log_transaction VALUES(?, ?, ?, ?, ?, ?, ?)");
    put.BindInt(1, id_);
    put.BindBlob(2, commit_lsn_.bytes.data(), commit_lsn_.bytes.size());
    put.BindBlob(3, begin_lsn_.bytes.data(), begin_lsn_.bytes.size());
    put.BindInt(4, begin_time_.days);
    put.BindInt(5, begin_time_.ticks);
    put.BindInt(6, end_time.days);
    put.BindInt(7, end_time.ticks);
    if (put.Run() != Step::kDone) return false;
  }
  if (current_ != original_) {
    Statement put = connection().Prepare(
        "INSERT INTO catalog(id, json) VALUES(1, ?)"
        " ON CONFLICT(id) DO UPDATE SET json = excluded.json");
    put.BindText(1, current_->ToJson());
    if (put.Run() != Step::kDone) return false;
  }
  Statement state = connection().Prepare(
      "INSERT INTO state VALUES(1, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET"
      " lsn = excluded.lsn, row_version = excluded.row_version,"
      " next_transaction = excluded.next_transaction");
  state.BindBlob(1, commit_lsn_.bytes.data(), commit_lsn_.bytes.size());
  state.BindInt(2, RowVersionBits(database_->row_version_));
  state.BindInt(3, database_->next_transaction_);
  return state.Run() == Step::kDone;
}

bool WriteTransaction::Commit(const DateTimeValue& end_time) {
  if (!Flush(end_time)) {
    Rollback();
    return false;
  }
  {
    const std::lock_guard lock(database_->publish_mutex_);
    Statement commit = connection().Prepare("COMMIT");
    if (commit.Run() == Step::kDone) {
      database_->catalog_ = current_;
      if (rewrites_ || current_ != original_) ++database_->rewrite_count_;
      open_ = false;
    }
  }
  if (open_) {
    Rollback();
    return false;
  }
  database_->UnlockWriter();
  return true;
}

void WriteTransaction::Rollback() {
  if (!open_) return;
  open_ = false;
  connection().Prepare("ROLLBACK").Run();
  database_->UnlockWriter();
}

}  // namespace mssql_cdc::sim
