#include "sim/engine/server.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/sql/dates.h"
#include "sim/sql/time_zone.h"

namespace mssql_cdc::sim {
namespace {

constexpr int kHashRounds = 2000;

Error Failed(const std::string& file, const std::string& reason) {
  return Error(ErrorId::kSimulatorFailed).With("file", file).With("reason", reason);
}

DateTimeValue FromUtcTicks(std::int64_t ticks_since_1970, std::int16_t offset_minutes) {
  const std::int64_t local =
      ticks_since_1970 + offset_minutes * std::int64_t{600'000'000};
  std::int64_t days = local / kTicksPerDay;
  if (local % kTicksPerDay < 0) --days;
  DateTimeValue at;
  at.days = static_cast<std::int32_t>(days + kDaysTo1970);
  at.ticks = local - days * kTicksPerDay;
  at.offset_minutes = offset_minutes;
  return at;
}

}  // namespace

DateTimeValue RoundedToDateTime(const DateTimeValue& at) {
  SqlType type;
  type.id = TypeId::kDateTime;
  DateTimeValue local = at;
  local.offset_minutes = 0;
  if (!Does(Behaviour::kTimesIn300ths)) {
    local.ticks -= local.ticks % 10'000'000;
    return local;
  }
  return RoundTo(local, type).value_or(local);
}

std::string IsoText(const DateTimeValue& at) {
  return IsoMillis((std::int64_t{at.days} - kDaysTo1970) * 86'400'000'000 +
                   at.ticks / 10);
}

DateTimeValue FromIsoText(const std::string& text) {
  const std::optional<std::int64_t> us = ParseIsoUs(text);
  return FromUtcTicks(us.value_or(0) * 10, 0);
}

Result<std::shared_ptr<Server>> Server::Open(EngineOptions options) {
  std::error_code failure;
  std::filesystem::create_directories(options.state_directory, failure);
  if (failure) return Failed(options.state_directory, failure.message());
  std::shared_ptr<Server> server(new Server(std::move(options)));
  const std::string& zone = server->options_.time_zone;
  if (!zone.empty() && FindTimeZone(zone) == nullptr) {
    return Error(ErrorId::kSimulatorFailed)
        .With("time_zone", zone)
        .With("reason", "no such zone is known");
  }
  server->readable_secondary = server->options_.readable_secondary;
  if (server->options_.start_utc_us) {
    server->manual_now_us_ = *server->options_.start_utc_us;
  }
  TRY(server->LoadDatabases());
  TRY(server->LoadLogins());
  return server;
}

std::int64_t Server::NowUtcUs() {
  return manual_clock() ? manual_now_us_.load() : system_clock_.NowUtcUs();
}

DateTimeValue Server::Now() {
  const std::int64_t ticks = NowUtcUs() * 10;
  std::int16_t offset = options_.utc_offset_minutes;
  if (const TimeZone* zone = FindTimeZone(options_.time_zone)) {
    offset = static_cast<std::int16_t>(OffsetAtUtc(*zone, FromUtcTicks(ticks, 0)));
  }
  if (!Does(Behaviour::kTimesLocal)) offset = 0;
  return FromUtcTicks(ticks, offset);
}

std::optional<Engine::Version> VersionOfRelease(int year) {
  switch (year) {
    case 2016:
      return Engine::Version{13, 0, 5026};
    case 2017:
      return Engine::Version{14, 0, 3456};
    case 2019:
      return Engine::Version{15, 0, 4312};
    case 2022:
      return Engine::Version{};
    default:
      return std::nullopt;
  }
}

std::string_view ReleaseOf(const Engine::Version& version) {
  switch (version.major) {
    case 13:
      return "2016";
    case 14:
      return "2017";
    case 15:
      return "2019";
    default:
      return "2022";
  }
}

void Server::AdvanceClock(std::int64_t duration_ms) {
  manual_now_us_ += duration_ms * 1000;
}

void Server::SetClock(std::int64_t utc_us) { manual_now_us_ = utc_us; }

void Server::Wait(std::int64_t duration_ms, const std::atomic<bool>& stop) {
  if (manual_clock()) return AdvanceClock(duration_ms);
  while (duration_ms > 0 && !stop.load()) {
    const std::int64_t slice = std::min<std::int64_t>(duration_ms, 20);
    system_clock_.SleepMs(slice);
    duration_ms -= slice;
  }
}

Guid Server::NewGuid() {
  const std::lock_guard lock(mutex_);
  Guid guid;
  for (std::uint8_t& byte : guid.bytes)
    byte = static_cast<std::uint8_t>(dice_.Below(256));
  guid.bytes[6] = static_cast<std::uint8_t>((guid.bytes[6] & 0x0F) | 0x40);
  guid.bytes[8] = static_cast<std::uint8_t>((guid.bytes[8] & 0x3F) | 0x80);
  return guid;
}

double Server::Random() {
  const std::lock_guard lock(mutex_);
  return dice_.Fraction();
}

Result<std::shared_ptr<Database>> Server::OpenFile(const std::string& name,
                                                   std::int32_t id,
                                                   const std::string& collation) {
  // The file is named by number: any database name is allowed.
  const std::string path = (std::filesystem::path(options_.state_directory) /
                            ("database_" + std::to_string(id) + ".db"))
                               .string();
  Database::Identity identity;
  identity.name = name;
  identity.id = id;
  identity.path = path;
  // Each database has a log of its own; its id sets it apart from the others.
  identity.seed =
      Dice(options_.seed * 0x1000003 + static_cast<std::uint64_t>(id)).Next();
  identity.collation = collation;
  identity.create_date = create_dates_[LowerAscii(name)];
  TRY_ASSIGN(std::shared_ptr<Database> database, Database::Open(std::move(identity)));
  databases_[LowerAscii(name)] = database;
  return database;
}

// instance.json names the databases and logins; it is replaced as a whole.
Status Server::LoadDatabases() {
  const std::filesystem::path file =
      std::filesystem::path(options_.state_directory) / "instance.json";
  nlohmann::json instance = nlohmann::json::object();
  if (std::filesystem::exists(file)) {
    try {
      std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(
          std::fopen(file.c_str(), "rb"), std::fclose);
      if (stream == nullptr) return Failed(file.string(), "cannot be opened");
      instance = nlohmann::json::parse(stream.get());
      next_database_id_ = instance.at("next_database_id").get<std::int32_t>();
      for (const auto& entry : instance.at("databases")) {
        const std::string name = entry.at("name").get<std::string>();
        create_dates_[LowerAscii(name)] = entry.at("created").get<std::string>();
        TRY(OpenFile(name, entry.at("id").get<std::int32_t>(),
                     entry.at("collation").get<std::string>()));
      }
      for (const auto& entry : instance.at("logins")) {
        LoginRecord login;
        login.name = entry.at("name").get<std::string>();
        login.password_hash = entry.at("hash").get<std::string>();
        login.admin = entry.at("admin").get<bool>();
        login.enabled = entry.at("enabled").get<bool>();
        login.default_database = entry.at("database").get<std::string>();
        logins_[LowerAscii(login.name)] = login;
      }
    } catch (const nlohmann::json::exception& problem) {
      return Failed(file.string(), problem.what());
    }
  }
  const std::pair<const char*, std::int32_t> kSystem[] = {
      {"master", 1}, {"tempdb", 2}, {"model", 3}, {"msdb", 4}};
  for (const auto& [name, id] : kSystem) {
    if (databases_.count(name) != 0) continue;
    create_dates_[name] = IsoText(Now());
    TRY(OpenFile(name, id, options_.collation));
  }
  if (!options_.default_database.empty() &&
      FindDatabase(options_.default_database) == nullptr) {
    TRY(CreateDatabase(options_.default_database, options_.collation));
  }
  return Unit{};
}

Status Server::LoadLogins() {
  const std::string fallback =
      options_.default_database.empty() ? "master" : options_.default_database;
  for (const SimLogin& given : options_.logins) {
    LoginRecord login;
    login.name = given.name;
    login.password_hash = HashPassword(given.password.Reveal(), NewSalt());
    login.admin = given.admin;
    login.default_database =
        given.default_database.empty() ? fallback : given.default_database;
    TRY(PutLogin(login));
  }
  return SaveInstance();
}

Status Server::SaveInstance() {
  nlohmann::json instance;
  instance["next_database_id"] = next_database_id_;
  instance["databases"] = nlohmann::json::array();
  for (const auto& [key, database] : databases_) {
    instance["databases"].push_back({{"name", database->name()},
                                     {"id", database->id()},
                                     {"created", database->create_date()},
                                     {"collation", database->catalog()->collation}});
  }
  instance["logins"] = nlohmann::json::array();
  for (const auto& [key, login] : logins_) {
    instance["logins"].push_back({{"name", login.name},
                                  {"hash", login.password_hash},
                                  {"admin", login.admin},
                                  {"enabled", login.enabled},
                                  {"database", login.default_database}});
  }
  const std::string text = instance.dump(2);
  const std::filesystem::path folder(options_.state_directory);
  const std::filesystem::path fresh = folder / "instance.json.new";
  std::FILE* stream = std::fopen(fresh.c_str(), "wb");
  if (stream == nullptr) return Failed(fresh.string(), "cannot be written");
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  if (std::fclose(stream) != 0 || !written)
    return Failed(fresh.string(), "cannot be written");
  std::error_code failure;
  std::filesystem::rename(fresh, folder / "instance.json", failure);
  if (failure) return Failed(fresh.string(), failure.message());
  return Unit{};
}

std::shared_ptr<Database> Server::FindDatabase(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = databases_.find(LowerAscii(name));
  return found == databases_.end() ? nullptr : found->second;
}

std::shared_ptr<Database> Server::FindDatabase(std::int32_t id) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, database] : databases_) {
    if (database->id() == id) return database;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Database>> Server::Databases() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Database>> all;
  for (const auto& [name, database] : databases_) all.push_back(database);
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a->id() < b->id(); });
  return all;
}

