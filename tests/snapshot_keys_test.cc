// Chunks of every type of key, in the server's order, each row once.

#include "tests/snapshot_fixture.h"

namespace mssql_cdc {
namespace {

struct KeyCase {
  const char* name;
  const char* columns;              // Of the table, without n.
  const char* key;                  // Primary key, or snapshotKeys in JSON.
  std::vector<const char*> values;  // Of those columns.
  bool is_unique = true;
};

// In no order. Where a type has values that compare in a way of its own, they are here.
const KeyCase kCases[] = {
    {"bigint",
     "k bigint NOT NULL",
     "k",
     {"9223372036854775807", "-9223372036854775808", "0", "-1", "1", "5000000000",
      "-5000000000"}},
    {"tinyint", "k tinyint NOT NULL", "k", {"0", "255", "7", "8", "100"}},
    {"composite",
     "a int NOT NULL, b nvarchar(10) NOT NULL",
     "a, b",
     {"1, N'x'", "1, N'y'", "1, N'z'", "2, N'a'", "3, N''", "3, N'ä'", "3, N'Z'",
      "-4, N'q'"}},
    {"composite of three",
     "a int NOT NULL, b date NOT NULL, c decimal(9, 2) NOT NULL",
     "a, b, c",
     {"1, '2026-01-01', 1.50", "1, '2026-01-01', -1.5", "1, '2026-01-02', 0",
      "2, '0001-01-01', 9", "2, '9999-12-31', 9", "0, '2026-01-01', 1"}},
    {"composite in another order than the table's columns",
     "b int NOT NULL, a int NOT NULL",
     "a, b",
     {"1, 9", "9, 1", "5, 5", "1, 1", "9, 9", "2, 1"}},
    {"composite of texts that are one value to the server",
     "a nvarchar(10) NOT NULL, b int NOT NULL",
     "a, b",
     {"N'foo', 2", "N'FOO', 1", "N'Foo', 3", "N'fop', 1", "N'fo', 4", "N'FOO', 4"}},
    {"nvarchar",
     "k nvarchar(40) NOT NULL",
     "k",
     {"N'a'", "N'B'", "N'c''d'", "N'ä'", "N'Ω'", "N'日本'", "N''", "N'z z'"}},
    {"varchar",
     "k varchar(40) NOT NULL",
     "k",
     {"'a'", "'B'", "'c'", "'é'", "'zz'", "'0'", "'-'"}},
    {"varchar of a SQL collation, where - has a weight",
     "k varchar(20) COLLATE SQL_Latin1_General_CP1_CI_AS NOT NULL",
     "k",
     {"'a-b'", "'ab'", "'a'", "'-'", "'-a'", "'b'", "'a-c'", "'ac'"}},
    {"varchar of another code page",
     "k varchar(20) COLLATE Cyrillic_General_CI_AS NOT NULL",
     "k",
     {"N'привет'", "N'Мир'", "N'яблоко'", "N'a'", "N'Z'"}},
    {"binary collation",
     "k nvarchar(20) COLLATE Latin1_General_BIN2 NOT NULL",
     "k",
     {"N'a'", "N'A'", "N'b'", "N'B'", "N'ä'"}},
    {"date",
     "k date NOT NULL",
     "k",
     {"'0001-01-01'", "'9999-12-31'", "'2026-02-28'", "'2024-02-29'", "'1969-12-31'"}},
    // 1/300 s: .000, .003, .007, .010.
    {"datetime",
     "k datetime NOT NULL",
     "k",
     {"'2026-01-01T00:00:00.000'", "'2026-01-01T00:00:00.003'",
      "'2026-01-01T00:00:00.007'", "'2026-01-01T00:00:00.010'",
      "'1753-01-01T00:00:00.000'", "'9999-12-31T23:59:59.997'",
      "'1969-12-31T23:59:59.993'"}},
    {"smalldatetime",
     "k smalldatetime NOT NULL",
     "k",
     {"'2026-01-01T00:00:00'", "'2026-01-01T00:01:00'", "'1900-01-01T00:00:00'",
      "'2079-06-06T23:59:00'"}},
    {"datetime2(3)",
     "k datetime2(3) NOT NULL",
     "k",
     {"'2026-01-01T00:00:00.001'", "'2026-01-01T00:00:00.002'",
      "'0001-01-01T00:00:00.000'", "'9999-12-31T23:59:59.999'"}},
    // Five keys of one microsecond.
    {"datetime2(7)",
     "k datetime2(7) NOT NULL",
     "k",
     {"'2026-01-01T00:00:00.0000001'", "'2026-01-01T00:00:00.0000002'",
      "'2026-01-01T00:00:00.0000003'", "'2026-01-01T00:00:00.0000004'",
      "'2026-01-01T00:00:00.0000009'", "'2026-01-01T00:00:00.0000010'",
      "'2026-01-01T00:00:00.0000019'"}},
    {"datetimeoffset(3)",
     "k datetimeoffset(3) NOT NULL",
     "k",
     {"'2026-01-01T00:00:00.000+00:00'", "'2026-01-01T00:30:00.000+01:00'",
      "'2026-01-01T00:00:00.000-05:00'", "'2026-01-01T12:00:00.000+14:00'"}},
    // Ordered by the last six bytes first.
    {"uniqueidentifier",
     "k uniqueidentifier NOT NULL",
     "k",
     {"'00000000-0000-0000-0000-000000000001'",
      "'01000000-0000-0000-0000-000000000000'",
      "'00000000-0000-0000-0100-000000000000'",
      "'FF000000-0000-0000-0000-000000000001'",
      "'00000000-0000-0100-0000-000000000000'",
      "'00000000-0000-0000-0000-0A0000000000'"}},
    {"decimal",
     "k decimal(38, 10) NOT NULL",
     "k",
     {"0.0000000001", "-0.0000000001", "1234567890123456789012345678.0123456789", "0",
      "-5"}},
    {"money",
     "k money NOT NULL",
     "k",
     {"0.0001", "-922337203685477.5808", "922337203685477.5807", "10"}},
    {"float",
     "k float NOT NULL",
     "k",
     {"1.5e-300", "-1e300", "0.1", "0.30000000000000004", "2"}},
    {"real", "k real NOT NULL", "k", {"0.1", "-3.5", "1e-20", "3.4e38"}},
    {"varbinary",
     "k varbinary(20) NOT NULL",
     "k",
     {"0x", "0x00", "0x0001", "0x01", "0xFF", "0xABCDEF"}},
    {"NULLs first, values repeated",
     "k int NULL",
     R"(["k"])",
     {"NULL", "NULL", "NULL", "1", "1", "1", "1", "2", "3", "3"},
     false},
    {"texts that are one value to the server",
     "k nvarchar(10) NULL",
     R"(["k"])",
     {"N'a'", "N'A'", "N'a'", "N'b'", "N'B'", "NULL", "N'c'", "N'A'", "N'a '"},
     false},
    {"two columns with NULLs",
     "a int NULL, b varchar(5) NULL",
     R"(["a", "b"])",
     {"NULL, NULL", "NULL, 'x'", "1, NULL", "1, NULL", "1, 'X'", "1, 'x'", "2, 'y'",
      "2, NULL", "NULL, 'X'"},
     false},
    {"a date that many rows have",
     "k datetime NULL",
     R"(["k"])",
     {"'2026-01-01T00:00:00.003'", "'2026-01-01T00:00:00.003'",
      "'2026-01-01T00:00:00.003'", "'2026-01-01T00:00:00.007'", "NULL",
      "'2026-01-01T00:00:00.007'", "'2026-01-01T00:00:00.010'"},
     false},
};

class SnapshotKeys : public SnapshotTest, public testing::WithParamInterface<KeyCase> {
 protected:
  void MakeTable(const KeyCase& key) {
    Fresh();
    Sql("CREATE TABLE dbo.k (" + std::string(key.columns) + ", n int NOT NULL" +
        (key.is_unique ? ", PRIMARY KEY (" + std::string(key.key) + ")" : "") + ")");
    for (std::size_t i = 0; i < key.values.size(); ++i) {
      Sql("INSERT dbo.k VALUES (" + std::string(key.values[i]) + ", " +
          std::to_string(i) + ")");
    }
    Enable("k", "dbo_k");
    config_.capture_instance = "dbo_k";
    config_.bootstrap = true;
    config_.num_partitions = 2;
    if (!key.is_unique) {
      for (const auto& name : nlohmann::json::parse(key.key)) {
        config_.snapshot_keys.push_back(name.get<std::string>());
      }
    }
  }
  // How often each row (by n) is among the snapshot's.
  std::map<std::int64_t, int> Read() {
    std::map<std::int64_t, int> read;
    Each("bronze", [&](const cdc::RowView& row) {
      if (row.Integer("_operation").value() == 0) ++read[*row.Integer("n").value()];
    });
    return read;
  }
  std::map<std::int64_t, int> EachOnce(const KeyCase& key) const {
    std::map<std::int64_t, int> once;
    for (std::size_t i = 0; i < key.values.size(); ++i) {
      once[static_cast<std::int64_t>(i)] = 1;
    }
    return once;
  }
};

TEST_P(SnapshotKeys, EveryRowIsInOneChunk) {
  const KeyCase& key = GetParam();
  for (const std::int64_t chunk_rows : {1, 2, 3}) {
    SCOPED_TRACE("chunks of " + std::to_string(chunk_rows));
    MakeTable(key);
    config_.snapshot = pipeline::SnapshotMode::kChunked;
    options_ = {};
    options_.chunk_rows = chunk_rows;
    options_.target_wave_seconds = 0;
    RunWell();
    BackfillToTheEnd();
    EXPECT_EQ(Read(), EachOnce(key));
    if (chunk_rows == 1) {
      EXPECT_GT(CountOf("snapshot_chunk"), 1);
    }
  }
}

TEST_P(SnapshotKeys, EveryRowIsInOneRangeOfAFullSnapshot) {
  const KeyCase& key = GetParam();
  for (const std::int64_t partitions : {2, 3, 7}) {
    SCOPED_TRACE(std::to_string(partitions) + " ranges");
    MakeTable(key);
    config_.num_partitions = partitions;
    RunWell();
    EXPECT_EQ(Read(), EachOnce(key));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SnapshotKeys, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<KeyCase>& test) {
                           std::string name(test.param.name);
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0)
                               c = '_';
                           }
                           return name;
                         });

