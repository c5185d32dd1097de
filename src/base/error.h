// The failures this product can report, and how one travels.
//
// An Error is a value: a row of the catalogue plus the facts of this occurrence.
// Code branches on id(), people read Text(), documentation links Code(). Nothing
// anywhere branches on message text.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mssql_cdc {

// One list, read by the enum below, RuleOf() and the test that holds docs/errors.md to
// it. A number is never reused or changed. 1xxx network and TDS, 2xxx server and
// session, 3xxx CDC, 4xxx lake, 5xxx checkpoint and run, 6xxx configuration,
// 7xxx simulator tool.
//      number, name,            remedy,   summary (lower case, no full stop)
#define MSSQL_CDC_ERRORS(ROW)                                                          \
  ROW(1001, ConnectFailed, Retry, "the server could not be reached")                   \
  ROW(1002, ConnectionLost, Retry,                                                     \
      "the connection ended before the reply was complete")                            \
  ROW(1003, TimedOut, Retry, "the server did not answer in time")                      \
  ROW(1004, TlsFailed, Reconfigure, "the encrypted connection could not be set up")    \
  ROW(1005, CertificateUntrusted, Reconfigure,                                         \
      "the server's certificate could not be verified")                                \
  ROW(1006, EncryptionRefused, Reconfigure,                                            \
      "the server does not offer the encryption that was asked for")                   \
  ROW(1007, NameNotResolved, Retry, "the host name could not be resolved")             \
  ROW(1101, TdsMalformed, Report, "the server sent bytes that break its protocol")     \
  ROW(1102, TdsRefusedToken, Report, "the server sent a token this client refuses")    \
  ROW(1103, TdsLimitExceeded, Report,                                                  \
      "the server announced more than this client takes")                              \
  ROW(1104, TdsUnsupportedType, Reconfigure,                                           \
      "a column has a type that cannot be read")                                       \
  ROW(1105, TextUndecodable, Report, "text is not valid in its column's code page")    \
  ROW(2001, LoginFailed, Reconfigure, "the server refused the login")                  \
  ROW(2002, DatabaseUnavailable, Reconfigure, "the database could not be opened")      \
  ROW(2003, ServerError, Report, "the server refused a statement")                     \
  ROW(2004, ServerBusy, Retry, "the server is not available for the moment")           \
  ROW(2005, PermissionDenied, Reconfigure, "the login lacks a permission")             \
  ROW(2006, TooManyRoutes, Report, "the server kept redirecting the login")            \
  ROW(2007, TokenUnavailable, Retry, "no access token could be had for the moment")    \
  ROW(2008, TokenRefused, Reconfigure, "no access token is given to this login")       \
  ROW(3001, DataLoss, Reseed, "changes were removed before they were read")            \
  ROW(3002, SchemaChanged, Reconfigure,                                                \
      "the source's columns no longer fit the table that is written")                  \
  ROW(3003, CdcNotEnabled, Reconfigure, "change data capture is not enabled")          \
  ROW(3004, CaptureInstanceNotFound, Reconfigure,                                      \
      "the capture instance was not found, or the login may not see it")               \
  ROW(3005, CaptureHasNotRun, Retry, "the capture job has not written anything yet")   \
  ROW(3006, PositionAheadOfServer, Reseed,                                             \
      "the server's newest change is older than what was already read")                \
  ROW(3007, ColumnNotReadable, Reconfigure, "a captured column cannot be read")        \
  ROW(3008, SourceForked, Reseed, "the server's history is not the one that was read") \
  ROW(3010, ValueNotConvertible, Reconfigure,                                          \
      "a value does not fit the type that option columns asks for")                    \
  ROW(4001, LakeConflict, Retry, "another writer committed to the table first")        \
  ROW(4002, LakeUnreachable, Retry,                                                    \
      "the table's storage could not be read or written")                              \
  ROW(4003, LakeTableUnsupported, Reconfigure,                                         \
      "the Delta table needs a feature this writer does not have")                     \
  ROW(4004, LakeSchemaMismatch, Reconfigure,                                           \
      "the rows do not fit the Delta table's columns")                                 \
  ROW(4005, LakeFailed, Report, "the Delta table could not be read or written")        \
  ROW(4006, LakeRefused, Reconfigure, "the table's storage refuses access")            \
  ROW(5001, CheckpointInUse, Reconfigure, "another process uses this checkpoint")      \
  ROW(5002, CheckpointUnreadable, Reconfigure, "the checkpoint is not understood")     \
  ROW(5003, CheckpointRewound, Reconfigure,                                            \
      "the checkpoint is older than the table it belongs to")                          \
  ROW(5004, FileFailed, Retry, "a file could not be read or written")                  \
  ROW(5005, SnapshotModeLocked, Reconfigure,                                           \
      "a snapshot of the other mode is already open")                                  \
  ROW(5006, Stopped, Retry, "the run was stopped before it was complete")              \
  ROW(5007, TargetLost, Reseed, "the target table no longer has what was streamed")    \
  ROW(5008, FileRefused, Reconfigure, "a file or folder cannot be used")               \
  ROW(5011, SnapshotPlanLost, Reconfigure,                                             \
      "the snapshot plans table lacks what the facts refer to")                        \
  ROW(5012, SnapshotExists, Reconfigure,                                               \
      "the target already holds a snapshot of the table")                              \
  ROW(5101, SilverKeyInvalid, Reconfigure, "silver needs key columns that bronze has") \
  ROW(5102, RowsOfAnotherInstance, Reconfigure,                                        \
      "bronze has rows of a capture instance that is not this table's")                \
  ROW(5103, SnapshotUnexplained, Reconfigure,                                          \
      "bronze has rows of a chunked snapshot that no facts tell of")                   \
  ROW(5104, PlansRowMissing, Reconfigure,                                              \
      "the plans table lacks what the facts refer to")                                 \
  ROW(5105, RepairNotYet, Retry,                                                       \
      "silver cannot be repaired at the source's newest LSN")                          \
  ROW(6001, ConfigUnreadable, Reconfigure, "the configuration file cannot be read")    \
  ROW(6002, OptionInvalid, Reconfigure, "an option's value is not allowed")            \
  ROW(6003, OptionMissing, Reconfigure, "a required option is missing")                \
  ROW(6004, OptionUnknown, Reconfigure, "an option is not known")                      \
  ROW(6005, OptionsClash, Reconfigure, "options exclude each other")                   \
  ROW(6006, KeywordUnsupported, Reconfigure,                                           \
      "a connection string keyword is not supported")                                  \
  ROW(7001, SimulatorFailed, Report,                                                   \
      "the simulator could not start or keep its state")                               \
  ROW(9001, OutOfMemory, Retry, "memory ran out")                                      \
  ROW(9002, InternalError, Report, "a bug in this program")

