// Goal: no token stream can do more than cause an error, and packets change nothing
// about it. Method: the input is taken as payload and decoded token by token; then it
// is framed into packets and decoded through PacketReader as it arrives in pieces. Both
// must give the same tokens and the same end. A decoded token takes at least one byte,
// and one that asks for more took none.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "tds/packet.h"
#include "tds/tokens.h"

namespace mssql_cdc::tds {
namespace {

struct Outcome {
  std::vector<Token> tokens;
  bool failed = false;
  std::size_t left = 0;
};

// Decodes what `reader` holds; false once a token was refused.
bool DecodeAll(std::span<const std::uint8_t> bytes, std::size_t& used,
               Outcome& outcome) {
  Reader in(bytes);
  while (true) {
    const std::size_t before = in.offset();
    auto token = DecodeToken(in);
    if (!token.ok()) {
      outcome.failed = true;
      return false;
    }
    if (!token.value()) {
      CHECK(in.offset() == before);
      used = before;
      return true;
    }
    CHECK(in.offset() > before);
    outcome.tokens.push_back(std::move(*token.value()));
  }
}

Outcome Whole(const std::vector<std::uint8_t>& payload) {
  Outcome outcome;
  std::size_t used = 0;
  if (DecodeAll(payload, used, outcome)) outcome.left = payload.size() - used;
  return outcome;
}

Outcome InPackets(const std::vector<std::uint8_t>& payload, std::size_t step) {
  const auto wire = FrameMessage(PacketType::kReply, payload, 64);
  PacketReader reader(PacketType::kReply, 128);
  Outcome outcome;
  for (std::size_t at = 0; at < wire.size(); at += step) {
    auto space = reader.Space();
    CHECK(space.ok());
    const std::size_t count = std::min(step, wire.size() - at);
    std::copy_n(wire.begin() + static_cast<std::ptrdiff_t>(at), count,
                space.value().begin());
    reader.Received(count);
    while (true) {
      const auto advanced = reader.Advance();
      CHECK(advanced.ok());
      if (!advanced.value()) break;
      std::size_t used = 0;
      if (!DecodeAll(reader.Payload(), used, outcome)) return outcome;
      reader.Consume(used);
    }
  }
  CHECK(reader.message_ended());
  outcome.left = reader.Payload().size();
  return outcome;
}

}  // namespace
}  // namespace mssql_cdc::tds

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mssql_cdc::tds;
  const std::vector<std::uint8_t> payload(data, data + size);
  const Outcome whole = Whole(payload);
  const Outcome in_packets = InPackets(payload, 1 + size % 97);
  CHECK(whole.tokens == in_packets.tokens);
  CHECK(whole.failed == in_packets.failed);
  CHECK(whole.left == in_packets.left);
  return 0;
}
