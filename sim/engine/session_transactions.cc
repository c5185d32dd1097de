// A session's transactions: statements, savepoints, snapshots, the writer lock.

#include <algorithm>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/session.h"
#include "sim/engine/stored_table.h"

namespace mssql_cdc::sim {

Session::View& Session::ViewOf(const std::shared_ptr<Database>& database) {
  View& view = views_[database.get()];
  if (view.database == nullptr) view.database = database;
  return view;
}

CatalogPtr Session::CatalogOf(const std::shared_ptr<Database>& database) {
  View& view = ViewOf(database);
  if (view.transaction != nullptr) return view.transaction->catalog();
  if (view.reading) return view.read_catalog;
  return database->catalog();
}

Connection& Session::Reader(const std::shared_ptr<Database>& database) {
  View& view = ViewOf(database);
  if (view.transaction != nullptr) return view.transaction->connection();
  if (view.reader == nullptr) {
    Result<std::unique_ptr<Connection>> opened = database->NewReader();
    if (!opened.ok()) {
      RaiseSql(
          945, 16, 2,
          "Database '" + database->name() +
              "' cannot be opened due to inaccessible files or insufficient memory "
              "or disk space.");
    }
    view.reader = std::move(opened).value();
  }
  if (!view.reading) {
    Database::Reading reading = database->BeginRead(*view.reader);
    view.read_catalog = std::move(reading.catalog);
    view.rewrite_count = reading.rewrite_count;
    view.reading = true;
  }
  return *view.reader;
}

std::optional<std::uint64_t> Session::RewriteCount(
    const std::shared_ptr<Database>& database) {
  Reader(database);
  const View& view = ViewOf(database);
  if (view.transaction != nullptr) return std::nullopt;
  return view.rewrite_count;
}

void Session::EndReads() {
  for (auto& [key, view] : views_) {
    if (!view.reading) continue;
    view.reader->Prepare("COMMIT").Run();
    view.reading = false;
    view.read_catalog = nullptr;
  }
}

Database::LockWait Session::OwnWait() const {
  return {this, settings_.lock_timeout_ms, &(EngineSession::stop_requested)};
}

void Session::Require(Database::LockAnswer answer) {
  if (answer == Database::LockAnswer::kDeadlock) RaiseFault(1205);
  if (answer == Database::LockAnswer::kTimedOut) RaiseFault(1222);
}

WriteTransaction& Session::Write(const std::shared_ptr<Database>& database) {
  View& view = ViewOf(database);
  if (on_secondary() && database != temporary_ && Does(Behaviour::kSecondaryReadOnly)) {
    RaiseSql(3906, 16, 2,
             "Failed to update database \"" + database->name() +
                 "\" because the database is read-only.");
  }
  if (view.transaction == nullptr) {
    Require(database->LockWriter(OwnWait()));
    view.transaction = WriteTransaction::Begin(database, Now());
    if (view.transaction == nullptr) {
      RaiseSql(945, 16, 2, "Database '" + database->name() + "' cannot be opened.");
    }
  }
  if (!frames_.empty() && transaction_count_ > 0) {
    Frame& frame = frames_.back();
    if (frame.kind != StatementKind::kExecute &&
        frame.marks.count(database.get()) == 0) {
      frame.marks[database.get()] = view.transaction->SavePoint();
    }
  }
  return *view.transaction;
}

bool Session::RunsStatement() const {
  return std::any_of(frames_.begin(), frames_.end(), [](const Frame& frame) {
    return frame.kind != StatementKind::kExecute;
  });
}

bool Session::CommitAll() {
  bool all = true;
  const DateTimeValue now = Now();
  for (auto& [key, view] : views_) {
    if (view.transaction == nullptr) continue;
    all = view.transaction->Commit(now) && all;
    view.transaction = nullptr;
  }
  ReleaseLocks();
  return all;
}

void Session::ReleaseLocks() {
  for (const auto& database : locked_) database->ReleaseLocksOf(this);
  locked_.clear();
}

void Session::RollbackAll() {
  for (auto& [key, view] : views_) {
    if (view.transaction != nullptr) view.transaction->Rollback();
    view.transaction = nullptr;
  }
  for (Frame& frame : frames_) frame.marks.clear();
  saves_.clear();
  ReleaseLocks();
  EndReads();
}

bool Session::KeepsSnapshot() const {
  if (transaction_count_ == 0) return false;
  return settings_.isolation == IsolationLevel::kSnapshot ||
         (on_secondary() && Does(Behaviour::kSecondarySnapshot));
}

bool Session::on_secondary() const {
  return request_.read_only_intent && server_->readable_secondary;
}

void Session::RequireAlive() {
  if (era_ == server_->era && !stay_.has_ended()) return;
  RollbackAll();
  transaction_count_ = 0;
  RaiseSql(596, 21, 1,
           "Cannot continue the execution because the session is in the kill state.");
}

void Session::StatementBegins(StatementKind kind, ReplySink& sink) {
  RequireAlive();
  if (settings_.implicit_transactions && transaction_count_ == 0 &&
      kind != StatementKind::kExecute) {
    BeginTransaction(std::string(), sink);
  }
  frames_.push_back({kind, {}});
}

void Session::StatementEnds(bool succeeded, ReplySink&) {
  if (frames_.empty()) return;
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  for (const auto& [database, mark] : frame.marks) {
    View& view = views_[database];
    if (view.transaction == nullptr) continue;
    if (!succeeded) view.transaction->RollbackTo(mark);
    view.transaction->Release(mark);
  }
  if (transaction_count_ == 0 && !RunsStatement()) FinishAutoCommit(succeeded);
  ReadsEnd();
}

void Session::ReadsEnd() {
  if (!RunsStatement() && !KeepsSnapshot()) EndReads();
}

void Session::FinishAutoCommit(bool succeeded) {
  if (!succeeded) {
    RollbackAll();
    return;
  }
  if (!CommitAll()) {
    RaiseSql(9001, 21, 1,
             "The log for database '" + current_->name() + "' is not available.");
  }
}

std::int32_t Session::transaction_state() const {
  if (transaction_count_ == 0) return 0;
  return doomed_ ? -1 : 1;
}

void Session::BeginTransaction(const std::string& name, ReplySink& sink) {
  if (transaction_count_++ > 0) return;
  transaction_name_ = name;
  transaction_descriptor_ = server_->NextTransactionDescriptor();
  EndReads();
  sink.TransactionBegan(transaction_descriptor_);
}

void Session::CommitTransaction(ReplySink& sink) {
  if (transaction_count_ == 0) {
    RaiseSql(3902, 16, 1,
             "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.");
  }
  if (doomed_) {
    RaiseSql(
        3930, 16, 1,
        "The current transaction cannot be committed and cannot support operations "
        "that write to the log file. Roll back the transaction.");
  }
  if (transaction_count_ > 1) {
    --transaction_count_;
    return;
  }
  EndTransaction(true, sink);
}

void Session::EndTransaction(bool committed, ReplySink& sink) {
  bool kept = committed;
  if (committed) {
    for (Frame& frame : frames_) frame.marks.clear();
    saves_.clear();
    kept = CommitAll();
  } else {
    RollbackAll();
  }
  transaction_count_ = 0;
  doomed_ = false;
  transaction_name_.clear();
  EndReads();
  sink.TransactionEnded(transaction_descriptor_, kept);
  if (committed && !kept) {
    RaiseSql(9001, 21, 1,
             "The log for database '" + current_->name() + "' is not available.");
  }
}

void Session::RollbackTransaction(const std::string& name, ReplySink& sink) {
  if (transaction_count_ == 0) {
    RaiseSql(
        3903, 16, 1,
        "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.");
  }
  if (name.empty() || EqualsIgnoringAsciiCase(name, transaction_name_)) {
    EndTransaction(false, sink);
    return;
  }
  for (std::size_t i = saves_.size(); i-- > 0;) {
    if (!EqualsIgnoringAsciiCase(saves_[i].name, name)) continue;
    for (auto& [key, view] : views_) {
      if (view.transaction == nullptr) continue;
      const auto mark = saves_[i].marks.find(key);
      if (mark != saves_[i].marks.end()) {
        view.transaction->RollbackTo(mark->second);
      } else {
        // Its first write came after the savepoint.
        view.transaction->Rollback();
        view.transaction = nullptr;
      }
    }
    saves_.resize(i + 1);
    return;
  }
  RaiseSql(6401, 16, 1,
           "Cannot roll back " + name +
               ". No transaction or savepoint of that name was found.");
}

void Session::SaveTransaction(const std::string& name) {
  if (transaction_count_ == 0) {
    RaiseSql(628, 16, 0,
             "Cannot issue SAVE TRANSACTION when there is no active transaction.");
  }
  Save save;
  save.name = name;
  for (auto& [key, view] : views_) {
    if (view.transaction != nullptr) save.marks[key] = view.transaction->SavePoint();
  }
  saves_.push_back(std::move(save));
}

}  // namespace mssql_cdc::sim
