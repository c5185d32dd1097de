// Golden wire cases: tests/wire/*.tdscase say what bytes a server sends and what
// columns and rows they are. Every case is decoded whole, cut at every byte, byte by
// byte and with bytes behind it (so that the row loop takes rows in place), always to
// the same end; every token that is not a row is cut at every shorter prefix.
//
// A case has sections, each line of them indented:
//   wire    hex digits; (XX XX)*N repeats; # starts a comment
//   schema  a column a line: name, two blanks, type, "not null" or nothing. Of several
//           result sets, each begins with a line "result"
//   rows    a row a line, cells apart by " | ", in the same "result" order
//   error   instead of rows that follow: the error's name, then facts as key=value

#include "tds/wire_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <variant>

#include "tds/reply.h"

namespace mssql_cdc::tds {
namespace {

// What a reply came to, as text.
struct Outcome {
  std::vector<std::string> schema;
  std::vector<std::string> rows;
  std::string error;
};

std::string TextOf(const Outcome& outcome) {
  std::string text = "schema\n";
  for (const std::string& line : outcome.schema) text += "  " + line + '\n';
  text += "rows\n";
  for (const std::string& line : outcome.rows) text += "  " + line + '\n';
  return text + "error\n  " + outcome.error + '\n';
}

using Part = std::variant<columns::SchemaPtr, columns::RecordBatch>;

std::string ErrorLine(const Error& error) {
  std::string line(RuleOf(error.id()).name);
  for (const auto& [key, value] : error.facts()) {
    // Where it was found depends on the cuts only in that the first cut that shows it
    // tells; the place itself is tested in reply_test.cc.
    if (key != "offset") line += ' ' + key + '=' + value;
  }
  return line;
}

bool IsNull(const columns::Column& column, std::size_t row) {
  return column.null_count != 0 &&
         (column.validity.data()[row / 8] >> (row % 8) & 1) == 0;
}

// The same values; what stands in the place of a NULL does not matter.
bool SameColumn(const columns::Column& a, const columns::Column& b) {
  const auto rows = static_cast<std::size_t>(a.row_count);
  if (a.type != b.type || a.row_count != b.row_count || a.null_count != b.null_count) {
    return false;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    if (IsNull(a, row) != IsNull(b, row)) return false;
  }
  if (a.type.kind == columns::Kind::kUtf8 || a.type.kind == columns::Kind::kBinary) {
    return std::ranges::equal(
               std::span(a.offsets.data(), (rows + 1) * sizeof(std::int32_t)),
               std::span(b.offsets.data(), (rows + 1) * sizeof(std::int32_t))) &&
           a.values.size_bytes() == b.values.size_bytes() &&
           std::memcmp(a.values.data(), b.values.data(), a.values.size_bytes()) == 0;
  }
  const std::size_t width = columns::ValueWidthBytes(a.type.kind);
  for (std::size_t row = 0; row < rows; ++row) {
    if (IsNull(a, row)) continue;
    if (width == 0) {
      const auto differing = a.values.data()[row / 8] ^ b.values.data()[row / 8];
      if ((differing >> (row % 8) & 1) != 0) return false;
    } else if (std::memcmp(a.values.data() + row * width, b.values.data() + row * width,
                           width) != 0) {
      return false;
    }
  }
  return true;
}

bool SamePart(const Part& a, const Part& b) {
  if (a.index() != b.index()) return false;
  if (const auto* schema = std::get_if<columns::SchemaPtr>(&a)) {
    return **schema == *std::get<columns::SchemaPtr>(b);
  }
  const auto& first = std::get<columns::RecordBatch>(a);
  const auto& second = std::get<columns::RecordBatch>(b);
  return first.row_count == second.row_count &&
         std::ranges::equal(first.columns, second.columns,
                            [](const auto& one, const auto& other) {
                              return SameColumn(*one, *other);
                            });
}

// A session in small: hands pieces to the decoder, each in memory of its own, so that a
// sanitizer sees every read past the end.
class Feeder {
 public:
  explicit Feeder(ReplyLimits limits = {}) : decoder_(limits) {}

  void Feed(std::span<const std::uint8_t> piece, bool more_follows = false) {
    if (!error_.empty()) return;
    std::vector<std::uint8_t> bytes = std::move(tail_);
    tail_.clear();
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
    std::span<const std::uint8_t> payload(exact);
    while (true) {
      auto progress = decoder_.Consume(payload, more_follows);
      if (!progress.ok()) {
        error_ = ErrorLine(progress.error());
        return;
      }
      const std::size_t consumed = progress.value().consumed;
      ASSERT_LE(consumed, payload.size());
      payload = payload.subspan(consumed);
      ReplyEvent& event = progress.value().event;
      if (std::holds_alternative<NeedMore>(event)) break;
      if (auto* begins = std::get_if<ResultBegins>(&event)) {
        parts_.emplace_back(std::move(begins->schema));
      } else if (auto* ready = std::get_if<BatchReady>(&event)) {
        EXPECT_GT(ready->batch.row_count, 0);
        parts_.emplace_back(std::move(ready->batch));
      }
    }
    tail_.assign(payload.begin(), payload.end());
  }

