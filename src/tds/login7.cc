#include "tds/login7.h"

#include <array>
#include <string_view>

#include "tds/writer.h"

namespace mssql_cdc::tds {
namespace {

// OptionFlags1: tell of a database change, fail if the database cannot be used, set the
// language. OptionFlags2: fail if it cannot be set; ODBC, which makes the server apply
// ANSI settings and an unlimited TEXTSIZE, without which long values come cut off.
constexpr std::uint8_t kOptionFlags1 = 0x20 | 0x40 | 0x80;
constexpr std::uint8_t kOptionFlags2 = 0x01 | 0x02;
constexpr std::uint8_t kTypeReadOnlyIntent = 0x20;
constexpr std::uint8_t kOptionFlags3Extension = 0x10;

constexpr std::size_t kFixedSizeBytes = 94;
// The bounds that MS-TDS sets, in UTF-16 code units.
constexpr std::size_t kNameUnitsMax = 128;

// Libraries of the FEDAUTH feature, and the workflow of a login by name and secret.
constexpr std::uint8_t kFedAuthSecurityToken = 1;
constexpr std::uint8_t kFedAuthAdal = 2;
constexpr std::uint8_t kAdalNameAndSecret = 1;

struct Field {
  std::string_view option;  // As the connection string names it.
  std::string_view text;
};

// Per byte: halves swapped, then XOR 0xA5. This hides nothing; TLS does.
void ObfuscatePassword(std::vector<std::uint8_t>& utf16) {
  for (std::uint8_t& byte : utf16) {
    byte = static_cast<std::uint8_t>(((byte << 4) | (byte >> 4)) ^ 0xA5);
  }
}

void WriteFeatures(const Login7& login, Writer& out) {
  if (login.access_token) {
    std::vector<std::uint8_t> token;
    AppendUtf16(login.access_token->Reveal(), token);
    out.Le(static_cast<std::uint8_t>(Feature::kFedAuth));
    out.Le(static_cast<std::uint32_t>(1 + sizeof(std::uint32_t) + token.size()));
    out.Le(static_cast<std::uint8_t>((kFedAuthSecurityToken << 1) |
                                     (login.fed_auth_echo ? 1 : 0)));
    out.Le(static_cast<std::uint32_t>(token.size()));
    out.Bytes(token);
  }
  if (login.brings_token_later) {
    out.Le(static_cast<std::uint8_t>(Feature::kFedAuth));
    out.Le(std::uint32_t{2});
    out.Le(
        static_cast<std::uint8_t>((kFedAuthAdal << 1) | (login.fed_auth_echo ? 1 : 0)));
    out.Le(kAdalNameAndSecret);
  }
  out.Le(static_cast<std::uint8_t>(Feature::kUtf8Support));
  out.Le(std::uint32_t{1});
  out.Le(std::uint8_t{1});
  out.Le(static_cast<std::uint8_t>(Feature::kTerminator));
}

void WriteFixed(const Login7& login, Writer& out) {
  out.Le(std::uint32_t{0});  // The length, known at the end.
  out.Le(login.tds_version);
  out.Le(login.packet_size_bytes);
  out.Le(std::uint32_t{0});  // ClientProgVer
  out.Le(login.process_id);
  out.Le(std::uint32_t{0});  // ConnectionID
  out.Le(kOptionFlags1);
  out.Le(kOptionFlags2);
  out.Le(login.read_only_intent ? kTypeReadOnlyIntent : std::uint8_t{0});
  out.Le(kOptionFlags3Extension);
  out.Le(std::uint32_t{0});  // ClientTimeZone
  out.Le(std::uint32_t{0});  // ClientLCID
}

}  // namespace

Result<std::vector<std::uint8_t>> EncodeLogin7(const Login7& login) {
  const bool with_token = login.access_token.has_value() || login.brings_token_later;
  // In the order of the offset table; the extension, which is a pointer, comes between
  // ServerName and CltIntName.
  constexpr std::size_t kPasswordIndex = 2;
  constexpr std::size_t kExtensionIndex = 5;
  const std::array<Field, 9> fields = {{
      {"Workstation ID", login.workstation},
      {"UID", with_token ? std::string_view() : std::string_view(login.user)},
      {"PWD", with_token ? std::string_view() : login.password.Reveal()},
      {"Application Name", login.application},
      {"Server", login.server},
      {"", ""},
      {"library", "mssql-cdc"},
      {"language", ""},
      {"Database", login.database},
  }};

  Writer out;
  WriteFixed(login, out);
  Writer data;
  std::size_t extension_offset = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t offset = kFixedSizeBytes + data.size();
    std::vector<std::uint8_t> text;
    std::size_t count = sizeof(std::uint32_t);
    if (i == kExtensionIndex) {
      extension_offset = offset;
      text.resize(count);
    } else {
      AppendUtf16(fields[i].text, text);
      count = text.size() / 2;
      if (i == kPasswordIndex) ObfuscatePassword(text);
    }
    if (count > kNameUnitsMax) {
      return Error(ErrorId::kOptionInvalid)
          .With("option", std::string(fields[i].option))
          .With("why", "longer than 128 characters");
    }
    out.Le(static_cast<std::uint16_t>(offset));
    out.Le(static_cast<std::uint16_t>(count));
    data.Bytes(text);
  }
  const auto end = static_cast<std::uint16_t>(kFixedSizeBytes + data.size());
  out.Bytes(std::array<std::uint8_t, 6>{});  // ClientID
  for (int i = 0; i < 3; ++i) {              // SSPI, AtchDBFile, ChangePassword
    out.Le(end);
    out.Le(std::uint16_t{0});
  }
  out.Le(std::uint32_t{0});  // SSPILong
  out.Bytes(data.bytes());
  // ibExtension leads to a DWORD, and that one to the features.
  out.PatchLe(extension_offset, static_cast<std::uint32_t>(out.size()));
  WriteFeatures(login, out);
  out.PatchLe(0, static_cast<std::uint32_t>(out.size()));
  return out.Take();
}

std::vector<std::uint8_t> EncodeFedAuthToken(const Secret& token) {
  std::vector<std::uint8_t> text;
  AppendUtf16(token.Reveal(), text);
  Writer out;
  out.Le(static_cast<std::uint32_t>(sizeof(std::uint32_t) + text.size()));
  out.Le(static_cast<std::uint32_t>(text.size()));
  out.Bytes(text);
  for (std::uint8_t& byte : text) byte = 0;
  return out.Take();
}

}  // namespace mssql_cdc::tds
