#include "sqlserver/server_errors.h"

#include <algorithm>
#include <array>

namespace mssql_cdc::sqlserver {
namespace {

struct NumberRule {
  std::int32_t number;
  ErrorId id;
};

// Numbers and their meaning are those of sys.messages and of the lists of transient
// errors in Microsoft's documentation for Azure SQL Database; classification goes by
// number, never by text, which depends on the login's language.
constexpr auto kRules = std::to_array<NumberRule>({
    {229, ErrorId::kPermissionDenied},      // on an object
    {230, ErrorId::kPermissionDenied},      // on a column
    {262, ErrorId::kPermissionDenied},      // in a database
    {297, ErrorId::kPermissionDenied},      // the user cannot perform this action
    {300, ErrorId::kPermissionDenied},      // a server permission
    {371, ErrorId::kPermissionDenied},      // to view a definition
    {601, ErrorId::kServerBusy},            // data moved under a scan
    {615, ErrorId::kServerBusy},            // database id not found, Azure fail-over
    {701, ErrorId::kServerBusy},            // out of memory
    {911, ErrorId::kDatabaseUnavailable},   // no such database
    {916, ErrorId::kPermissionDenied},      // no access to a database
    {922, ErrorId::kServerBusy},            // in recovery
    {924, ErrorId::kDatabaseUnavailable},   // single-user
    {926, ErrorId::kDatabaseUnavailable},   // suspect
    {927, ErrorId::kServerBusy},            // being restored
    {942, ErrorId::kDatabaseUnavailable},   // offline
    {945, ErrorId::kDatabaseUnavailable},   // files are missing
    {976, ErrorId::kServerBusy},            // a replica that does not join
    {978, ErrorId::kDatabaseUnavailable},   // a replica for read-only intent alone
    {983, ErrorId::kServerBusy},            // a replica that changes its role
    {1204, ErrorId::kServerBusy},           // no locks left
    {1205, ErrorId::kServerBusy},           // chosen as the victim of a deadlock
    {1221, ErrorId::kServerBusy},           // a lock was not held any more
    {1222, ErrorId::kServerBusy},           // waited too long for a lock
    {3952, ErrorId::kOptionInvalid},        // snapshot isolation is not allowed
    {3960, ErrorId::kServerBusy},           // conflict of snapshot transactions
    {4060, ErrorId::kDatabaseUnavailable},  // cannot be opened by this login
    {4063, ErrorId::kDatabaseUnavailable},
    {4064, ErrorId::kDatabaseUnavailable},  // the login's default database
    {4221, ErrorId::kServerBusy},           // a replica that still waits for versions
    {6005, ErrorId::kServerBusy},           // shutting down
    {8645, ErrorId::kServerBusy},           // waited too long for memory
    {8651, ErrorId::kServerBusy},           // low on memory
    {9001, ErrorId::kServerBusy},           // the log is not available
    {9820, ErrorId::kOptionInvalid},        // no such time zone: sourceTimeZone
    {10928, ErrorId::kServerBusy},          // resource limits
    {10929, ErrorId::kServerBusy},
    {10936, ErrorId::kServerBusy},
    {15247, ErrorId::kPermissionDenied},  // may not perform this action
    {17142, ErrorId::kServerBusy},        // paused
    {18401, ErrorId::kServerBusy},        // upgrades its scripts
    {18450, ErrorId::kLoginFailed},
    {18451, ErrorId::kLoginFailed},  // only administrators for the moment
    {18452, ErrorId::kLoginFailed},  // untrusted domain
    {18456, ErrorId::kLoginFailed},
    {18461, ErrorId::kServerBusy},   // single-user
    {18470, ErrorId::kLoginFailed},  // disabled
    {18486, ErrorId::kLoginFailed},  // locked
    {18487, ErrorId::kLoginFailed},  // password expired
    {18488, ErrorId::kLoginFailed},  // password must change
    {40143, ErrorId::kServerBusy},   // Azure, from here on
    {40166, ErrorId::kServerBusy},
    {40197, ErrorId::kServerBusy},
    {40501, ErrorId::kServerBusy},
    {40540, ErrorId::kServerBusy},
    {40544, ErrorId::kServerBusy},
    {40549, ErrorId::kServerBusy},
    {40550, ErrorId::kServerBusy},
    {40551, ErrorId::kServerBusy},
    {40552, ErrorId::kServerBusy},
    {40553, ErrorId::kServerBusy},
    {40613, ErrorId::kServerBusy},
    {42108, ErrorId::kServerBusy},  // a paused pool resumes
    {42109, ErrorId::kServerBusy},
    {49918, ErrorId::kServerBusy},
    {49919, ErrorId::kServerBusy},
    {49920, ErrorId::kServerBusy},
});
static_assert(std::ranges::adjacent_find(kRules, std::ranges::greater_equal{},
                                         &NumberRule::number) == kRules.end(),
              "kRules is in ascending order, each number once");

// Asked for by option isolationLevel, and by backfill's --isolation.
constexpr std::int32_t kSnapshotNotAllowed = 3952;

void ReplaceAll(std::string& text, std::string_view what) {
  if (what.empty()) return;
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at)) {
    text.replace(at, what.size(), "***");
    at += 3;
  }
}

}  // namespace

std::string Redactor::Clean(std::string text) const {
  for (const Secret& secret : secrets_) ReplaceAll(text, secret.Reveal());
  if (!user_.empty()) {
    const std::string quoted = '\'' + user_ + '\'';
    ReplaceAll(text, quoted);
  }
  return text;
}

ErrorId ErrorIdOf(std::int32_t number, Phase phase) {
  const auto* rule = std::ranges::lower_bound(kRules, number, {}, &NumberRule::number);
  if (rule != kRules.end() && rule->number == number) return rule->id;
  return phase == Phase::kLogin ? ErrorId::kLoginFailed : ErrorId::kServerError;
}

Error ErrorFrom(const tds::ServerMessage& message, Phase phase,
                const Redactor& redactor) {
  Error error(ErrorIdOf(message.number, phase));
  if (message.number == kSnapshotNotAllowed) {
    error.Add("option", "isolationLevel");
    error.Add("value", "snapshot");
    error.Add("cure",
              "ALTER DATABASE ... SET ALLOW_SNAPSHOT_ISOLATION ON, or readCommitted");
  }
  error.Add("number", std::to_string(message.number));
  error.Add("class", std::to_string(message.severity));
  error.Add("state", std::to_string(message.state));
  error.Add("message", redactor.Clean(message.message));
  if (!message.procedure.empty()) {
    error.Add("procedure", redactor.Clean(message.procedure));
    error.Add("line", std::to_string(message.line));
  }
  return error;
}

}  // namespace mssql_cdc::sqlserver
