#include "tds/prelogin.h"

#include <bitset>

#include "tds/reader.h"
#include "tds/writer.h"

namespace mssql_cdc::tds {
namespace {

constexpr std::size_t kEntrySizeBytes = 5;

struct Option {
  PreloginOption id;
  std::vector<std::uint8_t> value;
};

Error Malformed(std::string_view why) {
  return Error(ErrorId::kTdsMalformed)
      .With("token", "PRELOGIN")
      .With("why", std::string(why));
}

// What one option says. Options this client did not ask for are stepped over.
Status Take(std::uint8_t id, std::span<const std::uint8_t> value,
            PreloginReply& reply) {
  Reader in(value);
  switch (static_cast<PreloginOption>(id)) {
    case PreloginOption::kVersion:
      reply.major_version = in.Le<std::uint8_t>();
      reply.minor_version = in.Le<std::uint8_t>();
      reply.build = in.Be<std::uint16_t>();
      in.Bytes(2);
      if (!in.ok() || in.remaining() != 0) return Malformed("VERSION of a wrong size");
      break;
    case PreloginOption::kEncryption:
      reply.encryption = in.Le<std::uint8_t>();
      if (!in.ok() || in.remaining() != 0)
        return Malformed("ENCRYPTION of a wrong size");
      break;
    case PreloginOption::kFedAuthRequired:
      reply.fed_auth_required = in.Le<std::uint8_t>() != 0;
      if (!in.ok() || in.remaining() != 0) {
        return Malformed("FEDAUTHREQUIRED of a wrong size");
      }
      break;
    case PreloginOption::kInstance:
      // 1: this is another instance than the one asked for, which its own port proves
      // to nobody's harm; the login goes on, as with other clients.
    case PreloginOption::kThreadId:
    case PreloginOption::kMars:
    case PreloginOption::kTraceId:
    case PreloginOption::kNonce:
    case PreloginOption::kTerminator:
      break;
  }
  return Unit{};
}

}  // namespace

std::vector<std::uint8_t> EncodePrelogin(const PreloginRequest& request) {
  std::vector<std::uint8_t> instance(request.instance.begin(), request.instance.end());
  instance.push_back(0);
  std::vector<Option> options = {
      {PreloginOption::kVersion, {0, 0, 0, 0, 0, 0}},
      {PreloginOption::kEncryption, {request.encryption}},
      {PreloginOption::kInstance, std::move(instance)},
      {PreloginOption::kThreadId, {0, 0, 0, 0}},
      {PreloginOption::kMars, {0}},
  };
  if (request.fed_auth) options.push_back({PreloginOption::kFedAuthRequired, {1}});

  Writer out;
  std::size_t offset = options.size() * kEntrySizeBytes + 1;
  for (const Option& option : options) {
    out.Le(static_cast<std::uint8_t>(option.id));
    out.Be(static_cast<std::uint16_t>(offset));
    out.Be(static_cast<std::uint16_t>(option.value.size()));
    offset += option.value.size();
  }
  out.Le(static_cast<std::uint8_t>(PreloginOption::kTerminator));
  for (const Option& option : options) out.Bytes(option.value);
  return out.Take();
}

Result<PreloginReply> DecodePrelogin(std::span<const std::uint8_t> payload) {
  PreloginReply reply;
  Reader table(payload);
  std::bitset<256> seen;
  while (true) {
    const auto id = table.Le<std::uint8_t>();
    if (!table.ok()) return Malformed("no terminator");
    if (id == static_cast<std::uint8_t>(PreloginOption::kTerminator)) break;
    const auto offset = table.Be<std::uint16_t>();
    const auto size = table.Be<std::uint16_t>();
    if (!table.ok()) return Malformed("no terminator");
    Reader value(payload);
    value.Bytes(offset);
    const auto bytes = value.Bytes(size);
    if (!value.ok()) return Malformed("a value outside the message");
    if (seen.none() && id != static_cast<std::uint8_t>(PreloginOption::kVersion)) {
      return Malformed("VERSION is not first");
    }
    if (seen[id]) return Malformed("an option given twice");
    seen.set(id);
    TRY(Take(id, bytes, reply));
  }
  if (!seen[static_cast<std::size_t>(PreloginOption::kEncryption)]) {
    return Malformed("no ENCRYPTION");
  }
  return reply;
}

}  // namespace mssql_cdc::tds