  Outcome outcome() const {
    Outcome outcome;
    outcome.error = error_;
    for (const Part& part : parts_) {
      if (const auto* schema = std::get_if<columns::SchemaPtr>(&part)) {
        outcome.schema.push_back("result");
        outcome.rows.push_back("result");
        for (const columns::Field& field : (*schema)->fields) {
          outcome.schema.push_back(SchemaLine(field));
        }
      } else if (const auto* batch = std::get_if<columns::RecordBatch>(&part)) {
        for (std::int64_t row = 0; row < batch->row_count; ++row) {
          outcome.rows.push_back(RowLine(*batch, row));
        }
      }
    }
    // How many rows came before an error depends on the cuts.
    if (!error_.empty()) outcome.rows.clear();
    return outcome;
  }
  // As comparing the outcomes, without making text of every cell.
  bool IsLike(const Feeder& other) const {
    if (!error_.empty() || !other.error_.empty()) {
      return TextOf(outcome()) == TextOf(other.outcome());
    }
    return std::ranges::equal(parts_, other.parts_, SamePart);
  }
  bool is_complete() const { return tail_.empty() && decoder_.at_boundary(); }

 private:
  ReplyDecoder decoder_;
  std::vector<std::uint8_t> tail_;
  std::vector<Part> parts_;
  std::string error_;
};

Outcome Expected(const WireCase& wire_case) {
  return {wire_case.schema, wire_case.rows, wire_case.error};
}

// An ORDER token: nothing that is noted, but bytes behind the rows.
std::vector<std::uint8_t> Padded(std::vector<std::uint8_t> wire) {
  constexpr std::uint16_t kSize = 2000;
  wire.insert(wire.end(), {0xA9, kSize & 0xFF, kSize >> 8});
  wire.resize(wire.size() + kSize);
  return wire;
}

class WireCases : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { case_ = ReadWireCase(GetParam()); }

