#include "cdc/lsn.h"

#include <gtest/gtest.h>

#include <vector>

namespace mssql_cdc::cdc {
namespace {

TEST(Lsn, TextIsReadInEveryFormItIsWrittenIn) {
  const struct {
    const char* text;
    const char* canonical;  // nullptr: refused.
  } kRows[] = {
      {"0x0000002A000001000031", "0x0000002A000001000031"},
      {"0x0000002a000001000031", "0x0000002A000001000031"},
      {"0X0000002A000001000031", "0x0000002A000001000031"},
      {" 2A000001000031\n", "0x0000002A000001000031"},
      {"0", "0x00000000000000000000"},
      {"0xFFFFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFFFFF"},
      {"", nullptr},
      {"0x", nullptr},
      {"0x00000000000000000000 1", nullptr},
      {"0x000000000000000000000", nullptr},
      {"earliest", nullptr},
      {"0x0000002A:00000100:0031", nullptr},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.text);
    const Result<Lsn> lsn = Lsn::Parse(row.text);
    ASSERT_EQ(lsn.ok(), row.canonical != nullptr);
    if (!lsn.ok()) {
      EXPECT_EQ(lsn.error().id(), ErrorId::kOptionInvalid);
      continue;
    }
    EXPECT_EQ(lsn.value().Text(), row.canonical);
  }
}

TEST(Lsn, NextAndPreviousCarryAcrossBytesAndEndAtTheEnds) {
  const struct {
    const char* lsn;
    const char* next;
  } kRows[] = {
      {"0x00000000000000000000", "0x00000000000000000001"},
      {"0x0000002A0000010000FF", "0x0000002A000001000100"},
      {"0x0000FFFFFFFFFFFFFFFF", "0x00010000000000000000"},
  };
  for (const auto& row : kRows) {
    const Lsn lsn = Lsn::Parse(row.lsn).value();
    EXPECT_EQ(lsn.Next()->Text(), row.next);
    EXPECT_EQ(lsn.Next()->Previous(), lsn);
    EXPECT_LT(lsn, *lsn.Next());
    EXPECT_LT(lsn.Text(), lsn.Next()->Text());
  }
  EXPECT_EQ(Lsn::Parse("FFFFFFFFFFFFFFFFFFFF").value().Next(), std::nullopt);
  EXPECT_EQ(Lsn{}.Previous(), std::nullopt);
}

TEST(Lsn, OnlyTenBytesAreOne) {
  for (std::size_t size = 0; size < 40; ++size) {
    const std::vector<std::uint8_t> bytes(size, 0xAB);
    EXPECT_EQ(Lsn::FromBytes(bytes).ok(), size == 10) << size;
  }
}

}  // namespace
}  // namespace mssql_cdc::cdc
