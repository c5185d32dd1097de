#include "sim/engine/sqlite.h"

#include <sqlite3.h>

#include <utility>

#include "base/check.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::size_t kCachedStatementsMax = 2000;

Step StepOf(int code) {
  switch (code & 0xFF) {
    case SQLITE_ROW:
      return Step::kRow;
    case SQLITE_DONE:
      return Step::kDone;
    case SQLITE_CONSTRAINT:
      return Step::kUnique;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Step::kBusy;
    default:
      return Step::kFailed;
  }
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)),
      raw_(std::exchange(other.raw_, nullptr)),
      text_(std::exchange(other.text_, nullptr)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  if (this != &other) {
    if (raw_ != nullptr) owner_->GiveBack(raw_, text_);
    owner_ = std::exchange(other.owner_, nullptr);
    raw_ = std::exchange(other.raw_, nullptr);
    text_ = std::exchange(other.text_, nullptr);
  }
  return *this;
}

Statement::~Statement() {
  if (raw_ != nullptr) owner_->GiveBack(raw_, text_);
}

void Statement::BindInt(int index, std::int64_t value) {
  sqlite3_bind_int64(raw_, index, value);
}
void Statement::BindBlob(int index, const void* bytes, std::size_t size) {
  // A null pointer would bind NULL; an empty blob is a value.
  sqlite3_bind_blob64(raw_, index, size == 0 ? "" : bytes, size, SQLITE_TRANSIENT);
}
void Statement::BindText(int index, std::string_view text) {
  sqlite3_bind_text64(raw_, index, text.empty() ? "" : text.data(), text.size(),
                      SQLITE_TRANSIENT, SQLITE_UTF8);
}
void Statement::BindNull(int index) { sqlite3_bind_null(raw_, index); }

Step Statement::Next() { return StepOf(sqlite3_step(raw_)); }

Step Statement::Run() {
  const Step step = Next();
  if (step == Step::kRow || step == Step::kDone) sqlite3_reset(raw_);
  return step;
}

void Statement::Reset() { sqlite3_reset(raw_); }

std::int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(raw_, column);
}

std::string_view Statement::Blob(int column) const {
  const void* bytes = sqlite3_column_blob(raw_, column);
  const int size = sqlite3_column_bytes(raw_, column);
  return {static_cast<const char*>(bytes == nullptr ? "" : bytes),
          static_cast<std::size_t>(size)};
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(raw_, column) == SQLITE_NULL;
}

Alone::Alone(Connection& connection) : connection_(connection) {
  sqlite3_mutex_enter(sqlite3_db_mutex(connection_.raw()));
}

Alone::~Alone() { sqlite3_mutex_leave(sqlite3_db_mutex(connection_.raw())); }

Result<std::unique_ptr<Connection>> Connection::Open(const std::string& path,
                                                     Users users) {
  sqlite3* raw = nullptr;
  const int mutex = users == Users::kMany ? SQLITE_OPEN_FULLMUTEX : SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(
      path.c_str(), &raw,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | mutex, nullptr);
  if (code != SQLITE_OK) {
    Error error = Error(ErrorId::kSimulatorFailed)
                      .With("file", path)
                      .With("sqlite", sqlite3_errstr(code));
    sqlite3_close(raw);
    return error;
  }
  std::unique_ptr<Connection> connection(new Connection(raw));
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, 60'000);
  // OFF survives the end of the process at any moment: what was written is the
  // system's. Only a power cut can damage the file.
  if (!connection->Execute("PRAGMA journal_mode=WAL;"
                           "PRAGMA synchronous=OFF;"
                           "PRAGMA temp_store=MEMORY;"
                           "PRAGMA cache_size=-65536;"
                           "PRAGMA mmap_size=4294967296;"
                           "PRAGMA wal_autocheckpoint=4000;")) {
    return Error(ErrorId::kSimulatorFailed)
        .With("file", path)
        .With("sqlite", connection->LastError());
  }
  return connection;
}

Connection::~Connection() {
  DropCache();
  sqlite3_close_v2(raw_);
}

Statement Connection::Prepare(const std::string& sql) {
  auto [entry, inserted] = idle_.try_emplace(sql);
  if (!entry->second.empty()) {
    sqlite3_stmt* statement = entry->second.back();
    entry->second.pop_back();
    return Statement(this, statement, &entry->first);
  }
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(raw_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) {
    sqlite3_finalize(statement);
    return {};
  }
  return Statement(this, statement, &entry->first);
}

Statement Connection::PrepareApart(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v3(raw_, sql.data(), static_cast<int>(sql.size()), 0, &statement,
                     nullptr);
  return statement == nullptr ? Statement() : Statement(this, statement, nullptr);
}

bool Connection::Execute(const std::string& sql) {
  return sqlite3_exec(raw_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

std::string Connection::LastError() const { return sqlite3_errmsg(raw_); }
std::int64_t Connection::LastRowId() const { return sqlite3_last_insert_rowid(raw_); }
std::int64_t Connection::Changes() const { return sqlite3_changes64(raw_); }

bool Connection::CopyTo(Connection& target) {
  DropCache();
  target.DropCache();
  sqlite3_backup* copy = sqlite3_backup_init(target.raw_, "main", raw_, "main");
  if (copy == nullptr) return false;
  sqlite3_backup_step(copy, -1);
  return sqlite3_backup_finish(copy) == SQLITE_OK;
}

void Connection::DropCache() {
  for (auto& [text, statements] : idle_) {
    for (sqlite3_stmt* statement : statements) sqlite3_finalize(statement);
    statements.clear();
  }
}

void Connection::GiveBack(sqlite3_stmt* statement, const std::string* text) {
  if (text == nullptr) {
    sqlite3_finalize(statement);
    return;
  }
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  std::vector<sqlite3_stmt*>& idle = idle_.at(*text);
  if (idle.size() >= 4 || idle_.size() > kCachedStatementsMax) {
    sqlite3_finalize(statement);
    return;
  }
  idle.push_back(statement);
}

}  // namespace mssql_cdc::sim