enum class ErrorId : std::uint16_t {
#define ROW(number, name, remedy, summary) k##name = number,
  MSSQL_CDC_ERRORS(ROW)
#undef ROW
};

// What the person or program that gets the error can do.
enum class Remedy : std::uint8_t {
  kRetry,        // The same call may succeed later; nothing was lost.
  kReconfigure,  // An option, a permission or a server setting is wrong.
  kReseed,       // The source no longer has the changes; take a new snapshot.
  kReport,       // A bug here, or a server that breaks its protocol.
};

struct ErrorRule {
  std::string_view name;
  Remedy remedy;
  std::string_view summary;
};

// The catalogue row of `id`.
constexpr ErrorRule RuleOf(ErrorId id) {
  switch (id) {
#define ROW(number, name, remedy, summary) \
  case ErrorId::k##name:                   \
    return {#name, Remedy::k##remedy, summary};
    MSSQL_CDC_ERRORS(ROW)
#undef ROW
  }
  return {"Unlisted", Remedy::kReport, "this error is not in the catalogue"};
}

class [[nodiscard]] Error {
 public:
  explicit Error(ErrorId id) : id_(id) {}

  // Adds a fact of this occurrence. Values are identifiers, numbers, positions or a
  // server's own message; never row data, never credentials. Control characters are
  // shown as spaces, since servers are hostile input too.
  Error&& With(std::string_view key, std::string value) && {
    Add(key, std::move(value));
    return std::move(*this);
  }
  void Add(std::string_view key, std::string value) {
    for (char& c : value) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
    }
    facts_.emplace_back(key, std::move(value));
  }

  ErrorId id() const { return id_; }
  Remedy remedy() const { return RuleOf(id_).remedy; }
  // The value of the first fact named `key`, or nullopt.
  std::optional<std::string_view> Fact(std::string_view key) const {
    for (const auto& [name, value] : facts_) {
      if (name == key) return value;
    }
    return std::nullopt;
  }
  const std::vector<std::pair<std::string, std::string>>& facts() const {
    return facts_;
  }
  // "MC3001": what documentation is indexed by.
  std::string Code() const { return "MC" + std::to_string(static_cast<unsigned>(id_)); }
  // "MC3001 DataLoss: changes were ... (capture_instance=dbo_orders)"
  std::string Text() const {
    const ErrorRule rule = RuleOf(id_);
    std::string text = Code() + ' ' + std::string(rule.name) + ": ";
    text += rule.summary;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      text += (i == 0 ? " (" : ", ") + facts_[i].first + '=' + facts_[i].second;
    }
    return facts_.empty() ? text : text + ')';
  }

 private:
  ErrorId id_;
  std::vector<std::pair<std::string, std::string>> facts_;
};

