// A session with SQL Server: logs in, sends one request at a time, hands its reply on.
//
// A session is kept and reused between requests. One whose reply was not read to its
// end (or to the acknowledgement of an attention) is not clean: it is closed, never
// reused.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "columns/batch.h"
#include "net/transport.h"
#include "sqlserver/connection_string.h"
#include "tds/reply_limits.h"
#include "tds/requests.h"

namespace mssql_cdc::sqlserver {

using Parameter = tds::Parameter;

struct Question;  // question.h

struct Request {
  std::string sql;                    // UTF-8.
  std::vector<Parameter> parameters;  // None: sent as a batch, else sp_executesql.
  // The same as values, for a backend that reads no T-SQL; absent: only the text says.
  std::shared_ptr<const Question> question = nullptr;
};

struct BatchLimits {
  std::int64_t row_count_max = kBatchRowCountDefault;
  std::size_t size_bytes_max = tds::kBatchSizeBytesDefault;
  // How much the whole reply may take on the wire; absent: as much as there is.
  std::optional<std::uint64_t> reply_size_bytes_max = std::nullopt;
};

class Session;

// The reply to one request, read forward. Dropping it before Finish leaves the session
// unclean.
class Reply {
 public:
  virtual ~Reply() = default;
  // Goes to the next result set (skipping what is unread of this one) and gives its
  // columns, or nullopt when there is none. Errors: what the server reported, as
  // ServerError, PermissionDenied, ServerBusy, ... with facts number, class, state,
  // message; TDS errors; ConnectionLost.
  virtual Result<std::optional<columns::SchemaPtr>> NextResult() = 0;
  // The next rows of the current result set, nullopt at its end.
  virtual Result<std::optional<columns::RecordBatch>> NextBatch() = 0;
  // Reads to the end. Any ERROR token or DONE.ERROR bit on the way is an error, even
  // after rows were handed on.
  virtual Status Finish() = 0;
};

struct ServerFacts {
  std::string product;  // "Microsoft SQL Server"
  std::uint8_t major_version = 0;
  std::uint8_t minor_version = 0;
  std::uint16_t build = 0;
  std::string database;
  bool encrypted = false;
};

class Session {
 public:
  virtual ~Session() = default;

  // Connects, sets up encryption, logs in, follows redirections (at most 5). Everything
  // within options.connect_timeout_ms. The login asks for ODBC's session settings: ANSI
  // behaviour and long values in whole, so that no SET has to follow. `clock` must
  // outlive the session.
  // Errors: net's, TDS's, EncryptionRefused, LoginFailed, DatabaseUnavailable,
  // ServerBusy, TooManyRoutes.
  static Result<std::unique_ptr<Session>> Open(const ConnectOptions& options,
                                               net::Dialer& dialer, Clock& clock);

  // Sends `request`. Requires that the previous Reply was finished. The Reply borrows
  // the session.
  virtual Result<std::unique_ptr<Reply>> Execute(const Request& request,
                                                 const BatchLimits& limits) = 0;
  // Asks the server to stop the running request (attention), from any thread; nothing
  // happens if none is running. Whoever reads the reply gets Stopped once the server
  // has acknowledged, or TimedOut five seconds later, with the session closed.
  virtual void Cancel() = 0;
  // Whether the next request may be sent.
  virtual bool clean() const = 0;
  virtual const ServerFacts& facts() const = 0;
  // Requests sent since login: what "few round trips" is measured by.
  virtual std::int64_t request_count() const = 0;
  virtual void Close() = 0;
};

// Runs `request` and collects every result set whole; for small answers (catalogue, max
// LSN). A reply beyond kCollectSizeBytesMax or a result set with more than
// `row_count_max` rows is TdsLimitExceeded.
inline constexpr std::uint64_t kCollectSizeBytesMax = 16u << 20;
Result<std::vector<columns::RecordBatch>> Collect(Session& session,
                                                  const Request& request,
                                                  std::int64_t row_count_max = 100'000);

}  // namespace mssql_cdc::sqlserver
