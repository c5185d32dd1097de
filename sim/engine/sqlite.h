// SQLite as the engine uses it: connections that keep prepared statements, statements
// that go back to their connection when they are done.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace mssql_cdc::sim {

class Connection;

enum class Step : std::uint8_t { kRow, kDone, kUnique, kBusy, kFailed };

// A prepared statement on loan from its connection. Indexes of parameters count from 1,
// of columns from 0, as in SQLite.
class Statement {
 public:
  Statement() = default;
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  explicit operator bool() const { return raw_ != nullptr; }
  sqlite3_stmt* raw() const { return raw_; }
  void BindInt(int index, std::int64_t value);
  void BindBlob(int index, const void* bytes, std::size_t size);  // Copied.
  void BindText(int index, std::string_view text);                // Copied.
  void BindNull(int index);
  Step Next();
  // Steps once over a statement that gives no rows, and makes it ready again.
  Step Run();
  void Reset();
  std::int64_t Int(int column) const;
  std::string_view Blob(int column) const;  // Until the next step.
  bool IsNull(int column) const;

 private:
  friend class Connection;
  Statement(Connection* owner, sqlite3_stmt* raw, const std::string* text)
      : owner_(owner), raw_(raw), text_(text) {}

  Connection* owner_ = nullptr;
  sqlite3_stmt* raw_ = nullptr;
  const std::string* text_ = nullptr;  // Key in the owner's cache; null: kept apart.
};

// Keeps all others from a connection of Users::kMany while it lives.
class Alone {
 public:
  explicit Alone(Connection& connection);
  ~Alone();
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  Connection& connection_;
};

class Connection {
 public:
  // Who uses a connection: one thread at a time, or any at once, each for statements of
  // its own that PrepareApart gave.
  enum class Users : std::uint8_t { kOne, kMany };
  // Opens or creates the database file.
  static Result<std::unique_ptr<Connection>> Open(const std::string& path,
                                                  Users users = Users::kOne);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // A statement that is false if `sql` does not compile (see LastError()).
  Statement Prepare(const std::string& sql);
  // The same, not kept when it is given back.
  Statement PrepareApart(const std::string& sql);
  // Runs statements without results; false on failure.
  bool Execute(const std::string& sql);
  std::string LastError() const;
  std::int64_t LastRowId() const;
  std::int64_t Changes() const;
  // Replaces everything in `target` by what is here. Requires that no statement of
  // either is on loan.
  bool CopyTo(Connection& target);
  // Forgets the prepared statements that are not on loan.
  void DropCache();
  sqlite3* raw() const { return raw_; }

 private:
  friend class Statement;
  explicit Connection(sqlite3* raw) : raw_(raw) {}
  void GiveBack(sqlite3_stmt* statement, const std::string* text);

  sqlite3* raw_;
  std::unordered_map<std::string, std::vector<sqlite3_stmt*>> idle_;
};

}  // namespace mssql_cdc::sim