Result<std::shared_ptr<Database>> Server::CreateDatabase(const std::string& name,
                                                         const std::string& collation) {
  const std::lock_guard lock(mutex_);
  create_dates_[LowerAscii(name)] = IsoText(Now());
  TRY_ASSIGN(std::shared_ptr<Database> database,
             OpenFile(name, next_database_id_++,
                      collation.empty() ? options_.collation : collation));
  TRY(SaveInstance());
  return database;
}

Status Server::DropDatabase(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = databases_.find(LowerAscii(name));
  if (found == databases_.end()) return Unit{};
  const std::string path = found->second->path();
  databases_.erase(found);
  TRY(SaveInstance());
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code ignored;
    std::filesystem::remove(path + suffix, ignored);
  }
  return Unit{};
}

Result<std::shared_ptr<Database>> Server::NewTemporaryDatabase() {
  const std::filesystem::path path =
      std::filesystem::path(options_.state_directory) /
      ("temporary_" + std::to_string(++temporary_count_) + ".db");
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code ignored;
    std::filesystem::remove(path.string() + suffix, ignored);
  }
  Database::Identity identity;
  identity.name = "tempdb";
  identity.id = 2;
  identity.path = path.string();
  identity.seed = options_.seed;
  identity.collation = options_.collation;
  return Database::Open(std::move(identity));
}

