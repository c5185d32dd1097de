#include "cdc/offset.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cdc {
namespace {

// The first text is line 3 of offsets/1 that mssql-cdc-pyspark 0.8.0 wrote.
TEST(Offset, TextsThatStayAsTheyAre) {
  for (
      const char* text : {
          R"({"lsn": "0x0000002A000001000061", "commit_ts": "2026-11-20T09:35:00.000"})",
          R"({"lsn": "0x0000002A000001000061", "commit_ts": ""})",
          R"({"lsn": "0x00000000000000000000", "commit_ts": "2026-11-20T09:35:00.117"})",
      }) {
    SCOPED_TRACE(text);
    const Result<Offset> offset = Offset::Parse(text);
    ASSERT_TRUE(offset.ok());
    EXPECT_EQ(offset.value().Json(), text);
  }
}

TEST(Offset, OtherTextsThatAreUnderstood) {
  const struct {
    const char* text;
    const char* canonical;  // nullptr: refused.
  } kRows[] = {
      {R"({"commit_ts":"2026-11-20T09:35:00","lsn":"0x2a000001000061"})",
       R"({"lsn": "0x0000002A000001000061", "commit_ts": "2026-11-20T09:35:00.000"})"},
      {R"({"lsn":"0x2A000001000061"})",
       R"({"lsn": "0x0000002A000001000061", "commit_ts": ""})"},
      {R"({"lsn":"0x2A000001000061","commit_ts":null,"more":1})",
       R"({"lsn": "0x0000002A000001000061", "commit_ts": ""})"},
      {R"({"lsn":42})", nullptr},
      {R"({"commit_ts":""})", nullptr},
      {R"({"lsn":"latest"})", nullptr},
      {R"({"lsn":"0x01","commit_ts":"yesterday"})", nullptr},
      {R"({"lsn":"0x01","commit_ts":5})", nullptr},
      {R"({"lsn": "0x01")", nullptr},
      {"[]", nullptr},
      {"", nullptr},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.text);
    const Result<Offset> offset = Offset::Parse(row.text);
    ASSERT_EQ(offset.ok(), row.canonical != nullptr);
    if (offset.ok()) {
      EXPECT_EQ(offset.value().Json(), row.canonical);
    } else {
      EXPECT_EQ(offset.error().id(), ErrorId::kCheckpointUnreadable);
    }
  }
}

}  // namespace
}  // namespace mssql_cdc::cdc
