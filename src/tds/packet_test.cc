#include "tds/packet.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tds/test_bytes.h"

namespace mssql_cdc::tds {
namespace {

using test::Hex;
using test::Join;
using test::Packet;
using test::Wire;

Wire Pattern(std::size_t size) {
  Wire bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  return bytes;
}

void Put(PacketReader& reader, std::span<const std::uint8_t> bytes) {
  const auto space = reader.Space();
  ASSERT_TRUE(space.ok());
  ASSERT_LE(bytes.size(), space.value().size());
  std::ranges::copy(bytes, space.value().begin());
  reader.Received(bytes.size());
}

// Everything the reader makes of `wire` when it comes in pieces of `step` bytes and the
// caller leaves `left` bytes unconsumed until more have come.
Wire PayloadOf(const Wire& wire, std::size_t step, std::size_t left) {
  PacketReader reader(PacketType::kReply);
  Wire payload;
  const auto use = [&](std::size_t keep) {
    const auto now = reader.Payload();
    if (now.size() <= keep) return;
    payload.insert(payload.end(), now.begin(), now.end() - static_cast<long>(keep));
    reader.Consume(now.size() - keep);
  };
  for (std::size_t at = 0; at < wire.size(); at += step) {
    Put(reader, std::span(wire).subspan(at, std::min(step, wire.size() - at)));
    while (true) {
      const auto advanced = reader.Advance();
      EXPECT_TRUE(advanced.ok());
      if (!advanced.ok() || !advanced.value()) break;
      use(left);
    }
  }
  EXPECT_TRUE(reader.message_ended());
  use(0);
  return payload;
}

TEST(Packets, AMessageIsCutAndPutTogetherAgain) {
  for (const std::size_t size : {0u, 1u, 503u, 504u, 505u, 1008u, 5000u}) {
    const Wire message = Pattern(size);
    const Wire wire = FrameMessage(PacketType::kReply, message, 512);
    // Full packets but the last, which alone ends the message.
    const std::size_t count = std::max<std::size_t>(1, (size + 503) / 504);
    ASSERT_EQ(wire.size(), size + count * 8);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(wire[i * 512 + 1], i + 1 == count ? 1 : 0);
      EXPECT_EQ(wire[i * 512 + 6], i + 1);
    }
    for (const std::size_t step : {1u, 7u, 512u, 100'000u}) {
      for (const std::size_t left : {0u, 1u, 5u}) {
        SCOPED_TRACE(testing::Message()
                     << size << " bytes, step " << step << ", left " << left);
        EXPECT_EQ(PayloadOf(wire, step, left), message);
      }
    }
  }
}

// MS-TDS section 4.7, the reply to an SQL batch.
TEST(Packets, TheSpecificationsReplyIsOnePacket) {
  const Wire wire = Hex(
      "04 01 0033 0000 01 00 81 0100 00000000 2000 A7 0300 0904D00034 03 620061007200"
      "D1 0300 666F6F FD 1000 C100 0100000000000000");
  ASSERT_EQ(wire.size(), 51u);
  EXPECT_EQ(PayloadOf(wire, wire.size(), 0), Wire(wire.begin() + 8, wire.end()));
}

TEST(Packets, WhatIsUnconsumedIsContiguousWithTheNextPacket) {
  PacketReader reader(PacketType::kReply);
  Put(reader, Join(Packet(PacketType::kReply, Hex("0102030405"), true),
                   Packet(PacketType::kReply, Hex("0607"))));
  ASSERT_TRUE(reader.Advance().value());
  reader.Consume(2);
  ASSERT_TRUE(reader.Advance().value());
  const auto payload = reader.Payload();
  EXPECT_EQ(Wire(payload.begin(), payload.end()), Hex("0304050607"));
  EXPECT_TRUE(reader.message_ended());
  EXPECT_FALSE(reader.has_more_than_message());
}

TEST(Packets, TheNextMessageWaitsUntilItIsBegun) {
  PacketReader reader(PacketType::kReply);
  Put(reader, Join(Packet(PacketType::kReply, Hex("01")),
                   Packet(PacketType::kReply, Hex("02"))));
  ASSERT_TRUE(reader.Advance().value());
  EXPECT_FALSE(reader.Advance().value());
  EXPECT_TRUE(reader.has_more_than_message());
  reader.BeginMessage();
  ASSERT_TRUE(reader.Advance().value());
  EXPECT_EQ(reader.Payload().size(), 1u);
  EXPECT_EQ(reader.Payload()[0], 0x02);
}

TEST(Packets, PacketsThatBreakTheRulesAreErrors) {
  struct Case {
    const char* name;
    Wire wire;
  };
  const Case cases[] = {
      {"shorter than its header", Hex("04 01 0007 0000 01 00")},
      {"longer than agreed", Hex("04 01 0201 0000 01 00")},
      {"empty and not the last", Hex("04 00 0008 0000 01 00")},
      {"another type", Hex("12 01 0009 0000 01 00 00")},
      {"another type inside a message",
       Join(Packet(PacketType::kReply, Hex("01"), true),
            Packet(PacketType::kPrelogin, Hex("02")))},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    PacketReader reader(PacketType::kReply);
    reader.SetPacketSizeMax(512);
    Put(reader, c.wire);
    Result<bool> advanced = reader.Advance();
    while (advanced.ok() && advanced.value()) advanced = reader.Advance();
    ASSERT_FALSE(advanced.ok());
    EXPECT_EQ(advanced.error().id(), ErrorId::kTdsMalformed);
  }
}

TEST(Packets, WhatNobodyConsumesMeetsTheLimit) {
  PacketReader reader(PacketType::kReply);
  const Wire packet = Packet(PacketType::kReply, Wire(30'000), true);
  std::size_t total = 0;
  while (true) {
    const auto space = reader.Space();
    if (!space.ok()) {
      EXPECT_EQ(space.error().id(), ErrorId::kTdsLimitExceeded);
      break;
    }
    ASSERT_LT(total, 4u << 20);
    Put(reader, packet);
    total += packet.size();
    while (reader.Advance().value()) {
    }
  }
  EXPECT_GT(total, kTdsTokenSizeBytesMax);
}

}  // namespace
}  // namespace mssql_cdc::tds
