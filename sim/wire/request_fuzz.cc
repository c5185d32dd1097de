// Everything a client can send, into every parser that may meet it. Goal: no input does
// more than be refused. Method: the first byte chooses the parser and the TDS version,
// the rest is its input; the assembler gets it in two portions, and what it gives is
// parsed by the message's type, as a connection would.

#include <cstdint>
#include <iterator>
#include <span>

#include "sim/wire/declaration.h"
#include "sim/wire/login.h"
#include "sim/wire/packet.h"
#include "sim/wire/request.h"

namespace mssql_cdc::sim::wire {
namespace {

constexpr std::size_t kMessageSizeBytesMax = 1u << 20;

void ParseBody(tds::PacketType type, std::span<const std::uint8_t> body,
               TdsVersion version) {
  switch (type) {
    case tds::PacketType::kPrelogin:
      (void)ParsePrelogin(body);
      break;
    case tds::PacketType::kLogin7:
      (void)ParseLogin7(body);
      break;
    case tds::PacketType::kFederatedToken:
      (void)ParseFedAuthToken(body);
      break;
    case tds::PacketType::kSqlBatch:
      if (const auto sql = ParseBatch(body, version)) (void)ParseDeclarations(*sql);
      break;
    case tds::PacketType::kRpc:
      (void)ParseRpc(body, version);
      break;
    case tds::PacketType::kTransactionManager:
      (void)ParseTransactionRequest(body, version);
      break;
    case tds::PacketType::kReply:
    case tds::PacketType::kAttention:
    case tds::PacketType::kBulkLoad:
    case tds::PacketType::kSspi:
      break;
  }
}

void Assemble(std::span<const std::uint8_t> bytes, TdsVersion version) {
  MessageAssembler assembler(kMessageSizeBytesMax);
  const std::size_t half = bytes.size() / 2;
  for (const auto part : {bytes.first(half), bytes.subspan(half)}) {
    assembler.Feed(part);
    ClientMessage message;
    while (assembler.Next(message) == MessageAssembler::Step::kMessage) {
      ParseBody(message.type, message.body, version);
    }
  }
}

}  // namespace

void FuzzOne(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  const auto version = static_cast<TdsVersion>((bytes[0] >> 4) % 7);
  const std::uint8_t parser = bytes[0] & 0x0F;
  bytes = bytes.subspan(1);
  constexpr tds::PacketType kTypes[] = {tds::PacketType::kPrelogin,
                                        tds::PacketType::kLogin7,
                                        tds::PacketType::kFederatedToken,
                                        tds::PacketType::kSqlBatch,
                                        tds::PacketType::kRpc,
                                        tds::PacketType::kTransactionManager};
  if (parser < std::size(kTypes)) {
    ParseBody(kTypes[parser], bytes, version);
  } else {
    Assemble(bytes, version);
  }
}

}  // namespace mssql_cdc::sim::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mssql_cdc::sim::wire::FuzzOne({data, size});
  return 0;
}