// Nothing, where a Result only says whether it worked.
struct Unit {
  bool operator==(const Unit&) const = default;
};

// A value, or the reason there is none. Asking for the absent one is a bug and aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return held_.index() == 0; }
  const T& value() const& { return *Held(std::get_if<0>(&held_)); }
  T& value() & { return *Held(std::get_if<0>(&held_)); }
  T value() && { return std::move(*Held(std::get_if<0>(&held_))); }
  const Error& error() const& { return *Held(std::get_if<1>(&held_)); }
  Error& error() & { return *Held(std::get_if<1>(&held_)); }
  Error error() && { return std::move(*Held(std::get_if<1>(&held_))); }

 private:
  template <typename U>
  static U* Held(U* side) {
    if (side == nullptr) std::abort();
    return side;
  }

  std::variant<T, Error> held_;
};

using Status = Result<Unit>;

#define MSSQL_CDC_JOIN2(a, b) a##b
#define MSSQL_CDC_JOIN(a, b) MSSQL_CDC_JOIN2(a, b)

// TRY(expr): returns the error of a Result from the enclosing function, or goes on.
#define TRY(expr)                                                 \
  do {                                                            \
    auto MSSQL_CDC_JOIN(tried_, __LINE__) = (expr);               \
    if (!MSSQL_CDC_JOIN(tried_, __LINE__).ok()) {                 \
      return std::move(MSSQL_CDC_JOIN(tried_, __LINE__)).error(); \
    }                                                             \
  } while (false)

// TRY_ASSIGN(auto x, expr): the value of a Result, or returns its error.
#define TRY_ASSIGN(target, expr)                                \
  auto MSSQL_CDC_JOIN(tried_, __LINE__) = (expr);               \
  if (!MSSQL_CDC_JOIN(tried_, __LINE__).ok()) {                 \
    return std::move(MSSQL_CDC_JOIN(tried_, __LINE__)).error(); \
  }                                                             \
  target = std::move(MSSQL_CDC_JOIN(tried_, __LINE__)).value()

}  // namespace mssql_cdc
