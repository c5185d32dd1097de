#include "sqlserver/key_statements.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sqlserver/key_spans.h"

namespace mssql_cdc::sqlserver {
namespace {

const std::vector<KeyColumn> kTwo = {
    {"a", "", "", false}, {"b", "varchar(9)", "Latin1_General_CI_AS", false}};

KeyBound Bound(const char* a, const char* b) {
  const auto text = [](const char* value) {
    return value == nullptr ? std::optional<std::string>() : std::string(value);
  };
  return {text(a), text(b)};
}

std::vector<std::string> Pieces(const std::vector<KeyColumn>& keys, const KeySpan& span,
                                FirstKey first = FirstKey::kIncluded) {
  std::vector<Parameter> parameters;
  return PiecesOf(keys, span, first, parameters);
}

TEST(PiecesOf, OneIntegerKeyIsOneRange) {
  const std::vector<KeyColumn> id = {{"id", "", "", false}};
  EXPECT_EQ(Pieces(id, {}), (std::vector<std::string>{""}));
  EXPECT_EQ(Pieces(id, {std::nullopt, KeyBound{"8"}}),
            (std::vector<std::string>{"([id] < 8 OR [id] IS NULL)"}));
  EXPECT_EQ(Pieces(id, {KeyBound{"8"}, KeyBound{"16"}}),
            (std::vector<std::string>{"[id] >= 8 AND [id] < 16"}));
  EXPECT_EQ(Pieces(id, {KeyBound{"-5000000000"}, std::nullopt}),
            (std::vector<std::string>{"[id] >= CAST(-5000000000 AS bigint)"}));
  EXPECT_EQ(Pieces(id, {KeyBound{"8"}, KeyBound{"8"}}), std::vector<std::string>{});
  // One above bigint's largest has no literal of type bigint.
  EXPECT_EQ(Pieces(id, {KeyBound{"8"}, KeyBound{"9223372036854775808"}}),
            (std::vector<std::string>{"[id] >= 8 AND [id] < 9223372036854775808"}));
}

TEST(PiecesOf, BoundsAreBoundAsTheColumnsType) {
  std::vector<Parameter> parameters;
  const std::vector<KeyColumn> keys = {{"t", "datetime2(3)", "", false},
                                       {"v", "varbinary(4)", "", true},
                                       {"s", "varchar(9)", "Thai_CI_AS", false}};
  const auto pieces =
      PiecesOf(keys, {KeyBound{"2026-01-01T00:00:00.000000", "0x0102", "x"}, {}},
               FirstKey::kIncluded, parameters);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0],
            "[t] = CAST(@lo0 AS datetime2(3)) AND [v] = CONVERT(varbinary(4), @lo1, 1) "
            "AND [s] >= CAST(@lo2 COLLATE Thai_CI_AS AS varchar(9))");
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_TRUE(std::ranges::all_of(parameters, [](const Parameter& parameter) {
    return parameter.kind == Parameter::Kind::kNVarChar && parameter.bytes;
  }));
}

TEST(PiecesOf, ACompositeKeyHasNullBelowEverything) {
  EXPECT_EQ(Pieces(kTwo, {Bound("1", nullptr), Bound("1", "x")}),
            (std::vector<std::string>{"[a] = 1 AND ([b] < CAST(@hi1 COLLATE "
                                      "Latin1_General_CI_AS AS varchar(9)) OR [b] IS "
                                      "NULL)"}));
  EXPECT_EQ(Pieces(kTwo, {Bound("1", "x"), Bound("1", nullptr)}),
            std::vector<std::string>{});
  EXPECT_EQ(Pieces(kTwo, {Bound("1", "x"), std::nullopt}, FirstKey::kExcluded),
            (std::vector<std::string>{
                "[a] = 1 AND [b] > CAST(@lo1 COLLATE Latin1_General_CI_AS AS "
                "varchar(9))",
                "[a] > 1"}));
}

