#include "sim/wire/packet.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mssql_cdc::sim::wire {
namespace {

using Step = MessageAssembler::Step;

std::string Packet(int type, int status, std::string_view body) {
  const std::size_t size = body.size() + 8;
  std::string bytes;
  for (const std::size_t byte :
       {static_cast<std::size_t>(type), static_cast<std::size_t>(status), size >> 8,
        size & 0xFF, std::size_t{0}, std::size_t{0}, std::size_t{0}, std::size_t{0}}) {
    bytes += static_cast<char>(byte);
  }
  return bytes.append(body);
}

void Feed(MessageAssembler& assembler, std::string_view bytes) {
  assembler.Feed({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::string Body(const ClientMessage& message) {
  return {message.body.begin(), message.body.end()};
}

TEST(MessageAssembler, GivesTheSameMessagesAtEverySplit) {
  const std::string bytes =
      Packet(3, 0x08, "abc") + Packet(3, 0x01, "de") + Packet(1, 0x01, "f");
  for (std::size_t split = 0; split <= bytes.size(); ++split) {
    MessageAssembler assembler(1000);
    std::vector<std::string> got;
    ClientMessage message;
    for (const std::string& part : {bytes.substr(0, split), bytes.substr(split)}) {
      Feed(assembler, part);
      while (assembler.Next(message) == Step::kMessage) {
        got.push_back(Body(message));
        EXPECT_EQ(message.status, got.size() == 1 ? 0x08 : 0x01) << split;
      }
    }
    EXPECT_EQ(got, (std::vector<std::string>{"abcde", "f"})) << split;
  }
}

TEST(MessageAssembler, RefusesWhatBreaksTheFraming) {
  struct Case {
    const char* name;
    std::string bytes;
  };
  const Case cases[] = {
      {"a reply type", Packet(4, 1, "x")},
      {"an unknown type", Packet(0x47, 1, "x")},
      {"length below the header", std::string("\x01\x01\0\x07\0\0\0\0", 8)},
      {"length above every packet", std::string("\x01\x01\xFF\xFF\0\0\0\0", 8)},
      {"the type changes inside a message", Packet(1, 0, "x") + Packet(3, 1, "x")},
      {"an empty packet that is not the last", Packet(1, 0, "")},
      {"a message above the limit",
       Packet(1, 0, std::string(60, 'x')) + Packet(1, 1, std::string(60, 'x'))},
  };
  for (const Case& c : cases) {
    MessageAssembler assembler(100);
    Feed(assembler, c.bytes);
    ClientMessage message;
    EXPECT_EQ(assembler.Next(message), Step::kMalformed) << c.name;
  }
}

TEST(MessageAssembler, DropsARequestThatItsClientGaveUp) {
  MessageAssembler assembler(1000);
  Feed(assembler, Packet(1, 0, "half") + Packet(1, 0x03, "") + Packet(1, 1, "whole"));
  ClientMessage message;
  ASSERT_EQ(assembler.Next(message), Step::kMessage);
  EXPECT_EQ(Body(message), "whole");
}

TEST(MessageAssembler, LetsAnAttentionCutOffAHalfSentRequest) {
  MessageAssembler assembler(1000);
  Feed(assembler, Packet(1, 0, "half") + Packet(6, 1, ""));
  ClientMessage message;
  ASSERT_EQ(assembler.Next(message), Step::kMessage);
  EXPECT_EQ(message.type, tds::PacketType::kAttention);
}

TEST(PacketWriter, FillsEveryPacketButTheLast) {
  for (std::size_t size = 0; size <= 40; ++size) {
    std::string sent;
    PacketWriter packets(0x1234, [&](std::string_view bytes) {
      sent += bytes;
      return true;
    });
    packets.SetPacketSize(18);  // Ten bytes of content.
    const std::string content(size, 'x');
    packets.Append(content.substr(0, size / 3));
    packets.Append(content.substr(size / 3));
    packets.EndMessage();
    std::string got;
    while (!sent.empty()) {
      const std::size_t length = static_cast<std::uint8_t>(sent[3]);
      const bool last = sent[1] == 1;
      EXPECT_EQ(sent[0], 4);
      EXPECT_EQ(sent.substr(4, 2), "\x12\x34");
      EXPECT_TRUE(last || length == 18u) << size;
      got += sent.substr(8, length - 8);
      sent.erase(0, length);
      EXPECT_EQ(last, sent.empty()) << size;
    }
    EXPECT_EQ(got, content);
  }
}

// Whether bytes are copied or go out from where they lie, the client reads the same.
TEST(PacketWriter, ManyBytesGoOutAsTheSamePackets) {
  for (std::size_t before = 0; before <= 25; ++before) {
    for (std::size_t size = 0; size <= 60; ++size) {
      std::string in_parts, copied;
      std::size_t most_parts = 0;
      PacketWriter many(
          0x1234, [&](std::string_view bytes) { return in_parts += bytes, true; },
          [&](PacketWriter::Parts parts) {
            most_parts = std::max(most_parts, parts.size());
            for (const std::string_view part : parts) in_parts += part;
            return true;
          });
      PacketWriter plain(0x1234,
                         [&](std::string_view bytes) { return copied += bytes, true; });
      std::string content;
      for (std::size_t i = 0; i < size; ++i) content += static_cast<char>(i);
      for (PacketWriter* writer : {&many, &plain}) {
        writer->SetPacketSize(18);
        writer->Append(std::string(before, 'x'));
        writer->AppendMany(content);
        writer->AppendMany(content);
        writer->EndMessage();
      }
      EXPECT_EQ(in_parts, copied) << before << " " << size;
      EXPECT_TRUE(size <= 30 || most_parts > 2) << before << " " << size;
    }
  }
}

TEST(PacketWriter, SwallowsEverythingOnceTheClientIsGone) {
  PacketWriter gone(
      0, [](std::string_view) { return true; },
      [](PacketWriter::Parts) { return false; });
  gone.AppendMany(std::string(1 << 20, 'x'));
  EXPECT_TRUE(gone.broken());
  gone.AppendMany(std::string(1 << 20, 'x'));
  gone.EndMessage();
  PacketWriter packets(0, [](std::string_view) { return false; });
  packets.Append("x");
  packets.EndMessage();
  EXPECT_TRUE(packets.broken());
  packets.Append(std::string(1 << 20, 'x'));
  packets.EndMessage();
}

}  // namespace
}  // namespace mssql_cdc::sim::wire
