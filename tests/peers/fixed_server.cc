// Serves a fixed table of values through the simulator's wire, for foreign drivers to
// read: fixed_server [port [tls: asks|required|none [certificate directory]]].
//
// Any SELECT gives the table of every type (typical, extremes, NULL); a few words in
// its text choose another: "notnull", "big" (200 000 rows), "wait" (until an
// attention). A statement with parameters gives them back as one row. It prints its
// port, and stops when its input ends.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <thread>

#include "base/text.h"
#include "sim/wire/server.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::int32_t kDays1900 = 693'595;

SqlType Type(TypeId id, std::int32_t length = 0, std::uint8_t precision = 0,
             std::uint8_t scale = 0, std::string collation = "") {
  return {id, length, precision, scale, std::move(collation)};
}

Value Int(std::int64_t value) { return {value, {}}; }
Value Real(double value) { return {value, {}}; }
Value Dec(__int128 unscaled, std::uint8_t scale) {
  return {Decimal{unscaled, scale}, {}};
}
Value Str(std::string_view utf8) { return {Utf16(utf8), {}}; }
Value Bin(Bytes bytes) { return {std::move(bytes), {}}; }
Value Variant(Value value, SqlType type) {
  value.variant_type = std::move(type);
  return value;
}
std::int32_t Day(std::int64_t year, unsigned month, unsigned day) {
  return static_cast<std::int32_t>(DaysFromCivil(year, month, day) + 719'162);
}
Value Date(std::int32_t days, std::int64_t ticks = 0, std::int16_t offset = 0) {
  return {DateTimeValue{days, ticks, offset}, {}};
}
std::int64_t Clock(int hour, int minute, int second, std::int64_t fraction = 0) {
  return ((hour * 60 + minute) * 60 + second) * 10'000'000ll + fraction;
}
Value Uuid(std::uint8_t first) {
  Guid guid;
  for (std::uint8_t i = 0; i < 16; ++i) {
    guid.bytes[i] = static_cast<std::uint8_t>(first == 0xFF ? 0xFF : first + i);
  }
  return {guid, {}};
}

struct Entry {
  const char* name;
  SqlType type;
  Value typical;
  Value extreme;
};

__int128 Nines(int count) {
  __int128 value = 0;
  for (int i = 0; i < count; ++i) value = value * 10 + 9;
  return value;
}

std::vector<Entry> NumberEntries() {
  return {
      {"i", Type(TypeId::kInt), Int(42), Int(std::numeric_limits<int>::min())},
      {"b", Type(TypeId::kBit), Int(1), Int(0)},
      {"ti", Type(TypeId::kTinyInt), Int(7), Int(255)},
      {"si", Type(TypeId::kSmallInt), Int(-3), Int(-32768)},
      {"bi", Type(TypeId::kBigInt), Int(1234567890123),
       Int(std::numeric_limits<std::int64_t>::min())},
      {"r", Type(TypeId::kReal), Real(1.5), Real(3.4028234663852886e38)},
      {"f", Type(TypeId::kFloat), Real(-0.1), Real(1.7976931348623157e308)},
      {"d", Type(TypeId::kDecimal, 0, 18, 4), Dec(1234567, 4), Dec(-Nines(18), 4)},
      {"n", Type(TypeId::kDecimal, 0, 38, 10), Dec(-15, 10), Dec(Nines(38), 10)},
      {"m", Type(TypeId::kMoney), Dec(12345678, 4),
       Dec(std::numeric_limits<std::int64_t>::min(), 4)},
      {"sm", Type(TypeId::kSmallMoney), Dec(-10000, 4), Dec(2147483647, 4)},
      {"g", Type(TypeId::kUniqueIdentifier), Uuid(1), Uuid(0xFF)},
  };
}

std::vector<Entry> DateEntries() {
  const std::int32_t day = Day(2026, 1, 31);
  const std::int32_t last = Day(9999, 12, 31);
  return {
      {"da", Type(TypeId::kDate), Date(day), Date(0)},
      {"t7", Type(TypeId::kTime, 0, 0, 7), Date(0, Clock(13, 14, 15, 1234567)),
       Date(0, Clock(23, 59, 59, 9999999))},
      {"t0", Type(TypeId::kTime, 0, 0, 0), Date(0, Clock(13, 14, 15)), Date(0, 0)},
      {"dt", Type(TypeId::kDateTime), Date(day, Clock(13, 14, 15, 70000)),
       Date(Day(1753, 1, 1), 0)},
      {"d3", Type(TypeId::kDateTime2, 0, 0, 3), Date(day, Clock(13, 14, 15, 1230000)),
       Date(last, Clock(23, 59, 59, 9990000))},
      {"d7", Type(TypeId::kDateTime2, 0, 0, 7), Date(day, Clock(13, 14, 15, 1234567)),
       Date(0, 0)},
      {"o7", Type(TypeId::kDateTimeOffset, 0, 0, 7),
       Date(day, Clock(0, 30, 0, 1234567), 330), Date(last, Clock(9, 59, 59), -840)},
      {"sd", Type(TypeId::kSmallDateTime), Date(day, Clock(13, 14, 0)),
       Date(Day(2079, 6, 6), Clock(23, 59, 0))},
  };
}

std::vector<Entry> LongEntries() {
  const std::string utf8 = "Latin1_General_100_CI_AS_SC_UTF8";
  const std::string umlaut = "\xC3\xA9\xE2\x82\xAC";            // é€
  const std::string face = "x\xF0\x9F\x98\x80\xC5\x82";         // x, a face, ł
  const std::string russian = "\xD0\x9F\xD1\x80";               // Пр
  const std::string japanese = "\xE6\x97\xA5\xE6\x9C\xAC\x41";  // 日本A
  std::string wide;
  for (int i = 0; i < 3000; ++i) wide += face;
  return {
      {"c", Type(TypeId::kChar, 5), Str("ab   "), Str(umlaut + "   ")},
      {"vc", Type(TypeId::kVarChar, 20), Str(umlaut), Str("")},
      {"vu", Type(TypeId::kVarChar, 20, 0, 0, utf8), Str(face), Str("")},
      {"cy", Type(TypeId::kVarChar, 20, 0, 0, "Cyrillic_General_CI_AS"), Str(russian),
       Str("a")},
      {"ja", Type(TypeId::kVarChar, 20, 0, 0, "Japanese_CI_AS"), Str(japanese),
       Str("a")},
      {"nc", Type(TypeId::kNChar, 5), Str("ab   "), Str(face + " ")},
      {"nv", Type(TypeId::kNVarChar, 20), Str(face), Str("")},
      {"vm", Type(TypeId::kVarChar, kMax), Str(umlaut), Str(std::string(9000, 'v'))},
      {"nvm", Type(TypeId::kNVarChar, kMax), Str(face), Str(wide)},
      {"vum", Type(TypeId::kVarChar, kMax, 0, 0, utf8), Str(face), Str(wide)},
      {"tx", Type(TypeId::kText, kMax), Str(umlaut), Str(std::string(9000, 't'))},
      {"nt", Type(TypeId::kNText, kMax), Str(face), Str("")},
      {"x", Type(TypeId::kXml, kMax), Str("<a>" + umlaut + "</a>"), Str("")},
      {"bn", Type(TypeId::kBinary, 4), Bin({1, 2, 3, 4}), Bin({0, 0, 0, 0})},
      {"vb", Type(TypeId::kVarBinary, 10), Bin({0, 255}), Bin({})},
      {"vbm", Type(TypeId::kVarBinary, kMax), Bin({0, 255}), Bin(Bytes(70'000, 0xAB))},
      {"im", Type(TypeId::kImage, kMax), Bin({0, 255}), Bin(Bytes(9000, 0xCD))},
      {"rv", Type(TypeId::kRowVersion, 8), Bin({0, 0, 0, 0, 0, 0, 7, 209}),
       Bin({255, 255, 255, 255, 255, 255, 255, 255})},
  };
}

std::vector<Entry> VariantEntries() {
  const SqlType variant = Type(TypeId::kSqlVariant);
  return {
      {"v1", variant, Variant(Int(42), Type(TypeId::kInt)),
       Variant(Int(-1), Type(TypeId::kBigInt))},
      {"v2", variant, Variant(Str("x\xC5\x82"), Type(TypeId::kNVarChar, 20)),
       Variant(Str("\xC3\xA9"), Type(TypeId::kVarChar, 20))},
      {"v3", variant, Variant(Dec(12345, 2), Type(TypeId::kDecimal, 0, 9, 2)),
       Variant(Dec(-1, 4), Type(TypeId::kMoney))},
      {"v4", variant,
       Variant(Date(Day(2026, 1, 31), Clock(1, 2, 3)), Type(TypeId::kDateTime)),
       Variant(Uuid(1), Type(TypeId::kUniqueIdentifier))},
  };
}

std::vector<Entry> Entries(const std::string& sql) {
  std::vector<Entry> entries = NumberEntries();
  for (auto* more : {&DateEntries, &LongEntries, &VariantEntries}) {
    if (more == &VariantEntries && sql.find("novariant") != std::string::npos) continue;
    for (Entry& entry : more()) entries.push_back(std::move(entry));
  }
  return entries;
}

class FixedSession final : public EngineSession {
 public:
  void Batch(const std::string& sql, ReplySink& sink) override {
    const std::string text = LowerAscii(sql);
    const auto has = [&](const char* word) {
      return text.find(word) != std::string::npos;
    };
    if (has("wait")) {
      while (!stop_requested) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    if (has("broken")) {
      sink.SendMessage({208, 1, 16, "Invalid object name 'broken'.", "", 1});
      return;
    }
    if (has("use ")) {
      sink.DatabaseChanged(database_, "other");
      database_ = "other";
    }
    if (has("begin tran")) sink.TransactionBegan(++transaction_);
    if (has("commit")) sink.TransactionEnded(transaction_, true);
    if (has("rollback")) sink.TransactionEnded(transaction_, false);
    if (has("select") && !has("set ")) {
      Table(text, sink);
    } else {
      sink.StatementDone(std::nullopt, 0);
    }
  }

  void ExecuteSql(const std::string& sql, std::vector<BoundParameter> parameters,
                  ReplySink& sink) override {
    if (parameters.empty()) {
      Batch(sql, sink);
      return;
    }
    std::vector<ResultColumn> columns;
    std::vector<Value> values;
    for (BoundParameter& parameter : parameters) {
      if (parameter.output)
        sink.ReturnValue(parameter.name, parameter.type, parameter.value);
      columns.push_back({parameter.name, parameter.type, true, false, false});
      values.push_back(std::move(parameter.value));
    }
    if (sink.Columns(columns) && sink.Row(values)) sink.StatementDone(1, 0xC1);
  }

  void Procedure(const std::string& name, std::vector<BoundParameter> parameters,
                 ReplySink& sink) override {
    if (name.find("echo") == std::string::npos) {
      sink.SendMessage(
          {2812, 62, 16, "Could not find stored procedure '" + name + "'.", "", 1});
      return;
    }
    ExecuteSql("select", std::move(parameters), sink);
    sink.ReturnStatus(7);
  }

  void BeginTransaction(std::optional<IsolationLevel>, ReplySink& sink) override {
    sink.TransactionBegan(++transaction_);
  }
  void CommitTransaction(bool next, ReplySink& sink) override {
    sink.TransactionEnded(transaction_, true);
    if (next) sink.TransactionBegan(++transaction_);
  }
  void RollbackTransaction(bool next, ReplySink& sink) override {
    sink.TransactionEnded(transaction_, false);
    if (next) sink.TransactionBegan(++transaction_);
  }
  void Reset(ReplySink& sink) override {
    if (database_ != "master") sink.DatabaseChanged(database_, "master");
    database_ = "master";
  }
  const std::string& database() const override { return database_; }
  const std::string& collation() const override { return collation_; }

 private:
  void Table(const std::string& text, ReplySink& sink) {
    const bool not_null = text.find("notnull") != std::string::npos;
    const std::vector<Entry> entries = Entries(text);
    std::vector<ResultColumn> columns;
    std::vector<std::vector<Value>> rows(3);
    for (const Entry& entry : entries) {
      columns.push_back({entry.name, entry.type, !not_null, false, false});
      rows[0].push_back(entry.typical);
      rows[1].push_back(entry.extreme);
      rows[2].push_back(Value{});
    }
    if (not_null) rows.pop_back();
    if (!sink.Columns(columns)) return;
    const bool big = text.find("big") != std::string::npos;
    std::uint64_t count = 0;
    for (int round = 0; round < (big ? 200'000 : 1); ++round) {
      for (const std::vector<Value>& row : rows) {
        if (!sink.Row(row)) return;
        ++count;
        if (big) break;
      }
    }
    sink.StatementDone(count, 0xC1);
  }

  std::string database_ = "master";
  std::string collation_ = "SQL_Latin1_General_CP1_CI_AS";
  std::uint64_t transaction_ = 0x0100000000000001;
};

class FixedEngine final : public Engine {
 public:
  std::variant<std::unique_ptr<EngineSession>, LoginFailure> Login(
      const LoginRequest& request) override {
    const bool token = request.access_token == "token";
    if (!token && request.password != "Secret-1") {
      return LoginFailure{
          {18456, 1, 14, "Login failed for user '" + request.user + "'.", "", 1}};
    }
    return std::make_unique<FixedSession>();
  }
  Version version() const override { return {}; }
};

int Main(int argc, char** argv) {
  wire::ServerOptions options;
  if (argc > 1) options.port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  const std::string tls = argc > 2 ? argv[2] : "asks";
  options.tls_mode = tls == "required" ? wire::TlsMode::kRequired
                     : tls == "none"   ? wire::TlsMode::kNotSupported
                                       : wire::TlsMode::kAsClientAsks;
  if (argc > 3) options.certificate_directory = argv[3];
  if (argc > 4) options.sts_url = argv[4];
  if (argc > 5) options.spn = argv[5];
  auto server = wire::Server::Start(options, std::make_shared<FixedEngine>());
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.error().Text().c_str());
    return 1;
  }
  std::printf("%d\n", server.value()->port());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const wire::Counters& counters = server.value()->counters();
    std::printf(
        "logins %llu messages %llu requests %llu attentions %llu malformed %llu\n",
        static_cast<unsigned long long>(counters.logins.load()),
        static_cast<unsigned long long>(counters.messages.load()),
        static_cast<unsigned long long>(counters.requests.load()),
        static_cast<unsigned long long>(counters.attentions.load()),
        static_cast<unsigned long long>(counters.malformed.load()));
    std::fflush(stdout);
  }
  server.value()->Stop();
  return 0;
}

}  // namespace
}  // namespace mssql_cdc::sim

int main(int argc, char** argv) { return mssql_cdc::sim::Main(argc, argv); }