  WireCase case_;
};

TEST_P(WireCases, IsDecodedWhole) {
  Feeder feeder;
  feeder.Feed(case_.wire);
  EXPECT_EQ(TextOf(feeder.outcome()), TextOf(Expected(case_)));
  EXPECT_TRUE(feeder.is_complete() || !case_.error.empty());
}

TEST_P(WireCases, IsDecodedInPlaceWithBytesBehind) {
  Feeder feeder;
  feeder.Feed(Padded(case_.wire));
  EXPECT_EQ(TextOf(feeder.outcome()), TextOf(Expected(case_)));
}

TEST_P(WireCases, IsTheSameByteByByteAndRowByRow) {
  for (const std::int64_t row_count_max : {std::int64_t{1}, kBatchRowCountDefault}) {
    Feeder feeder(ReplyLimits{row_count_max, 1});
    for (const std::uint8_t byte : case_.wire) feeder.Feed({&byte, 1});
    EXPECT_EQ(TextOf(feeder.outcome()), TextOf(Expected(case_)));
    EXPECT_TRUE(feeder.is_complete() || !case_.error.empty());
  }
}

// How the bytes before a cut are fed: whether more is told to follow, and in what
// pieces long values are converted.
struct Way {
  bool more_follows;
  std::size_t piece_size_bytes;
};
constexpr std::size_t kPieceSizeDefault = ReplyLimits{}.piece_size_bytes;
constexpr Way kWays[] = {
    {false, kPieceSizeDefault}, {true, kPieceSizeDefault}, {false, 64}};

ReplyLimits LimitsOf(const Way& way) {
  ReplyLimits limits;
  limits.piece_size_bytes = way.piece_size_bytes;
  return limits;
}

// Beyond this size a case is not cut in two at every byte, which would take hours, but
// in many pieces (below), and in two near its ends.
constexpr std::size_t kCutInTwoSizeMax = 20'000;

TEST_P(WireCases, IsTheSameCutInTwoAtEveryByte) {
  const std::vector<std::uint8_t> padded = Padded(case_.wire);
  Feeder whole;
  whole.Feed(padded);
  const std::size_t size = case_.wire.size();
  const std::size_t margin = size > kCutInTwoSizeMax ? 100 : size;
  for (const Way& way : kWays) {
    for (std::size_t cut = 0; cut <= size; ++cut) {
      if (cut == margin + 1) cut = std::max(cut, size - margin);
      Feeder feeder(LimitsOf(way));
      feeder.Feed(std::span(padded).first(cut), way.more_follows);
      feeder.Feed(std::span(padded).subspan(cut));
      if (feeder.IsLike(whole)) continue;
      FAIL() << "cut at byte " << cut << (way.more_follows ? ", told" : "")
             << ", converted in " << way.piece_size_bytes << "\n"
             << TextOf(feeder.outcome()) << TextOf(whole.outcome());
    }
  }
}

// Every byte is the place of a cut, as many at once as are kStride apart; a run for
// each byte that the first cut can be at.
TEST_P(WireCases, IsTheSameInPiecesThatEndAtEveryByte) {
  constexpr std::size_t kStride = 257;
  if (case_.wire.size() <= kCutInTwoSizeMax) return;  // Cut in two at every byte.
  Feeder whole;
  whole.Feed(case_.wire);
  for (const Way& way : kWays) {
    for (std::size_t first = 1; first <= kStride; ++first) {
      Feeder feeder(LimitsOf(way));
      std::span<const std::uint8_t> rest(case_.wire);
      for (std::size_t size = first; !rest.empty(); size = kStride) {
        const auto piece = rest.first(std::min(size, rest.size()));
        rest = rest.subspan(piece.size());
        feeder.Feed(piece, way.more_follows && !rest.empty());
      }
      ASSERT_TRUE(feeder.IsLike(whole)) << "first cut at byte " << first;
    }
  }
}

TEST_P(WireCases, IsTheSameWhereRowsWaitToBeWhole) {
  // Every piece is met by a row that waits and is decoded again.
  constexpr std::size_t kPieceSize = 7;
  for (const std::int64_t row_count_max : {std::int64_t{1}, kBatchRowCountDefault}) {
    Feeder feeder(ReplyLimits{row_count_max, 1});
    std::span<const std::uint8_t> rest(case_.wire);
    while (!rest.empty()) {
      const auto piece = rest.first(std::min(kPieceSize, rest.size()));
      rest = rest.subspan(piece.size());
      feeder.Feed(piece, !rest.empty());
    }
    EXPECT_EQ(TextOf(feeder.outcome()), TextOf(Expected(case_)));
    EXPECT_TRUE(feeder.is_complete() || !case_.error.empty());
  }
}

// The bytes [begin, end) are a token, perhaps with rows before it: cut anywhere inside
// it, the rows are taken and the token is left.
void CheckEveryPrefix(std::span<const std::uint8_t> wire, std::size_t begin,
                      std::size_t end) {
  std::optional<std::size_t> rows_size;
  for (std::size_t cut = end - 1; cut > begin + rows_size.value_or(0); --cut) {
    SCOPED_TRACE(testing::Message() << "token at " << begin << ", cut at " << cut);
    ReplyDecoder decoder{ReplyLimits{}};
    for (std::size_t at = 0; at < begin;) {
      auto before = decoder.Consume(wire.subspan(at, begin - at));
      ASSERT_TRUE(before.ok());
      at += before.value().consumed;
    }
    const std::vector<std::uint8_t> prefix(wire.begin() + static_cast<long>(begin),
                                           wire.begin() + static_cast<long>(cut));
    auto progress = decoder.Consume(prefix);
    // The rows before a DONE are handed on first.
    if (progress.ok() && std::holds_alternative<BatchReady>(progress.value().event)) {
      progress = decoder.Consume(prefix);
    }
    ASSERT_TRUE(progress.ok()) << progress.error().Text();
    ASSERT_TRUE(std::holds_alternative<NeedMore>(progress.value().event));
    if (!rows_size) rows_size = progress.value().consumed;
    ASSERT_EQ(progress.value().consumed, *rows_size);
  }
  ASSERT_LT(begin + rows_size.value_or(0), end);
}

TEST_P(WireCases, TokensOtherThanRowsAreWholeOrNotConsumed) {
  std::span<const std::uint8_t> rest(case_.wire);
  ReplyDecoder decoder{ReplyLimits{}};
  std::size_t begin = 0;
  while (!rest.empty()) {
    auto progress = decoder.Consume(rest);
    if (!progress.ok()) return;
    const std::size_t consumed = progress.value().consumed;
    if (std::holds_alternative<Token>(progress.value().event) ||
        std::holds_alternative<ResultBegins>(progress.value().event)) {
      CheckEveryPrefix(case_.wire, begin, begin + consumed);
    }
    begin += consumed;
    rest = rest.subspan(consumed);
    if (std::holds_alternative<NeedMore>(progress.value().event)) return;
  }
}

std::string NameOf(const testing::TestParamInfo<std::string>& info) {
  return std::filesystem::path(info.param).stem().string();
}

INSTANTIATE_TEST_SUITE_P(All, WireCases, testing::ValuesIn(WireCasePaths()), NameOf);

// The canary: a runner that compared nothing would pass it too.
TEST(WireCaseRunner, SeesAWrongCell) {
  WireCase wire_case =
      ReadWireCase(MSSQL_CDC_SOURCE_DIR "/tests/wire/int_not_null.tdscase");
  Feeder feeder;
  feeder.Feed(wire_case.wire);
  Outcome expected = Expected(wire_case);
  ASSERT_FALSE(expected.rows.empty());
  expected.rows.back() += '0';
  EXPECT_NE(TextOf(feeder.outcome()), TextOf(expected));

  Feeder same;
  same.Feed(wire_case.wire);
  EXPECT_TRUE(same.IsLike(feeder));
  // The last byte before DONE, which is the end of an integer.
  std::vector<std::uint8_t> other = wire_case.wire;
  other[other.size() - 14] ^= 1;
  Feeder differing;
  differing.Feed(other);
  EXPECT_FALSE(differing.IsLike(feeder));
}

}  // namespace
}  // namespace mssql_cdc::tds