TEST(SeekKey, GivesEachPieceOnlyWhatCanMatter) {
  const KeyTable table{"dbo", "t", kTwo, {250, true}};
  const Request request = SeekKey(table, {Bound("1", "x"), std::nullopt}, 10);
  EXPECT_EQ(request.sql,
            "SET LOCK_TIMEOUT 250; SET TRANSACTION ISOLATION LEVEL SNAPSHOT; "
            "SELECT [a], [b] FROM (SELECT [a], [b] FROM (SELECT TOP (11) [a], [b] FROM "
            "[dbo].[t] WHERE [a] = 1 AND [b] >= CAST(@lo1 COLLATE Latin1_General_CI_AS "
            "AS varchar(9)) ORDER BY [a], [b]) AS p0 UNION ALL SELECT [a], [b] FROM "
            "(SELECT TOP (11) [a], [b] FROM [dbo].[t] WHERE [a] > 1 ORDER BY [a], [b]) "
            "AS p1) AS u ORDER BY [a], [b] OFFSET 10 ROWS FETCH NEXT 1 ROWS ONLY; "
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCK_TIMEOUT -1");
  EXPECT_EQ(SeekKey({"dbo", "t", {{"id", "", "", false}}, {}}, {}, 3).sql,
            "SELECT [id] FROM [dbo].[t] ORDER BY [id] OFFSET 3 ROWS FETCH NEXT 1 ROWS "
            "ONLY");
}

TEST(ReadChunk, IsOneStatementAPiece) {
  const KeyTable table{"dbo", "t", {{"a", "", "", false}, {"b", "", "", false}}, {}};
  EXPECT_EQ(ReadChunk({table, {Bound("1", "2"), Bound("3", "4")}, {{"x", ""}}}).sql,
            "SELECT [x] FROM [dbo].[t] WHERE [a] = 1 AND [b] >= 2 AND (([a] < 3 OR [a] "
            "IS NULL) OR ([a] = 3 AND ([b] < 4 OR [b] IS NULL)))"
            "; SELECT [x] FROM [dbo].[t] WHERE [a] > 1 AND [a] < 3"
            "; SELECT [x] FROM [dbo].[t] WHERE [a] = 3 AND [a] > 1 AND ([b] < 4 OR [b] "
            "IS NULL)");
}

TEST(CountSlices, DividesDownwards) {
  EXPECT_EQ(
      CountSlices({"dbo", "t", "id", 10, -5, 99, {}}).sql,
      "SELECT slice, COUNT_BIG(*) AS row_count, MIN(k) AS min_key, MAX(k) AS "
      "max_key FROM (SELECT CAST([id] AS bigint) AS k, CAST([id] AS bigint) / "
      "CAST(10 AS bigint) - CASE WHEN CAST([id] AS bigint) < 0 AND CAST([id] AS "
      "bigint) % CAST(10 AS bigint) <> 0 THEN 1 ELSE 0 END AS slice FROM "
      "[dbo].[t] WHERE [id] >= CAST(-5 AS bigint) AND [id] <= CAST(99 AS bigint)) "
      "AS s GROUP BY slice");
}

// Goal: the pieces of adjacent spans hold every key once, whatever is NULL and whatever
// the server takes for equal. Method: all keys and spans over a small space of two
// columns, evaluated here by SQL's rules, with a collation for which a and A are one.
class Space {
 public:
  using Value = std::optional<std::string>;

  // NULL first; a and A are one value.
  static int Compare(const Value& x, const Value& y) {
    const auto rank = [](const Value& value) {
      if (!value) return 0;
      return *value == "a" || *value == "A" ? 1 : *value == "b" ? 2 : 3;
    };
    return rank(x) - rank(y);
  }
  static int Compare(const KeyBound& x, const KeyBound& y) {
    const int first = Compare(x[0], y[0]);
    return first != 0 ? first : Compare(x[1], y[1]);
  }

  // Conditions of the forms that PiecesOf makes, with @lo0 and so on by value.
  Space(const KeyBound& row, const std::vector<Parameter>& parameters)
      : row_(row), parameters_(parameters) {}

  bool Holds(std::string_view text) {
    text_ = text;
    return text.empty() || Or();
  }

 private:
  bool Or() {
    bool all = And();
    while (Accept(" OR ")) all = And() || all;
    return all;
  }
  bool And() {
    bool all = Atom();
    while (Accept(" AND ")) all = Atom() && all;
    return all;
  }
  bool Atom() {
    if (Accept("(")) {
      const bool inner = Or();
      EXPECT_TRUE(Accept(")")) << text_;
      return inner;
    }
    const std::size_t column = Accept("[a]") ? 0 : 1;
    if (column == 1) {
      EXPECT_TRUE(Accept("[b]")) << text_;
    }
    const Value& value = row_[column];
    if (Accept(" IS NOT NULL")) return value.has_value();
    if (Accept(" IS NULL")) return !value.has_value();
    for (const char* op : {" >= ", " > ", " < ", " = "}) {
      if (!Accept(op)) continue;
      const int order = Compare(value, Bound());
      if (!value) return false;
      const std::string_view name(op);
      if (name == " >= ") return order >= 0;
      if (name == " > ") return order > 0;
      return name == " < " ? order < 0 : order == 0;
    }
    ADD_FAILURE() << text_;
    return false;
  }
  Value Bound() {
    EXPECT_TRUE(Accept("CAST(")) << text_;
    const std::string name(text_.substr(0, text_.find(' ')));
    text_.remove_prefix(text_.find(')') + 1);
    for (const Parameter& parameter : parameters_) {
      if (parameter.name == name) return parameter.bytes;
    }
    ADD_FAILURE() << name;
    return {};
  }
  bool Accept(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  const KeyBound& row_;
  const std::vector<Parameter>& parameters_;
  std::string_view text_;
};

TEST(PiecesOf, EveryKeyIsInExactlyOnePieceOfOneSpan) {
  const std::vector<KeyColumn> keys = {{"a", "text", "", false},
                                       {"b", "text", "", false}};
  const std::vector<Space::Value> values = {std::nullopt, "a", "A", "b", "c"};
  std::vector<KeyBound> all;
  for (const auto& a : values) {
    for (const auto& b : values) all.push_back({a, b});
  }
  int span_count = 0;
  for (const KeyBound& lo : all) {
    for (const KeyBound& hi : all) {
      if (Space::Compare(lo, hi) > 0) continue;
      const KeySpan spans[] = {{std::nullopt, lo}, {lo, hi}, {hi, std::nullopt}};
      for (const KeyBound& row : all) {
        int held = 0;
        for (const KeySpan& span : spans) {
          std::vector<Parameter> parameters;
          const auto pieces = PiecesOf(keys, span, FirstKey::kIncluded, parameters);
          int here = 0;
          for (const std::string& piece : pieces) {
            here += Space(row, parameters).Holds(piece) ? 1 : 0;
          }
          held += here;
          const bool is_in = (!span.lo || Space::Compare(*span.lo, row) <= 0) &&
                             (!span.hi || Space::Compare(row, *span.hi) < 0);
          EXPECT_EQ(here, is_in ? 1 : 0);
        }
        ASSERT_EQ(held, 1);
      }
      ++span_count;
    }
  }
  EXPECT_GT(span_count, 300);
}

}  // namespace
}  // namespace mssql_cdc::sqlserver