TEST_F(SnapshotTest, ATableWithoutAnIndexIsOneChunk) {
  Fresh();
  Sql("CREATE TABLE dbo.h (n int NOT NULL)");
  for (int i = 0; i < 20; ++i) Sql("INSERT dbo.h VALUES (" + std::to_string(i) + ")");
  Enable("h", "dbo_h");
  config_.capture_instance = "dbo_h";
  config_.bootstrap = true;
  config_.snapshot = pipeline::SnapshotMode::kChunked;
  options_ = {};
  options_.chunk_rows = 3;
  RunWell();
  BackfillToTheEnd();
  EXPECT_EQ(CountOf("snapshot_chunk"), 1);
}

TEST_F(SnapshotTest, ColumnsThatCannotCutAreRefused) {
  Fresh();
  Sql("CREATE TABLE dbo.c (k int NOT NULL PRIMARY KEY, flag bit NULL, at time NULL, "
      "seven datetime2(7) NULL, note ntext NULL)");
  Enable("c", "dbo_c");
  config_.capture_instance = "dbo_c";
  config_.bootstrap = true;
  config_.snapshot = pipeline::SnapshotMode::kChunked;
  for (const auto& keys : std::vector<std::vector<std::string>>{
           {"flag"}, {"at"}, {"note"}, {"seven", "k"}, {"none"}, {"k", "flag"}}) {
    SCOPED_TRACE(keys.front());
    config_.snapshot_keys = keys;
    RunInto(ErrorId::kOptionInvalid, "option", "snapshotKeys");
  }
  config_.snapshot_keys = {"K", "SEVEN"};
  RunWell();
}

