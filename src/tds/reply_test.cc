// What the wire cases do not show of the reply decoder: where batches end, what an
// error points at, what large values cost, and that every choice of instructions is the
// same.

#include "tds/reply.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "base/dice.h"
#include "tds/collation.h"
#include "tds/text_codec.h"
#include "tds/type_info.h"
#include "tds/utf16_kernels.h"

namespace mssql_cdc::tds {
namespace {

using Wire = std::vector<std::uint8_t>;

void Put(Wire& wire, std::initializer_list<int> bytes) {
  for (const int byte : bytes) wire.push_back(static_cast<std::uint8_t>(byte));
}

void PutLe(Wire& wire, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) {
    wire.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

// COLMETADATA: i int null, v varchar(8000) null, by MS-TDS.
Wire Metadata() {
  Wire wire;
  Put(wire, {0x81, 2, 0});
  Put(wire, {0, 0, 0, 0, 1, 0, 0x26, 4, 1, 'i', 0});
  Put(wire, {0, 0, 0, 0, 1, 0, 0xA7, 0x40, 0x1F, 9, 4, 0xD0, 0, 0x34, 1, 'v', 0});
  return wire;
}

void PutRow(Wire& wire, int number, std::size_t text_size) {
  Put(wire, {0xD1, 4});
  PutLe(wire, static_cast<std::uint64_t>(number), 4);
  PutLe(wire, text_size, 2);
  wire.insert(wire.end(), text_size, 'x');
}

void PutDone(Wire& wire) { Put(wire, {0xFD, 0, 0, 0xC1, 0, 0, 0, 0, 0, 0, 0, 0, 0}); }

// The row counts of all batches, feeding pieces of `piece` bytes.
std::vector<std::int64_t> BatchRowCounts(const Wire& wire, ReplyLimits limits,
                                         std::size_t piece) {
  ReplyDecoder decoder(limits);
  std::vector<std::int64_t> counts;
  Wire kept;
  for (std::size_t at = 0; at < wire.size(); at += piece) {
    const std::size_t end = std::min(at + piece, wire.size());
    kept.insert(kept.end(), wire.begin() + static_cast<long>(at),
                wire.begin() + static_cast<long>(end));
    std::span<const std::uint8_t> payload(kept);
    while (true) {
      auto progress = decoder.Consume(payload);
      EXPECT_TRUE(progress.ok());
      if (!progress.ok()) return counts;
      payload = payload.subspan(progress.value().consumed);
      if (const auto* ready = std::get_if<BatchReady>(&progress.value().event)) {
        counts.push_back(ready->batch.row_count);
        // One row may pass the limit, no more.
        if (ready->batch.row_count > 1) {
          EXPECT_LT(ready->batch.SizeBytes(), limits.size_bytes_max + 9000);
        }
      }
      if (std::holds_alternative<NeedMore>(progress.value().event)) break;
    }
    kept.assign(payload.begin(), payload.end());
  }
  EXPECT_TRUE(decoder.at_boundary());
  return counts;
}

TEST(ReplyDecoder, ABatchEndsAtItsRowCount) {
  Wire wire = Metadata();
  for (int row = 0; row < 25; ++row) PutRow(wire, row, 3);
  PutDone(wire);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{100}, wire.size()}) {
    EXPECT_EQ(BatchRowCounts(wire, {10, 1 << 20}, piece),
              (std::vector<std::int64_t>{10, 10, 5}));
    EXPECT_EQ(BatchRowCounts(wire, {25, 1 << 20}, piece),
              std::vector<std::int64_t>{25});
  }
}

TEST(ReplyDecoder, ABatchEndsWithTheRowThatReachesItsSize) {
  Wire wire = Metadata();
  for (int row = 0; row < 300; ++row) PutRow(wire, row, 8000);
  PutDone(wire);
  for (const std::size_t piece : {std::size_t{7}, std::size_t{32'759}, wire.size()}) {
    const auto counts = BatchRowCounts(wire, {1000, 800'000}, piece);
    ASSERT_EQ(counts.size(), 3u) << piece;
    EXPECT_EQ(counts[0] + counts[1] + counts[2], 300);
    EXPECT_NEAR(static_cast<double>(counts[0]), 100, 1);
  }
}

TEST(ReplyDecoder, RowsBeforeADoneComeFirst) {
  Wire wire = Metadata();
  PutRow(wire, 1, 1);
  const std::size_t rows_end = wire.size();
  PutDone(wire);
  ReplyDecoder decoder{ReplyLimits{}};
  auto begins = decoder.Consume(wire);
  ASSERT_TRUE(begins.ok());
  ASSERT_TRUE(std::holds_alternative<ResultBegins>(begins.value().event));
  std::span<const std::uint8_t> rest(wire);
  rest = rest.subspan(begins.value().consumed);
  // Half a row and then the row without its DONE: both wait.
  auto waits = decoder.Consume(rest.first(3));
  ASSERT_TRUE(waits.ok());
  EXPECT_TRUE(std::holds_alternative<NeedMore>(waits.value().event));
  EXPECT_EQ(waits.value().consumed, 3u);
  EXPECT_FALSE(decoder.at_boundary());
  waits =
      decoder.Consume(std::span(wire).first(rows_end).subspan(Metadata().size() + 3));
  ASSERT_TRUE(waits.ok());
  EXPECT_TRUE(std::holds_alternative<NeedMore>(waits.value().event));
  EXPECT_FALSE(decoder.at_boundary());
  rest = std::span(wire).subspan(rows_end);
  auto rows = decoder.Consume(rest);
  ASSERT_TRUE(rows.ok());
  EXPECT_TRUE(std::holds_alternative<BatchReady>(rows.value().event));
  EXPECT_EQ(rows.value().consumed, 0u);
  auto done = decoder.Consume(rest);
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(std::holds_alternative<Token>(done.value().event));
  EXPECT_TRUE(decoder.at_boundary());
}

TEST(ReplyDecoder, AnErrorPointsAtTheValue) {
  Wire wire = Metadata();
  PutRow(wire, 1, 5);
  const std::size_t bad = wire.size() + 1;
  Put(wire, {0xD1, 3, 0, 0, 0});
  wire.resize(wire.size() + 200);
  for (const std::size_t piece : {std::size_t{1}, wire.size()}) {
    ReplyDecoder decoder{ReplyLimits{}};
    Wire kept;
    std::optional<Error> error;
    for (std::size_t at = 0; at < wire.size() && !error; at += piece) {
      kept.insert(kept.end(), wire.begin() + static_cast<long>(at),
                  wire.begin() + static_cast<long>(std::min(at + piece, wire.size())));
      while (!error) {
        auto progress = decoder.Consume(kept);
        if (!progress.ok()) {
          error = progress.error();
          break;
        }
        kept.erase(kept.begin(),
                   kept.begin() + static_cast<long>(progress.value().consumed));
        if (std::holds_alternative<NeedMore>(progress.value().event)) break;
      }
    }
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->id(), ErrorId::kTdsMalformed);
    EXPECT_EQ(error->Fact("column"), "i");
    EXPECT_EQ(error->Fact("token"), "ROW");
    const auto offset = std::stoul(std::string(error->Fact("offset").value_or("0")));
    EXPECT_GE(offset, bad);
    EXPECT_LE(offset, bad + 5);
  }
}

// 64 MiB here for a quick test; bench/memory.py shows 256 MiB.
TEST(ReplyDecoder, ALargeValueCostsItsOwnSize) {
  constexpr std::size_t kSize = 64u << 20;
  Wire piece(256u << 10, 0xAB);
  Wire head;
  Put(head, {0x81, 1, 0, 0, 0, 0, 0, 1, 0, 0xA5, 0xFF, 0xFF, 1, 'b', 0, 0xD1});
  PutLe(head, ~std::uint64_t{1}, 8);
  PutLe(head, kSize, 4);
  ReplyDecoder decoder{ReplyLimits{}};
  std::span<const std::uint8_t> payload(head);
  while (!payload.empty()) {
    auto progress = decoder.Consume(payload);
    ASSERT_TRUE(progress.ok());
    payload = payload.subspan(progress.value().consumed);
  }
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  for (std::size_t at = 0; at < kSize; at += piece.size()) {
    ASSERT_TRUE(decoder.Consume(piece).ok());
  }
  auto done = decoder.Consume(Wire{0, 0, 0, 0, 0x79});
  ASSERT_TRUE(done.ok());
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  const auto* ready = std::get_if<BatchReady>(&done.value().event);
  ASSERT_NE(ready, nullptr);  // The batch has reached its size.
  EXPECT_EQ(ready->batch.columns[0]->values.size_bytes(), kSize);
  const auto grown_kib = static_cast<std::size_t>(after.ru_maxrss - before.ru_maxrss);
#if defined(__SANITIZE_ADDRESS__)
  // Shadow memory, and freed blocks that the sanitizer keeps back.
  constexpr std::size_t kAllowed = 2 * kSize;
#else
  constexpr std::size_t kAllowed = kSize + kSize / 4;
#endif
  EXPECT_LT(grown_kib * 1024, kAllowed);
}

TEST(Utf16Kernels, AllGiveWhatTheScalarOneGives) {
  Dice dice(1);
  const char32_t ranges[] = {0x80, 0x800, 0x10000, 0x110000};
  for (int round = 0; round < 3000; ++round) {
    Wire in;
    const std::size_t count = dice.Below(dice.Chance(1, 2) ? 100 : 33);
    // Mostly of one range, so that vectors of each are met, with strays.
    const char32_t usual = ranges[dice.Below(4)];
    for (std::size_t i = 0; i < count; ++i) {
      const char32_t below = dice.Chance(1, 20) ? ranges[dice.Below(4)] : usual;
      const auto code = dice.Below(below);
      if (code >= 0x10000) {
        PutLe(in, 0xD800 + ((code - 0x10000) >> 10), 2);
        if (!dice.Chance(1, 10)) PutLe(in, 0xDC00 + (code & 0x3FF), 2);
      } else {
        PutLe(in, code, 2);
      }
    }
    const std::size_t units = in.size() / 2;
    Wire plain(3 * units + 64);
    Wire best(3 * units + 64);
    for (const bool is_end : {true, false}) {
      const auto a =
          ConvertUtf16(ScalarUtf16Kernels(), in.data(), units, is_end, plain.data());
      const auto b =
          ConvertUtf16(BestUtf16Kernels(), in.data(), units, is_end, best.data());
      ASSERT_EQ(a.units, b.units) << round;
      ASSERT_EQ(a.written, b.written) << round;
      ASSERT_TRUE(std::equal(
          plain.begin(), plain.begin() + static_cast<long>(a.written), best.begin()))
          << round;
    }
    if (units > 32) continue;
    const std::size_t size = Utf8OfShortUtf16(in.data(), units, best.data());
    const auto whole =
        ConvertUtf16(ScalarUtf16Kernels(), in.data(), units, true, plain.data());
    ASSERT_EQ(size, whole.written) << round;
    ASSERT_TRUE(std::equal(plain.begin(), plain.begin() + static_cast<long>(size),
                           best.begin()))
        << round;
  }
}

TEST(Collation, ASortIdDecidesBeforeTheLcidAndUtf8BeforeBoth) {
  EXPECT_EQ(CodePageOf({0x09, 0x04, 0xD0, 0x00, 0x34}), 1252);
  EXPECT_EQ(CodePageOf({0x19, 0x04, 0xD0, 0x00, 0x34}), 1252);
  EXPECT_EQ(CodePageOf({0x19, 0x04, 0xD0, 0x00, 0x00}), 1251);
  EXPECT_EQ(CodePageOf({0x09, 0x04, 0xD0, 0x00, 0x1E}), 437);
  EXPECT_EQ(CodePageOf({0x09, 0x04, 0xD0, 0x04, 0x34}), kCodePageUtf8);
  EXPECT_EQ(CodePageOf({0x04, 0x08, 0xD2, 0x00, 0x00}),
            936);  // Bits above 16: sorting.
  EXPECT_EQ(CodePageOf({0, 0, 0, 0, 0}), 1252);
  EXPECT_EQ(CodePageOf({0x09, 0x04, 0xD0, 0x00, 0xFF}), std::nullopt);
}

// RETURNVALUE: the value's end is found for every framing, and every shorter prefix
// fails the reader instead.
TEST(TypeInfo, AValueIsSteppedOverToItsEnd) {
  const struct {
    const char* name;
    Wire wire;
  } kCases[] = {
      {"int", {0x38, 1, 2, 3, 4}},
      {"intn null", {0x26, 4, 0}},
      {"intn", {0x26, 4, 4, 1, 2, 3, 4}},
      {"decimal", {0x6A, 5, 9, 2, 5, 1, 0, 0, 0, 0}},
      {"date", {0x28, 3, 1, 2, 3}},
      {"nvarchar", {0xE7, 8, 0, 9, 4, 0xD0, 0, 0x34, 2, 0, 'a', 0}},
      {"nvarchar null", {0xE7, 8, 0, 9, 4, 0xD0, 0, 0x34, 0xFF, 0xFF}},
      {"varbinary(max)",
       {0xA5, 0xFF, 0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 7, 7, 0, 0, 0, 0}},
      {"varbinary(max) null",
       {0xA5, 0xFF, 0xFF, 255, 255, 255, 255, 255, 255, 255, 255}},
      {"image", {0x22, 0, 0, 0, 1, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5}},
      {"sql_variant", {0x62, 0x49, 0x1F, 0, 0, 3, 0, 0, 0, 0x30, 0, 7}},
      {"xml null", {0xF1, 0, 255, 255, 255, 255, 255, 255, 255, 255}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    for (std::size_t size = 0; size <= c.wire.size(); ++size) {
      Reader in(std::span(c.wire).first(size));
      const auto type = ReadTypeInfo(in);
      ASSERT_TRUE(type.ok());
      if (in.ok()) {
        ASSERT_TRUE(SkipValue(type.value(), in).ok());
      }
      EXPECT_EQ(in.ok(), size == c.wire.size()) << size;
    }
  }
}

TEST(TypeInfo, AValueBeyondATokenIsRefused) {
  const Wire wire = {0x62, 0x49, 0x1F, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF};
  Reader in(wire);
  const auto type = ReadTypeInfo(in);
  ASSERT_TRUE(type.ok());
  const Status skipped = SkipValue(type.value(), in);
  ASSERT_FALSE(skipped.ok());
  EXPECT_EQ(skipped.error().id(), ErrorId::kTdsLimitExceeded);
}

}  // namespace
}  // namespace mssql_cdc::tds