std::optional<LoginRecord> Server::FindLogin(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = logins_.find(LowerAscii(name));
  if (found == logins_.end()) return std::nullopt;
  return found->second;
}

std::vector<LoginRecord> Server::Logins() {
  const std::lock_guard lock(mutex_);
  std::vector<LoginRecord> all;
  for (const auto& [key, login] : logins_) all.push_back(login);
  return all;
}

Status Server::PutLogin(const LoginRecord& login) {
  const std::lock_guard lock(mutex_);
  logins_[LowerAscii(login.name)] = login;
  return SaveInstance();
}

Status Server::DropLogin(const std::string& name) {
  const std::lock_guard lock(mutex_);
  logins_.erase(LowerAscii(name));
  return SaveInstance();
}

std::string Server::NewSalt() {
  const std::lock_guard lock(mutex_);
  return HexUpper(std::span(
      reinterpret_cast<const std::uint8_t*>(BigEndian64(dice_.Next()).data()), 8));
}

std::string Server::HashPassword(const std::string& password, const std::string& salt) {
  std::uint8_t hash[32];
  PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()),
                    reinterpret_cast<const unsigned char*>(salt.data()),
                    static_cast<int>(salt.size()), kHashRounds, EVP_sha256(),
                    sizeof(hash), hash);
  return salt + ":" + HexUpper(hash);
}