// Rows that come above the largest key while the table is read stay the stream's, also
// of a key whose next value is not known when the chunks are planned.
TEST_F(SnapshotTest, TheLastChunkOfASeekPlanDoesNotGrow) {
  Fresh();
  Sql("CREATE TABLE dbo.s (k nvarchar(10) NOT NULL PRIMARY KEY, n int NOT NULL)");
  for (int i = 10; i < 30; ++i) {
    Sql("INSERT dbo.s VALUES (N'k" + std::to_string(i) + "', 0)");
  }
  Enable("s", "dbo_s");
  config_.capture_instance = "dbo_s";
  config_.bootstrap = true;
  config_.snapshot = pipeline::SnapshotMode::kChunked;
  config_.num_partitions = 1;
  options_ = {};
  options_.chunk_rows = 6;
  options_.target_wave_seconds = 0;
  options_.max_waves = 1;
  RunWell();
  BackfillWell();
  for (int i = 30; i < 60; ++i) {
    Sql("INSERT dbo.s VALUES (N'k" + std::to_string(i) + "', 0)");
  }
  Pass(1);
  options_.max_waves.reset();
  BackfillToTheEnd();
  std::int64_t snapshot_rows = 0;
  Each("bronze", [&](const cdc::RowView& row) {
    if (row.Integer("_operation").value() == 0) ++snapshot_rows;
  });
  EXPECT_EQ(snapshot_rows, 20);
}

}  // namespace
}  // namespace mssql_cdc
