#include "sim/wire/login.h"

#include "sim/value.h"
#include "sim/wire/bytes.h"
#include "tds/spec.h"

namespace mssql_cdc::sim::wire {
namespace {

constexpr std::uint8_t kOptionIntegratedSecurity = 0x80;  // OptionFlags2.
constexpr std::uint8_t kTypeReadOnlyIntent = 0x20;        // TypeFlags.
constexpr std::uint8_t kOptionExtension = 0x10;           // OptionFlags3.
constexpr std::size_t kLogin7FixedSizeBytes = 86;         // What TDS 7.0 already has.

// Text that is found by an offset from the start of LOGIN7 and a count of units.
std::u16string TextAt(std::span<const std::uint8_t> body, ByteReader& table) {
  const std::size_t offset = table.U16();
  const std::size_t units = table.U16();
  if (units == 0) return {};
  if (offset > body.size() || units > (body.size() - offset) / 2) {
    table.Fail();
    return {};
  }
  return ByteReader(body.subspan(offset)).Utf16(units);
}

// Undoes what clients do to each byte of a password: nibbles swapped, then XOR A5.
std::u16string Deobfuscate(std::u16string password) {
  for (char16_t& unit : password) {
    const auto plain = [](unsigned byte) {
      byte ^= 0xA5;
      return (byte >> 4 | byte << 4) & 0xFF;
    };
    unit = static_cast<char16_t>(plain(unit & 0xFFu) | plain(unit >> 8) << 8);
  }
  return password;
}

std::optional<FedAuth> ParseFedAuthFeature(std::span<const std::uint8_t> data) {
  ByteReader reader(data);
  FedAuth fed_auth;
  switch (reader.U8() >> 1) {
    case 1: {
      fed_auth.library = FedAuth::Library::kSecurityToken;
      const std::uint32_t size = reader.U32();
      if (size % 2 != 0 || size > reader.remaining()) return std::nullopt;
      fed_auth.token = Utf8(reader.Utf16(size / 2));
      break;
    }
    case 2:
      fed_auth.library = FedAuth::Library::kAskLater;
      break;
    default:
      return std::nullopt;  // Live ID, and libraries nobody has.
  }
  if (!reader.ok()) return std::nullopt;
  return fed_auth;
}

// ibExtension points to a DWORD that holds the offset of the feature list.
bool ParseFeatures(std::span<const std::uint8_t> body, std::size_t pointer_offset,
                   Login7& login) {
  if (pointer_offset > body.size()) return false;
  const std::uint32_t offset = ByteReader(body.subspan(pointer_offset)).U32();
  if (offset < 4 || offset >= body.size()) return false;
  ByteReader reader(body.subspan(offset));
  login.has_features = true;
  for (;;) {
    const auto id = static_cast<tds::Feature>(reader.U8());
    if (!reader.ok()) return false;
    if (id == tds::Feature::kTerminator) return true;
    const std::uint32_t size = reader.U32();
    const std::span<const std::uint8_t> data = reader.Take(size);
    if (!reader.ok()) return false;
    if (id == tds::Feature::kUtf8Support) login.utf8_support = true;
    if (id == tds::Feature::kFedAuth) {
      login.fed_auth = ParseFedAuthFeature(data);
      if (!login.fed_auth) return false;
    }
  }
}

}  // namespace

std::optional<Prelogin> ParsePrelogin(std::span<const std::uint8_t> body) {
  Prelogin prelogin;
  ByteReader table(body);
  bool first = true;
  for (;;) {
    const auto option = static_cast<tds::PreloginOption>(table.U8());
    if (!table.ok()) return std::nullopt;
    if (option == tds::PreloginOption::kTerminator) break;
    const std::size_t offset = table.U16Be();
    const std::size_t size = table.U16Be();
    if (!table.ok() || offset > body.size() || size > body.size() - offset) {
      return std::nullopt;
    }
    if (first != (option == tds::PreloginOption::kVersion)) return std::nullopt;
    first = false;
    if (option == tds::PreloginOption::kEncryption) {
      if (size != 1) return std::nullopt;
      prelogin.encryption = body[offset];
    } else if (option == tds::PreloginOption::kFedAuthRequired) {
      prelogin.asks_fed_auth = true;
    }
  }
  if (first) return std::nullopt;
  return prelogin;
}

std::optional<Login7> ParseLogin7(std::span<const std::uint8_t> body) {
  ByteReader reader(body);
  const std::uint32_t size = reader.U32();
  if (size < kLogin7FixedSizeBytes || size > body.size()) return std::nullopt;
  body = body.first(size);
  reader = ByteReader(body);
  Login7 login;
  reader.U32();
  login.tds_version = reader.U32();
  login.packet_size_bytes = reader.U32();
  reader.Take(12);  // Client program version, process id, connection id.
  reader.U8();
  const std::uint8_t options2 = reader.U8();
  const std::uint8_t type_flags = reader.U8();
  const std::uint8_t options3 = reader.U8();
  reader.Take(8);  // Time zone and LCID.
  login.host = Utf8(TextAt(body, reader));
  login.user = Utf8(TextAt(body, reader));
  login.password = Utf8(Deobfuscate(TextAt(body, reader)));
  login.application = Utf8(TextAt(body, reader));
  TextAt(body, reader);  // The server's name as the client knows it.
  const std::size_t extension_offset = reader.U16();
  reader.U16();
  TextAt(body, reader);  // The client library's name.
  login.language = Utf8(TextAt(body, reader));
  login.database = Utf8(TextAt(body, reader));
  if (!reader.ok()) return std::nullopt;
  login.integrated_security = (options2 & kOptionIntegratedSecurity) != 0;
  login.read_only_intent = (type_flags & kTypeReadOnlyIntent) != 0;
  if ((options3 & kOptionExtension) != 0 &&
      !ParseFeatures(body, extension_offset, login)) {
    return std::nullopt;
  }
  return login;
}

std::optional<std::string> ParseFedAuthToken(std::span<const std::uint8_t> body) {
  ByteReader reader(body);
  const std::uint32_t total = reader.U32();
  const std::uint32_t size = reader.U32();
  if (!reader.ok() || total > body.size() - 4 || size % 2 != 0 ||
      size > reader.remaining()) {
    return std::nullopt;
  }
  return Utf8(reader.Utf16(size / 2));
}

std::optional<TdsVersion> NegotiateVersion(std::uint32_t asked, bool strict) {
  if (asked == tds::kTds80) return strict ? TdsVersion::k80 : TdsVersion::k74;
  if (asked >= tds::kTds74) return TdsVersion::k74;
  if (asked >= tds::kTds73) return TdsVersion::k73b;
  if (asked >= 0x73000000) return TdsVersion::k73a;
  if (asked >= 0x72000000) return TdsVersion::k72;
  if (asked >= 0x71000000 || asked == 0x07010000) return TdsVersion::k71;
  if (asked >= 0x70000000 || asked == 0x07000000) return TdsVersion::k70;
  return std::nullopt;
}

std::uint32_t AckedVersion(TdsVersion version, std::uint32_t asked) {
  switch (version) {
    case TdsVersion::k70:
      return 0x07000000;  // The one that LOGINACK writes in another form.
    case TdsVersion::k71:
      return asked == 0x71000000 ? 0x07010000 : asked;
    case TdsVersion::k72:
    case TdsVersion::k73a:
    case TdsVersion::k73b:
      return asked;
    case TdsVersion::k74:
      return tds::kTds74;
    case TdsVersion::k80:
      return tds::kTds80;
  }
  return asked;
}

}  // namespace mssql_cdc::sim::wire
