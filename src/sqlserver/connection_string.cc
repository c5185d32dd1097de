#include "sqlserver/connection_string.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <vector>

#include "base/limits.h"
#include "base/near_names.h"
#include "base/text.h"

namespace mssql_cdc::sqlserver {
namespace {

Error Invalid(std::string_view option, std::string_view allowed) {
  return Error(ErrorId::kOptionInvalid)
      .With("option", std::string(option))
      .With("allowed", std::string(allowed));
}

struct Pair {
  std::string key;  // As written.
  std::string value;
};

// Splits `text` into its pairs. Nothing of the text goes into an error: where it is
// malformed, any part of it may be a password.
Result<std::vector<Pair>> SplitPairs(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<Pair> pairs;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n;"), text.size()));
    if (text.empty()) return pairs;
    const std::size_t equals = text.find('=');
    const std::string_view key = Trim(text.substr(0, equals));
    if (equals == std::string_view::npos || key.empty() ||
        key.find(';') != std::string_view::npos) {
      return Invalid("connectionString", "keyword=value pairs separated by ;")
          .With("pair_number", std::to_string(pairs.size() + 1));
    }
    text.remove_prefix(equals + 1);
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    std::string value;
    if (text.starts_with('{')) {
      std::size_t at = 1;
      while (at < text.size() &&
             (text[at] != '}' || (at + 1 < text.size() && text[at + 1] == '}'))) {
        if (text[at] == '}') ++at;
        value += text[at++];
      }
      const bool closed = at < text.size();
      text.remove_prefix(std::min(at + 1, text.size()));
      const std::size_t end = std::min(text.find(';'), text.size());
      if (!closed || !Trim(text.substr(0, end)).empty()) {
        return Invalid("connectionString", "a value in braces ends with } and ;")
            .With("pair_number", std::to_string(pairs.size() + 1));
      }
      text.remove_prefix(end);
    } else {
      const std::size_t end = std::min(text.find(';'), text.size());
      value = Trim(text.substr(0, end));
      text.remove_prefix(end);
    }
    pairs.push_back({std::string(key), std::move(value)});
  }
}

std::string Normalized(std::string_view key) {
  std::string name = LowerAscii(key);
  std::erase_if(name, [](char c) { return c == ' ' || c == '_'; });
  return name;
}

std::optional<bool> ParseBool(std::string_view value) {
  const std::string lower = LowerAscii(value);
  if (lower == "yes" || lower == "true" || lower == "1") return true;
  if (lower == "no" || lower == "false" || lower == "0") return false;
  return std::nullopt;
}

using Setter = Status (*)(const std::string& value, ConnectOptions& options);

Status SetPort(std::string_view text, ConnectOptions& options) {
  const auto port = ParseInt64(text);
  if (!port || *port < 1 || *port > 65535) {
    return Invalid("Server", "a port from 1 to 65535 after the comma");
  }
  options.port = static_cast<std::uint16_t>(*port);
  return Unit{};
}

Status SetServer(const std::string& value, ConnectOptions& options) {
  constexpr std::string_view kForms = "[tcp:]host[,port] or host\\instance";
  std::string_view rest = value;
  if (LowerAscii(rest.substr(0, 4)) == "tcp:") rest = Trim(rest.substr(4));
  const std::size_t comma = rest.rfind(',');
  if (comma != std::string_view::npos) {
    TRY(SetPort(Trim(rest.substr(comma + 1)), options));
    rest = Trim(rest.substr(0, comma));
  }
  const std::size_t backslash = rest.find('\\');
  if (backslash != std::string_view::npos) {
    options.instance = Trim(rest.substr(backslash + 1));
    rest = rest.substr(0, backslash);
    if (options.instance->empty()) return Invalid("Server", kForms);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) {
    rest = rest.substr(1, rest.size() - 2);
  }
  options.host = rest;
  const std::string lower = LowerAscii(rest);
  if (lower == "." || lower == "(local)") options.host = "localhost";
  // One colon is a protocol (np:, lpc:) or a port in another product's form; more are
  // an IPv6 address.
  const bool one_colon = std::ranges::count(options.host, ':') == 1;
  if (options.host.empty() || one_colon || lower.starts_with("(localdb)")) {
    return Invalid("Server", kForms);
  }
  return Unit{};
}

Status SetEncrypt(const std::string& value, ConnectOptions& options) {
  const std::string lower = LowerAscii(value);
  const auto flag = ParseBool(value);
  if (flag == true || lower == "mandatory") {
    options.encrypt = Encrypt::kMandatory;
  } else if (flag == false || lower == "optional") {
    options.encrypt = Encrypt::kLoginOnly;
  } else if (lower == "strict") {
    options.encrypt = Encrypt::kStrict;
  } else {
    return Invalid("Encrypt", "yes, true, mandatory, strict, optional, no or false");
  }
  return Unit{};
}

Status SetAuthentication(const std::string& value, ConnectOptions& options) {
  constexpr std::pair<std::string_view, Authentication> kKinds[] = {
      {"sqlpassword", Authentication::kSqlPassword},
      {"activedirectorymsi", Authentication::kManagedIdentity},
      {"activedirectorymanagedidentity", Authentication::kManagedIdentity},
      {"activedirectoryserviceprincipal", Authentication::kServicePrincipal},
  };
  const std::string lower = LowerAscii(value);
  for (const auto& [name, kind] : kKinds) {
    if (name != lower) continue;
    options.authentication = kind;
    return Unit{};
  }
  Error error(ErrorId::kKeywordUnsupported);
  error.Add("keyword", "Authentication");
  // Other drivers' kinds are named; anything else may be half of a password.
  for (const std::string_view other :
       {"ActiveDirectoryPassword", "ActiveDirectoryIntegrated",
        "ActiveDirectoryInteractive", "ActiveDirectoryDefault",
        "ActiveDirectoryDeviceCodeFlow", "ActiveDirectoryWorkloadIdentity",
        "ActiveDirectoryServicePrincipalAccessToken"}) {
    if (EqualsIgnoringAsciiCase(value, other)) error.Add("value", std::string(other));
  }
  error.Add("allowed",
            "SqlPassword, ActiveDirectoryMsi or ActiveDirectoryServicePrincipal");
  return error;
}

Status SetTrust(const std::string& value, ConnectOptions& options) {
  const auto flag = ParseBool(value);
  if (!flag) return Invalid("TrustServerCertificate", "yes or no");
  options.trust_server_certificate = *flag;
  return Unit{};
}

Status SetIntent(const std::string& value, ConnectOptions& options) {
  options.read_only_intent = EqualsIgnoringAsciiCase(value, "ReadOnly");
  if (!options.read_only_intent && !EqualsIgnoringAsciiCase(value, "ReadWrite")) {
    return Invalid("ApplicationIntent", "ReadOnly or ReadWrite");
  }
  return Unit{};
}

Status SetPacketSize(const std::string& value, ConnectOptions& options) {
  const auto size = ParseInt64(value);
  if (!size || *size < static_cast<std::int64_t>(kTdsPacketSizeBytesMin) ||
      *size > static_cast<std::int64_t>(kTdsPacketSizeBytesMax)) {
    return Invalid("Packet Size", "512 to 32767");
  }
  options.packet_size_bytes = static_cast<std::uint16_t>(*size);
  return Unit{};
}

Result<std::int64_t> SecondsAsMs(const std::string& value, std::string_view option) {
  const auto seconds = ParseInt64(value);
  if (!seconds || *seconds < 0 || *seconds > 86'400) {
    return Invalid(option, "seconds, 0 to 86400");
  }
  return *seconds * 1000;
}

Status SetConnectTimeout(const std::string& value, ConnectOptions& options) {
  TRY_ASSIGN(options.connect_timeout_ms, SecondsAsMs(value, "Connect Timeout"));
  return Unit{};
}

Status SetCommandTimeout(const std::string& value, ConnectOptions& options) {
  TRY_ASSIGN(options.silence_timeout_ms, SecondsAsMs(value, "Command Timeout"));
  return Unit{};
}

template <std::string ConnectOptions::* kMember>
Status SetText(const std::string& value, ConnectOptions& options) {
  options.*kMember = value;
  return Unit{};
}

template <std::optional<std::string> ConnectOptions::* kMember>
Status SetOptionalText(const std::string& value, ConnectOptions& options) {
  if (!value.empty()) options.*kMember = value;
  return Unit{};
}

Status SetPassword(const std::string& value, ConnectOptions& options) {
  options.password = Secret(value);
  return Unit{};
}

Status Ignore(const std::string&, ConnectOptions&) { return Unit{}; }

struct Keyword {
  std::string_view name;     // Normalized.
  std::string_view synonym;  // The name that several spellings share.
  Setter set;
};

constexpr Keyword kKeywords[] = {
    {"server", "Server", SetServer},
    {"address", "Server", SetServer},
    {"addr", "Server", SetServer},
    {"datasource", "Server", SetServer},
    {"database", "Database", SetText<&ConnectOptions::database>},
    {"initialcatalog", "Database", SetText<&ConnectOptions::database>},
    {"uid", "UID", SetText<&ConnectOptions::user>},
    {"userid", "UID", SetText<&ConnectOptions::user>},
    {"user", "UID", SetText<&ConnectOptions::user>},
    {"pwd", "PWD", SetPassword},
    {"password", "PWD", SetPassword},
    {"authentication", "Authentication", SetAuthentication},
    {"encrypt", "Encrypt", SetEncrypt},
    {"trustservercertificate", "TrustServerCertificate", SetTrust},
    {"hostnameincertificate", "HostNameInCertificate",
     SetOptionalText<&ConnectOptions::host_name_in_certificate>},
    {"servercertificate", "ServerCertificate",
     SetOptionalText<&ConnectOptions::server_certificate>},
    {"cafile", "CAFile", SetOptionalText<&ConnectOptions::ca_file>},
    {"applicationintent", "ApplicationIntent", SetIntent},
    {"app", "Application Name", SetText<&ConnectOptions::application_name>},
    {"applicationname", "Application Name", SetText<&ConnectOptions::application_name>},
    {"wsid", "Workstation ID", SetText<&ConnectOptions::workstation>},
    {"workstationid", "Workstation ID", SetText<&ConnectOptions::workstation>},
    {"packetsize", "Packet Size", SetPacketSize},
    {"connecttimeout", "Connect Timeout", SetConnectTimeout},
    {"connectiontimeout", "Connect Timeout", SetConnectTimeout},
    {"logintimeout", "Connect Timeout", SetConnectTimeout},
    {"timeout", "Connect Timeout", SetConnectTimeout},
    {"commandtimeout", "Command Timeout", SetCommandTimeout},
    {"driver", "Driver", Ignore},
    {"description", "Description", Ignore},
    {"pooling", "Pooling", Ignore},
    {"persistsecurityinfo", "Persist Security Info", Ignore},
    {"multisubnetfailover", "MultiSubnetFailover", Ignore},
    {"connectretrycount", "ConnectRetryCount", Ignore},
    {"connectretryinterval", "ConnectRetryInterval", Ignore},
};

// Keywords of Microsoft's ODBC driver that change what a connection means. The one
// value that asks for what this client does anyway is taken.
struct Refused {
  std::string_view name;  // Normalized.
  std::string_view shown;
  std::string_view harmless;  // In lower case.
};

constexpr Refused kRefused[] = {
    {"trustedconnection", "Trusted_Connection", "no"},
    {"integratedsecurity", "Integrated Security", "false"},
    {"marsconnection", "MARS_Connection", "no"},
    {"multipleactiveresultsets", "MultipleActiveResultSets", "false"},
    {"failoverpartner", "Failover_Partner", ""},
    {"failoverpartnerspn", "FailoverPartnerSPN", ""},
    {"serverspn", "ServerSPN", ""},
    {"columnencryption", "ColumnEncryption", "disabled"},
    {"language", "Language", ""},
    {"attachdbfilename", "AttachDBFileName", ""},
    {"dsn", "DSN", ""},
    {"filedsn", "FILEDSN", ""},
    {"network", "Network", "dbmssocn"},
    {"networklibrary", "Network Library", "dbmssocn"},
    {"regional", "Regional", "no"},
    {"quotedid", "QuotedId", "yes"},
    {"ansinpw", "AnsiNPW", "yes"},
    {"autotranslate", "AutoTranslate", "yes"},
    {"usefmtonly", "UseFMTONLY", "no"},
};

Status Apply(const Pair& pair, bool behind_password, ConnectOptions& options,
             std::map<std::string_view, std::string>& given) {
  const std::string name = Normalized(pair.key);
  const auto* known = std::ranges::find(kKeywords, name, &Keyword::name);
  if (known != std::end(kKeywords)) {
    const auto [place, first] = given.emplace(known->synonym, pair.value);
    if (!first && place->second != pair.value) {
      return Error(ErrorId::kOptionsClash)
          .With("option", std::string(known->synonym))
          .With("why", "given twice with different values");
    }
    return known->set(pair.value, options);
  }
  const auto* refused = std::ranges::find(kRefused, name, &Refused::name);
  if (refused != std::end(kRefused)) {
    const std::string lower = LowerAscii(pair.value);
    const bool same_flag = ParseBool(refused->harmless).has_value() &&
                           ParseBool(refused->harmless) == ParseBool(lower);
    if (lower == refused->harmless || same_flag) return Unit{};
    return Error(ErrorId::kKeywordUnsupported)
        .With("keyword", std::string(refused->shown));
  }
  // Behind a password without braces, what looks like a keyword may be its second half.
  if (behind_password) {
    return Error(ErrorId::kKeywordUnsupported)
        .With("why", "unknown text behind PWD; a password with ; stands in {braces}");
  }
  Error error(ErrorId::kKeywordUnsupported);
  error.Add("keyword", pair.key);
  NearNames names(name);
  for (const Keyword& keyword : kKeywords) names.Offer(keyword.name);
  if (const std::string nearest = names.Nearest(); !nearest.empty()) {
    error.Add(
        "nearest",
        std::string(std::ranges::find(kKeywords, nearest, &Keyword::name)->synonym));
  }
  return error;
}

}  // namespace

Result<ConnectOptions> ParseConnectionString(std::string_view text) {
  TRY_ASSIGN(const std::vector<Pair> pairs, SplitPairs(text));
  ConnectOptions options;
  std::map<std::string_view, std::string> given;
  bool behind_password = false;
  for (const Pair& pair : pairs) {
    TRY(Apply(pair, behind_password, options, given));
    const std::string name = Normalized(pair.key);
    behind_password = name == "pwd" || name == "password";
  }
  if (options.host.empty()) {
    return Error(ErrorId::kOptionMissing).With("option", "Server");
  }
  return options;
}

}  // namespace mssql_cdc::sqlserver
