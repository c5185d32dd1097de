// Golden wire cases: tests/wire/*.tdscase say what bytes a server sends and what
// columns and rows they are. Every case is decoded whole, cut in two at every byte,
// byte by byte and with bytes behind it (so that the row loop takes rows in place),
// always to the same end; every token that is not a row is cut at every shorter prefix.
//
// A case has sections, each line of them indented:
//   wire    hex digits; (XX XX)*N repeats; # starts a comment
//   schema  a column a line: name, two blanks, type, "not null" or nothing. Of several
//           result sets, each begins with a line "result"
//   rows    a row a line, cells apart by " | ", in the same "result" order
//   error   instead of rows that follow: the error's name, then facts as key=value

#include "tds/wire_case.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tds/reply.h"

namespace mssql_cdc::tds {
namespace {

// What a reply came to, as text.
struct Outcome {
  std::vector<std::string> schema;
  std::vector<std::string> rows;
  std::string error;

  bool operator==(const Outcome&) const = default;
};

std::string TextOf(const Outcome& outcome) {
  std::string text = "schema\n";
  for (const std::string& line : outcome.schema) text += "  " + line + '\n';
  text += "rows\n";
  for (const std::string& line : outcome.rows) text += "  " + line + '\n';
  return text + "error\n  " + outcome.error + '\n';
}

void Note(const ReplyEvent& event, Outcome& outcome) {
  if (const auto* begins = std::get_if<ResultBegins>(&event)) {
    outcome.schema.push_back("result");
    outcome.rows.push_back("result");
    for (const columns::Field& field : begins->schema->fields) {
      outcome.schema.push_back(SchemaLine(field));
    }
  } else if (const auto* ready = std::get_if<BatchReady>(&event)) {
    const columns::RecordBatch& batch = ready->batch;
    EXPECT_GT(batch.row_count, 0);
    for (std::int64_t row = 0; row < batch.row_count; ++row) {
      outcome.rows.push_back(RowLine(batch, row));
    }
  }
}

std::string ErrorLine(const Error& error) {
  std::string line(RuleOf(error.id()).name);
  for (const auto& [key, value] : error.facts()) {
    // Where it was found depends on the cuts only in that the first cut that shows it
    // tells; the place itself is tested in reply_test.cc.
    if (key != "offset") line += ' ' + key + '=' + value;
  }
  return line;
}

// A session in small: hands pieces to the decoder, each in memory of its own, so that a
// sanitizer sees every read past the end.
class Feeder {
 public:
  explicit Feeder(ReplyLimits limits = {}) : decoder_(limits) {}

  void Feed(std::span<const std::uint8_t> piece, bool more_follows = false) {
    if (!outcome_.error.empty()) return;
    std::vector<std::uint8_t> bytes = std::move(tail_);
    tail_.clear();
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
    std::span<const std::uint8_t> payload(exact);
    while (true) {
      auto progress = decoder_.Consume(payload, more_follows);
      if (!progress.ok()) {
        // How many rows came before it depends on the cuts.
        outcome_.error = ErrorLine(progress.error());
        outcome_.rows.clear();
        return;
      }
      const std::size_t consumed = progress.value().consumed;
      ASSERT_LE(consumed, payload.size());
      payload = payload.subspan(consumed);
      if (std::holds_alternative<NeedMore>(progress.value().event)) break;
      Note(progress.value().event, outcome_);
    }
    tail_.assign(payload.begin(), payload.end());
  }
  const Outcome& outcome() const { return outcome_; }
  bool is_complete() const { return tail_.empty() && decoder_.at_boundary(); }

 private:
  ReplyDecoder decoder_;
  std::vector<std::uint8_t> tail_;
  Outcome outcome_;
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

TEST_P(WireCases, IsTheSameCutInTwoAtEveryByte) {
  const std::vector<std::uint8_t> padded = Padded(case_.wire);
  // Of large cases every cut would take minutes: both ends and a sample between.
  const std::size_t size = case_.wire.size();
  const std::size_t step = size > 4000 ? size / 100 : 1;
  for (std::size_t cut = 0; cut <= size; ++cut) {
    const bool is_near_an_end = cut < 100 || cut + 100 > size;
    if (!is_near_an_end && cut % step != 0) continue;
    for (const bool more_follows : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << "cut at byte " << cut << (more_follows ? ", told" : ""));
      Feeder feeder;
      feeder.Feed(std::span(padded).first(cut), more_follows);
      feeder.Feed(std::span(padded).subspan(cut));
      ASSERT_EQ(TextOf(feeder.outcome()), TextOf(Expected(case_)));
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

TEST_P(WireCases, TokensOtherThanRowsAreWholeOrNotConsumed) {
  std::span<const std::uint8_t> rest(case_.wire);
  ReplyDecoder decoder{ReplyLimits{}};
  std::size_t begin = 0;
  while (!rest.empty()) {
    auto progress = decoder.Consume(rest);
    if (!progress.ok()) return;
    const std::size_t consumed = progress.value().consumed;
    const bool is_token = std::holds_alternative<Token>(progress.value().event) ||
                          std::holds_alternative<ResultBegins>(progress.value().event);
    // Rows that an INFO or the like interrupts are consumed along with it.
    const bool has_rows_before = rest[0] == 0xD1 || rest[0] == 0xD2;
    for (std::size_t size = 0; is_token && !has_rows_before && size < consumed;
         ++size) {
      SCOPED_TRACE(testing::Message()
                   << "token at " << begin << ", " << size << " bytes");
      ReplyDecoder fresh{ReplyLimits{}};
      std::size_t at = 0;
      while (at < begin) {
        auto before = fresh.Consume(std::span(case_.wire).subspan(at, begin - at));
        ASSERT_TRUE(before.ok());
        at += before.value().consumed;
      }
      const std::vector<std::uint8_t> prefix(rest.begin(),
                                             rest.begin() + static_cast<long>(size));
      auto cut = fresh.Consume(prefix);
      // The rows before a DONE are handed on first.
      if (cut.ok() && std::holds_alternative<BatchReady>(cut.value().event)) {
        cut = fresh.Consume(prefix);
      }
      ASSERT_TRUE(cut.ok()) << cut.error().Text();
      EXPECT_TRUE(std::holds_alternative<NeedMore>(cut.value().event));
      EXPECT_EQ(cut.value().consumed, 0u);
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
}

}  // namespace
}  // namespace mssql_cdc::tds
