#include "sim/wire/request.h"

#include "sim/wire/bytes.h"
#include "sim/wire/parameter.h"

namespace mssql_cdc::sim::wire {
namespace {

constexpr std::uint16_t kNameIsId = 0xFFFF;
constexpr std::uint8_t kStatusByReference = 0x01;
constexpr std::uint8_t kStatusDefault = 0x02;

// ALL_HEADERS (2.2.5.3): u32 of the whole, then {u32 length, u16 type, data}. Nothing
// in it changes what this server does, so it is only stepped over. From TDS 7.2 on.
void SkipHeaders(ByteReader& reader, TdsVersion version) {
  if (version < TdsVersion::k72) return;
  const std::uint32_t total = reader.U32();
  if (total < 4) {
    reader.Fail();
    return;
  }
  ByteReader headers(reader.Take(total - 4));
  while (reader.ok() && headers.ok() && headers.remaining() > 0) {
    const std::uint32_t size = headers.U32();
    if (size < 6) {
      headers.Fail();
    } else {
      headers.Take(size - 4);
    }
  }
  if (!headers.ok()) reader.Fail();
}

// The byte between two calls of one message. A name's length in units stands at the
// same place, and no name is that long.
bool IsSeparator(std::uint8_t byte, TdsVersion version) {
  return byte == 0xFF || byte == 0xFE || (version < TdsVersion::k72 && byte == 0x80);
}

std::optional<IsolationLevel> LevelOf(std::uint8_t byte, ByteReader& reader) {
  switch (byte) {
    case 0:
      return std::nullopt;  // The session's.
    case 1:
      return IsolationLevel::kReadUncommitted;
    case 2:
      return IsolationLevel::kReadCommitted;
    case 3:
      return IsolationLevel::kRepeatableRead;
    case 4:
      return IsolationLevel::kSerializable;
    case 5:
      return IsolationLevel::kSnapshot;
    default:
      reader.Fail();
      return std::nullopt;
  }
}

std::string ReadByteCountedName(ByteReader& reader) {
  const std::uint8_t size = reader.U8();
  if (size % 2 != 0) reader.Fail();
  return Utf8(reader.Utf16(size / 2u));
}

// Reads one call up to its separator or the end. nullopt in `refused` stays so unless a
// parameter's type is not taken.
RpcCall ReadCall(ByteReader& reader, TdsVersion version,
                 std::optional<RpcRequest::RefusedType>& refused) {
  RpcCall call;
  const std::uint16_t name_units = reader.U16();
  if (name_units == kNameIsId) {
    call.id = reader.U16();
  } else {
    call.name = Utf8(reader.Utf16(name_units));
  }
  reader.U16();  // Option flags: recompile, no metadata. Metadata is always sent.
  while (reader.ok() && reader.remaining() > 0 &&
         !IsSeparator(reader.Peek(), version)) {
    RpcParameter parameter;
    parameter.name = Utf8(reader.Utf16(reader.U8()));
    const std::uint8_t status = reader.U8();
    parameter.by_reference = (status & kStatusByReference) != 0;
    parameter.uses_default = (status & kStatusDefault) != 0;
    const std::uint8_t token = reader.Peek();
    const std::optional<WireType> type = ReadTypeInfo(reader, version);
    if (!type) {
      if (reader.ok()) {
        refused = {token, call.parameters.size(), parameter.name};
      }
      return call;
    }
    parameter.type = type->type;
    parameter.value = ReadValue(reader, *type);
    call.parameters.push_back(std::move(parameter));
  }
  return call;
}

}  // namespace

std::optional<std::string> ParseBatch(std::span<const std::uint8_t> body,
                                      TdsVersion version) {
  ByteReader reader(body);
  SkipHeaders(reader, version);
  if (!reader.ok() || reader.remaining() % 2 != 0) return std::nullopt;
  return Utf8(reader.Utf16(reader.remaining() / 2));
}

std::optional<RpcRequest> ParseRpc(std::span<const std::uint8_t> body,
                                   TdsVersion version) {
  ByteReader reader(body);
  SkipHeaders(reader, version);
  RpcRequest request;
  while (reader.ok() && reader.remaining() > 0) {
    RpcCall call = ReadCall(reader, version, request.refused);
    if (!reader.ok()) return std::nullopt;
    request.calls.push_back(std::move(call));
    if (request.refused) break;
    if (reader.remaining() > 0) reader.U8();  // The separator.
  }
  if (!reader.ok() || request.calls.empty()) return std::nullopt;
  return request;
}

std::optional<TransactionRequest> ParseTransactionRequest(
    std::span<const std::uint8_t> body, TdsVersion version) {
  ByteReader reader(body);
  SkipHeaders(reader, version);
  TransactionRequest request;
  const std::uint16_t kind = reader.U16();
  switch (kind) {
    case 5:
      request.kind = TransactionRequest::Kind::kBegin;
      request.level = LevelOf(reader.U8(), reader);
      request.name = ReadByteCountedName(reader);
      break;
    case 7:
    case 8:
      request.kind = kind == 7 ? TransactionRequest::Kind::kCommit
                               : TransactionRequest::Kind::kRollback;
      request.name = ReadByteCountedName(reader);
      request.begins_next = (reader.U8() & 0x01) != 0;
      if (request.begins_next) {
        request.level = LevelOf(reader.U8(), reader);
        ReadByteCountedName(reader);
      }
      break;
    case 9:
      request.kind = TransactionRequest::Kind::kSave;
      request.name = ReadByteCountedName(reader);
      break;
    default:
      break;  // Distributed transactions.
  }
  if (!reader.ok()) return std::nullopt;
  return request;
}

}  // namespace mssql_cdc::sim::wire