bool Server::PasswordMatches(const LoginRecord& login, const std::string& password) {
  const std::string salt = login.password_hash.substr(0, login.password_hash.find(':'));
  const std::string hash = HashPassword(password, salt);
  return hash.size() == login.password_hash.size() &&
         CRYPTO_memcmp(hash.data(), login.password_hash.data(), hash.size()) == 0;
}

void Server::NoteScan(ScanSession scan) {
  const std::lock_guard lock(mutex_);
  const auto last = std::find_if(
      scans_.rbegin(), scans_.rend(),
      [&](const ScanSession& other) { return other.database == scan.database; });
  const auto found_nothing = [](const ScanSession& session) {
    return session.empty && session.error_count == 0;
  };
  if (found_nothing(scan) && last != scans_.rend() && found_nothing(*last)) {
    last->end_time = scan.end_time;
    ++last->empty_count;
    return;
  }
  scan.empty_count = found_nothing(scan) ? 1 : 0;
  scan.session_id = scans_.empty() ? 1 : scans_.back().session_id + 1;
  if (scans_.size() >= 1000) scans_.erase(scans_.begin());
  scans_.push_back(std::move(scan));
}

void Server::NoteCaptureError(CaptureError error) {
  const std::lock_guard lock(mutex_);
  if (!Does(Behaviour::kCaptureErrorsNoted)) return;
  if (capture_errors_.size() >= 32) capture_errors_.erase(capture_errors_.begin());
  capture_errors_.push_back(std::move(error));
}

std::vector<Server::ScanSession> Server::Scans() {
  const std::lock_guard lock(mutex_);
  return scans_;
}

std::vector<Server::CaptureError> Server::CaptureErrors() {
  const std::lock_guard lock(mutex_);
  return capture_errors_;
}

void Server::FailNextReads(ReadFault fault) {
  const std::lock_guard lock(mutex_);
  read_fault_ = std::move(fault);
}

std::optional<Server::ReadFault> Server::TakeReadFault(const std::string& table,
                                                       bool of_cdc) {
  const std::lock_guard lock(mutex_);
  const bool meant = read_fault_.table.empty()
                         ? of_cdc
                         : EqualsIgnoringAsciiCase(read_fault_.table, table);
  if (!meant || read_fault_.count == 0) return std::nullopt;
  --read_fault_.count;
  return read_fault_;
}

void Server::FailNextLogins(std::int32_t number, std::int32_t count) {
  const std::lock_guard lock(mutex_);
  login_fault_number_ = number;
  login_fault_count_ = count;
}

std::optional<std::int32_t> Server::TakeLoginFault() {
  const std::lock_guard lock(mutex_);
  if (login_fault_count_ == 0) return std::nullopt;
  --login_fault_count_;
  return login_fault_number_;
}

}  // namespace mssql_cdc::sim
