#include "sim/kept_rows.h"

#include <gtest/gtest.h>

#include <string>

namespace mssql_cdc::sim {
namespace {

const KeptRows::Key kKey{1, 1, "rows"};

// The commits `after` + 1 to `through`, each with the rows "a", "b" and so on once.
std::shared_ptr<KeptPart> Part(char after, char through) {
  auto part = std::make_shared<KeptPart>();
  part->after = after == 'a' ? "" : std::string(1, static_cast<char>(after - 1));
  part->through = std::string(1, through);
  std::uint64_t count = 0;
  for (char lsn = after; lsn <= through; ++lsn) {
    part->rows.Append(std::string(2, lsn));
    count += 2;
    part->commits.push_back({std::string(1, lsn), part->rows.size_bytes(), count});
  }
  return part;
}

std::string Text(const KeptRows::Found& found) {
  std::string text;
  for (const KeptRows::Slice& slice : found.slices) {
    for (std::size_t at = slice.begin; at < slice.end;) {
      const std::string_view bytes = slice.part->rows.At(at, slice.end);
      text += bytes;
      at += bytes.size();
    }
  }
  EXPECT_EQ(text.size(), found.row_count);
  return text + ">" + found.through;
}

TEST(KeptRows, EveryIntervalGetsItsCommitsAsFarAsTheyAreKept) {
  KeptRows kept(1u << 20);
  ASSERT_TRUE(kept.Add(kKey, Part('c', 'd')));
  ASSERT_TRUE(kept.Add(kKey, Part('e', 'e')));
  ASSERT_TRUE(kept.Add(kKey, Part('f', 'h')));
  for (char after = 'a'; after <= 'j'; ++after) {
    for (char through = after; through <= 'j'; ++through) {
      std::string expected;
      char end = after;
      if (after >= 'b') {
        for (char lsn = 'c'; lsn <= 'h'; ++lsn) {
          if (lsn > after && lsn <= through) expected += std::string(2, lsn);
        }
        if (after < 'h') end = std::min(through, 'h');
      }
      EXPECT_EQ(Text(kept.Find(kKey, {after}, {through})), expected + ">" + end);
    }
  }
}

TEST(KeptRows, APartThatBeginsElsewhereTakesThePlaceOfAll) {
  for (const char after : {'a', 'h'}) {
    KeptRows kept(1u << 20);
    ASSERT_TRUE(kept.Add(kKey, Part('c', 'e')));
    ASSERT_TRUE(kept.Add(kKey, Part(after, 'i')));
    const std::string from = after == 'a' ? "" : "g";
    EXPECT_TRUE(Text(kept.Find(kKey, from, "z")).ends_with("hhii>i"));
    EXPECT_EQ(Text(kept.Find(kKey, "b", "e")), after == 'a' ? "ccddee>e" : ">b");
  }
}

TEST(KeptRows, WhatIsThereAlreadyIsNotKeptTwice) {
  KeptRows kept(1u << 20);
  ASSERT_TRUE(kept.Add(kKey, Part('c', 'h')));
  const std::size_t size = kept.size_bytes();
  EXPECT_TRUE(kept.Add(kKey, Part('d', 'f')));
  EXPECT_FALSE(kept.Add(kKey, Part('d', 'i')));
  EXPECT_EQ(kept.size_bytes(), size);
  EXPECT_EQ(Text(kept.Find(kKey, "g", "z")), "hh>h");
}

TEST(KeptRows, TheLimitGivesUpWhatNobodyAskedForLongest) {
  const KeptRows::Key other{1, 1, "other"};
  const KeptRows::Key third{1, 1, "third"};
  KeptRows probe(1u << 20);
  probe.Add(kKey, Part('c', 'h'));
  const std::size_t one = probe.size_bytes();
  KeptRows kept(2 * one);
  ASSERT_TRUE(kept.Add(kKey, Part('c', 'h')));
  ASSERT_TRUE(kept.Add(other, Part('c', 'h')));
  kept.Find(kKey, "b", "h");
  ASSERT_TRUE(kept.Add(third, Part('c', 'h')));
  EXPECT_EQ(kept.size_bytes(), 2 * one);
  EXPECT_EQ(kept.Find(other, "b", "h").row_count, 0u);
  EXPECT_EQ(kept.Find(kKey, "b", "h").row_count, 12u);
  // A key does not give up its own beginning for its end.
  KeptRows small(one);
  ASSERT_TRUE(small.Add(kKey, Part('c', 'h')));
  EXPECT_FALSE(small.Add(kKey, Part('i', 'k')));
  EXPECT_EQ(Text(small.Find(kKey, "b", "z")), "ccddeeffgghh>h");
  EXPECT_FALSE(KeptRows(0).Add(kKey, Part('c', 'd')));
}

TEST(KeptRows, ANewerCountOfRewritesForgetsTheDatabasesOlder) {
  KeptRows kept(1u << 20);
  ASSERT_TRUE(kept.Add(kKey, Part('c', 'h')));
  ASSERT_TRUE(kept.Add({2, 1, "rows"}, Part('c', 'h')));
  EXPECT_EQ(kept.Find({1, 2, "rows"}, "b", "h").row_count, 0u);
  ASSERT_TRUE(kept.Add({1, 2, "rows"}, Part('c', 'd')));
  EXPECT_EQ(kept.Find(kKey, "b", "h").row_count, 0u);
  EXPECT_EQ(kept.Find({2, 1, "rows"}, "b", "h").row_count, 12u);
}

TEST(ByteRope, BytesComeBackFromPiecesOfAnySize) {
  ByteRope rope;
  std::string all;
  for (int i = 0; i < 40; ++i) {
    const std::string bytes(static_cast<std::size_t>(i) * 4099, static_cast<char>(i));
    rope.Append(bytes);
    all += bytes;
  }
  rope.Trim();
  ASSERT_EQ(rope.size_bytes(), all.size());
  std::string read;
  for (std::size_t at = 0; at < all.size();) {
    read += rope.At(at, std::min(all.size(), at + 70'001));
    at = read.size();
  }
  EXPECT_EQ(read, all);
}

}  // namespace
}  // namespace mssql_cdc::sim
