// What lies between the simulator's wire and its engine: requests go in, a stream of
// reply parts comes out.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/value.h"

namespace mssql_cdc::sim {

struct ResultColumn {
  std::string name;  // UTF-8; empty for an unnamed expression.
  SqlType type;
  bool nullable = true;
  bool identity = false;
  bool computed = false;
};

// An ERROR (severity above 10) or INFO message of SQL Server.
struct Message {
  std::int32_t number = 0;
  std::uint8_t state = 1;
  std::uint8_t severity = 16;
  std::string text;
  std::string procedure;
  std::int32_t line = 1;
};

// Receives a reply, in order. The wire's implementation writes tokens at once, so a big
// result never sits in memory. A call that returns false means that the client went
// away or asked to stop: the engine ends the request without further calls.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  virtual bool Columns(const std::vector<ResultColumn>& columns) = 0;
  virtual bool Row(const std::vector<Value>& values) = 0;
  // Rows as they go out, for who keeps them (kept_rows.h). `RowForm` says how the
  // result's rows are put into bytes; absent: this sink takes values only, and the
  // other two are never called.
  virtual std::optional<std::string> RowForm() const { return std::nullopt; }
  // Row, and appends to `bytes` what went out.
  virtual bool RowAsBytes(const std::vector<Value>& values, std::string&) {
    return Row(values);
  }
  // Bytes that RowAsBytes gave for the same form, in any portions.
  virtual bool RowBytes(std::string_view) { return false; }
  // Ends one statement. `row_count` absent: no count (SET NOCOUNT, DDL). `command` is
  // the token's curcmd: 0xC1 SELECT, 0xC3 INSERT, 0xC4 DELETE, 0xC5 UPDATE, 0 others.
  virtual bool StatementDone(std::optional<std::uint64_t> row_count,
                             std::uint16_t command) = 0;
  virtual bool SendMessage(const Message& message) = 0;  // ERROR or INFO by severity.
  virtual bool DatabaseChanged(const std::string& from, const std::string& to) = 0;
  virtual bool TransactionBegan(std::uint64_t descriptor) = 0;
  virtual bool TransactionEnded(std::uint64_t descriptor, bool committed) = 0;
  virtual bool ReturnStatus(std::int32_t status) = 0;  // Of a procedure.
  virtual bool ReturnValue(const std::string& name, const SqlType& type,
                           const Value& value) = 0;  // Of an OUTPUT parameter.
};

struct BoundParameter {
  std::string name;  // With @, or empty for a positional one.
  SqlType type;
  Value value;
  bool output = false;
};

enum class IsolationLevel : std::uint8_t {
  kReadUncommitted,
  kReadCommitted,
  kRepeatableRead,
  kSerializable,
  kSnapshot,
};

// One login's session with the engine. Called from one thread at a time.
class EngineSession {
 public:
  virtual ~EngineSession() = default;

  // A batch of statements. Errors go to the sink as messages; the engine decides what
  // they end (statement, batch, transaction), as SQL Server does.
  virtual void Batch(const std::string& sql, ReplySink& sink) = 0;
  // sp_executesql: `sql` with typed parameters, in a scope of its own.
  virtual void ExecuteSql(const std::string& sql,
                          std::vector<BoundParameter> parameters, ReplySink& sink) = 0;
  // A procedure called by name over RPC (brackets and schema as the client wrote them).
  virtual void Procedure(const std::string& name,
                         std::vector<BoundParameter> parameters, ReplySink& sink) = 0;
  // Transaction manager requests. `next`: begin the next transaction at once.
  virtual void BeginTransaction(std::optional<IsolationLevel> level,
                                ReplySink& sink) = 0;
  virtual void CommitTransaction(bool next, ReplySink& sink) = 0;
  virtual void RollbackTransaction(bool next, ReplySink& sink) = 0;
  // RESETCONNECTION: rolls back, restores the login's database and settings.
  virtual void Reset(ReplySink& sink) = 0;

  virtual const std::string& database() const = 0;
  // The collation sent at login and on a database change.
  virtual const std::string& collation() const = 0;

  // Set by the wire when an attention arrives; the engine looks at it between rows.
  std::atomic<bool> stop_requested{false};
};

struct LoginRequest {
  std::string user;
  std::string password;
  std::optional<std::string> access_token;
  std::string database;  // Empty: the login's default.
  std::string application;
  std::string host;
  bool read_only_intent = false;
  std::int32_t spid = 0;
};

// A login that failed: what goes to the client before the connection is closed.
struct LoginFailure {
  Message message;  // 18456, 4060, ...
};

// The simulated server instance: all databases, logins, clock, log.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::variant<std::unique_ptr<EngineSession>, LoginFailure> Login(
      const LoginRequest& request) = 0;
  // "16.0.4185" as major, minor, build: what LOGINACK and PRELOGIN show.
  struct Version {
    std::uint8_t major = 16;
    std::uint8_t minor = 0;
    std::uint16_t build = 4185;
  };
  virtual Version version() const = 0;
};

}  // namespace mssql_cdc::sim
