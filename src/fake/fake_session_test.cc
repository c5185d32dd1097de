// A history in files, and what it answers to each of the product's questions. Answers
// are compared as texts: cells parted by |, rows by /, result sets by ;. An LSN is its
// last byte, a time its time of day, NULL a dash.

#include "fake/fake_session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/text.h"
#include "cdc/lsn.h"
#include "columns/cell_access.h"
#include "columns/value_text.h"
#include "fake/sql_types.h"
#include "sqlserver/question.h"

namespace mssql_cdc::fake {
namespace {

using columns::Kind;
using sqlserver::Request;
using Texts = std::map<std::string, std::string>;

// LSN 1 to 9, as files have it.
std::string LsnText(int number) {
  return "\"0x0000002A00000100000" + std::to_string(number) + "\"";
}
sqlserver::LsnBytes Lsn(int number) {
  return cdc::Lsn::Parse(Trim(LsnText(number)).substr(1, 22)).value().bytes;
}
std::string CommitLine(int number) {
  return R"({"start_lsn": )" + LsnText(number) +
         R"(, "tran_end_time": "2026-11-20T08:0)" + std::to_string(number) + ":00\"}\n";
}
std::string ChangeLine(int lsn, int seqval, int operation, const std::string& row) {
  return R"({"start_lsn": )" + LsnText(lsn) + R"(, "seqval": )" + LsnText(seqval) +
         R"(, "command_id": 1, "operation": )" + std::to_string(operation) +
         R"(, "row": )" + row + "}\n";
}

// Table t (id, note, gone, sum computed) of two instances, the newer one with column
// amount; table two of two key columns; table log that keeps nothing but changes.
Texts History() {
  const std::string columns =
      R"([["id", "INT"], ["note", "STRING"], ["gone", "DATE"], ["sum", "BIGINT"]])";
  const std::string newer =
      columns.substr(0, columns.size() - 1) + R"x(, ["amount", "DECIMAL(9,4)"]])x";
  return {
      {"min_lsn.json", R"({"t": )" + LsnText(1) + R"(, "t_v2": )" + LsnText(3) +
                           R"(, "two": )" + LsnText(1) + R"(, "log": )" + LsnText(1) +
                           "}"},
      {"instances.json",
       R"({"t": {"table": "t", "created": "2026-11-20T08:00:00", "columns": )" +
           columns +
           R"(}, "t_v2": {"table": "t", "created": "2026-11-20T08:03:00", "columns": )" +
           newer + R"(}, "two": {"columns": [["a", "SMALLINT"], ["b", "BIGINT"]]}})"},
      {"keys.json", R"({"t": "id", "two": ["a", "b"]})"},
      {"dropped.json", R"({"t": ["Gone"]})"},
      {"computed.json", R"({"t": "sum"})"},
      {"lsn_time_mapping.jsonl",
       CommitLine(2) + CommitLine(1) + CommitLine(4) + CommitLine(5)},
      {"changes/t.jsonl", ChangeLine(2, 1, 2, R"({"id": 1, "note": "a", "sum": 9})") +
                              ChangeLine(1, 1, 2, R"({"id": 7, "NOTE": "x"})") +
                              ChangeLine(4, 2, 4, R"({"id": 1, "note": null})") +
                              ChangeLine(4, 2, 3, R"({"id": 1, "note": "a"})")},
      {"changes/log.jsonl", ChangeLine(2, 1, 2, R"({"text": "é", "more": 1.5})")},
      {"ddl/t.jsonl", R"({"lsn": )" + LsnText(4) + R"(, "command": "ALTER"})" + "\n"},
      {"tables/t.json", R"({"1": {"id": 1, "note": "a", "amount": "1.25"},
                            "2": {"id": -3, "note": "b"},
                            "3": {"id": null, "note": "n"}})"},
      {"tables/two.json", R"({"1": {"a": 1, "b": 20}, "2": {"a": 1, "b": null},
                              "3": {"a": 2, "b": 5}, "4": {"a": -1, "b": 7}})"},
  };
}

std::string CellText(const columns::Column& column, std::size_t row) {
  if (columns::IsNull(column, row)) return "-";
  switch (column.type.kind) {
    case Kind::kBool:
      return columns::BitAt(column.values.data(), row) ? "true" : "false";
    case Kind::kInt16:
      return std::to_string(columns::ValueAt<std::int16_t>(column, row));
    case Kind::kInt32:
      return std::to_string(columns::ValueAt<std::int32_t>(column, row));
    case Kind::kInt64:
      return std::to_string(columns::ValueAt<std::int64_t>(column, row));
    case Kind::kTimestampNtz:
      return IsoMillis(columns::ValueAt<std::int64_t>(column, row)).substr(11, 5);
    case Kind::kDecimal128:
      return columns::DecimalText(columns::ValueAt<columns::Int128>(column, row),
                                  column.type.scale);
    case Kind::kBinary:
      return "L" + std::to_string(columns::BytesAt(column, row).back() & 15);
    default:
      return std::string(columns::BytesAt(column, row));
  }
}

class FakeSession : public testing::Test {
 protected:
  FakeSession()
      : directory_(testing::TempDir() + "mssql_cdc_fake_" +
                   std::to_string(::getpid())) {}
  ~FakeSession() override { std::filesystem::remove_all(directory_); }

  void Write(const Texts& files) {
    std::filesystem::remove_all(directory_);
    for (const auto& [name, text] : files) {
      const std::filesystem::path path = std::filesystem::path(directory_) / name;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary) << text;
    }
  }
  std::string Answer(const Request& request, std::int64_t row_count_max = 100) {
    const auto session = OpenSession(directory_);
    if (!session.ok()) return session.error().Text();
    const auto reply = session.value()->Execute(request, {row_count_max});
    if (!reply.ok()) return reply.error().Text();
    std::string text;
    for (bool is_first = true;; is_first = false) {
      const auto schema = reply.value()->NextResult();
      if (!schema.ok() || !schema.value()) return text;
      if (!is_first) text += ";";
      bool is_first_row = true;
      while (const auto batch = reply.value()->NextBatch().value()) {
        for (std::int64_t row = 0; row < batch->row_count; ++row) {
          if (!std::exchange(is_first_row, false)) text += "/";
          for (std::size_t i = 0; i < batch->columns.size(); ++i) {
            text += (i == 0 ? "" : "|") +
                    CellText(*batch->columns[i], static_cast<std::size_t>(row));
          }
        }
      }
    }
  }

  std::string directory_;
};

sqlserver::KeyTable Two() {
  return {"dbo", "two", {{"a", "", "", false}, {"b", "", "", false}}, {}};
}

TEST_F(FakeSession, AnswersFromTheMapping) {
  Write(History());
  const std::pair<Request, const char*> kRows[] = {
      {sqlserver::AskServerClock(), "16|3|0"},
      {sqlserver::AskServerZone(), "UTC"},
      {sqlserver::AskNewestCommit({}), "L5|08:05"},
      {sqlserver::AskCommitTime(Lsn(2), {}), "08:02"},
      {sqlserver::AskCommitTime(Lsn(3), {}), ""},
      {sqlserver::AskCommitTimeAtOrBelow(Lsn(3), {}), "08:02"},
      {sqlserver::AskMinLsn("t_v2"), "L3"},
      {sqlserver::AskMinLsn("nobody"), "-"},
      {sqlserver::ListInstances(),
       "dbo|log|log|L1|00:00|-/dbo|two|two|L1|00:00|[a], [b]/"
       "dbo|t|t|L1|08:00|[id]/dbo|t|t_v2|L3|08:03|[id]"},
      {sqlserver::ListColumns("t", "dbo", "t"),
       "id|1|1|int|10|0/note|2|2|nvarchar|-|-/gone|3|3|date|-|-/sum|4|4|bigint|19|0;"
       "id|1|false/note|2|false/sum|4|true/amount|5|false;"
       "__$start_lsn/__$command_id/id/note/gone/sum"},
      {sqlserver::ListColumns("log", "dbo", "log"),
       "more|1|1|nvarchar|-|-/text|2|2|nvarchar|-|-;more|1|false/text|2|false;"
       "__$start_lsn/__$command_id/more/text"},
  };
  for (const auto& [request, expected] : kRows) {
    SCOPED_TRACE(request.sql);
    EXPECT_EQ(Answer(request), expected);
  }
}

TEST_F(FakeSession, AnswersWhatHasChanged) {
  Write(History());
  sqlserver::PollQuestion poll{"dbo", "t", {"t", "t_v2"}, Lsn(5), {}, {}, "t", {}, {}};
  // At the end: only the newest commit, the oldest and the position's time.
  EXPECT_EQ(Answer(sqlserver::Poll(poll)), "L5|08:05|0;L1|08:05|0");
  poll.after = Lsn(1);
  poll.commit_count_max = 2;
  poll.row_count_max = 10;
  EXPECT_EQ(Answer(sqlserver::Poll(poll)),
            "L5|08:05|0;L1|08:01|0;dbo|t|t|L1|08:00|[id]/dbo|t|t_v2|L3|08:03|[id];"
            "L4|ALTER;;3;L4|08:04");
  poll.through_max = Lsn(3);
  poll.row_count_max = 2;
  EXPECT_EQ(Answer(sqlserver::Poll(poll)),
            "L5|08:05|0;L1|08:01|0;dbo|t|t|L1|08:00|[id]/dbo|t|t_v2|L3|08:03|[id];"
            "L4|ALTER;;2;L2|08:02");

  // In the change table's order; sum is computed, and so NULL; NOTE is note.
  sqlserver::ChangesQuestion changes{
      "t", Lsn(1), Lsn(5), true, {{"note", ""}, {"sum", ""}}, {}, false};
  EXPECT_EQ(Answer(sqlserver::ReadChanges(changes)),
            "L2|L1|2|1|08:02|a|-/L4|L2|3|1|08:04|a|-/L4|L2|4|1|08:04|-|-;"
            "L1;08:01;L5|08:05");
  changes.after = {};
  changes.through = Lsn(1);
  changes.command_id = false;
  changes.columns = {{"note", ""}, {"id", "decimal(9, 2)"}};
  EXPECT_EQ(Answer(sqlserver::ReadChanges(changes)),
            "L1|L1|2|08:01|x|7.00;L1;08:01;L5|08:05");

  // As NTILE: the first tiles take what does not divide.
  EXPECT_EQ(Answer(sqlserver::AskTiles({"t", {}, Lsn(5), 3})), "L2|2/L4|1/L4|1");
  EXPECT_EQ(Answer(sqlserver::AskTiles({"t", Lsn(4), Lsn(5), 3})), "");
}

TEST_F(FakeSession, AnswersOfATableItself) {
  Write(History());
  const auto chunk = [](std::optional<sqlserver::KeyBound> lo,
                        std::optional<sqlserver::KeyBound> hi) {
    return sqlserver::ReadChunk(
        {Two(), {std::move(lo), std::move(hi)}, {{"a", ""}, {"b", ""}}});
  };
  const auto seek = [](std::optional<sqlserver::KeyBound> lo, std::int64_t skip) {
    return sqlserver::SeekKey(Two(), {std::move(lo), std::nullopt}, skip);
  };
  using Bound = sqlserver::KeyBound;
  const std::pair<Request, const char*> kRows[] = {
      // Integers alone are keys.
      {sqlserver::AskColumnDetails("dbo", "t"), "id|4|10|0|-/sum|8|19|0|-"},
      {sqlserver::AskSpaceUsed("dbo", "two"), "4"},
      {sqlserver::AskKeyExtent("dbo", "t", "ID", {}), "-3|1"},
      {sqlserver::AskKeyExtent("dbo", "log", "id", {}), "-|-"},
      {sqlserver::AskLastKey(Two()), "2|5"},
      // NULL comes first.
      {seek({}, 1), "1|-"},
      {seek({}, 4), ""},
      {seek(Bound{"1", std::nullopt}, 1), "1|20"},
      {sqlserver::SeekAbove(Two(), {"1", "20"}), "2|5"},
      {sqlserver::SeekAbove(Two(), {"2", "5"}), ""},
      {chunk({}, Bound{"1", "20"}), "1|-/-1|7"},
      {chunk(Bound{"1", "20"}, Bound{"2", "5"}), "1|20"},
      {chunk(Bound{"1", "20"}, {}), "1|20/2|5"},
      {chunk({}, {}), "1|20/1|-/2|5/-1|7"},
      {sqlserver::CountSlices({"dbo", "two", "b", 10, 0, 20, {}}), "0|2|5|7/2|1|20|20"},
      {sqlserver::CountSlices({"dbo", "two", "a", 10, -1, 2, {}}),
       "-1|1|-1|-1/0|3|1|2"},
      {sqlserver::ReadSnapshot(
           {"dbo", "t", {{"id", ""}, {"amount", ""}}, "", {}, {}, {}}),
       "1|1.2500/-3|-/-|-"},
      {sqlserver::ReadSnapshot({"dbo", "t", {{"note", ""}}, "id", {}, -3, {}}), "b/n"},
      {sqlserver::ReadSnapshot({"dbo", "t", {{"note", ""}}, "id", -3, {}, {}}), "a"},
  };
  for (const auto& [request, expected] : kRows) {
    SCOPED_TRACE(request.sql);
    EXPECT_EQ(Answer(request), expected);
  }
}

TEST_F(FakeSession, SaysWhatItCannotAnswer) {
  Write(History());
  const std::pair<Request, const char*> kRows[] = {
      {sqlserver::AskCaptureJobs(), "PermissionDenied"},
      {sqlserver::AskNetworkWait(), "PermissionDenied"},
      {sqlserver::ListColumns("nobody", "dbo", "t"), "nobody"},
      {sqlserver::ReadChanges({"nobody", {}, {}, true, {}, {}, false}), "nobody"},
      {sqlserver::ReadChanges({"t", {}, {}, true, {{"more", ""}}, {}, false}), "more"},
      {sqlserver::ReadChanges({"t", {}, {}, true, {{"id", "geometry"}}, {}, false}),
       "geometry"},
      {sqlserver::ReadSnapshot({"dbo", "t", {{"gone", ""}}, "", {}, {}, {}}), "gone"},
  };
  for (const auto& [request, named] : kRows) {
    SCOPED_TRACE(request.sql);
    const auto session = OpenSession(directory_).value();
    const auto reply = session->Execute(request, {});
    ASSERT_FALSE(reply.ok());
    EXPECT_NE(reply.error().Text().find(named), std::string::npos)
        << reply.error().Text();
    EXPECT_TRUE(session->clean());
  }
}

TEST_F(FakeSession, RefusesWhatIsNoHistory) {
  struct Row {
    const char* condition;
    const char* file;
    const char* text;  // nullptr: there is none.
    const char* named;
  };
  const Row kRows[] = {
      {"no fake at all", "min_lsn.json", nullptr, "min_lsn.json"},
      {"no LSN", "min_lsn.json", R"({"t": 5})", "no LSN for t"},
      {"no object", "instances.json", "[]", "instances.json"},
      {"cut off", "instances.json", R"({"t": )", "instances.json"},
      {"a type nobody knows", "instances.json",
       R"({"t": {"table": "t", "columns": [["id", "INTEGRAL"]]}})", "the columns of t"},
      {"a commit without a time", "lsn_time_mapping.jsonl",
       "{\"start_lsn\": \"0x0000002A000001000001\"}\n", "no time"},
      {"a line that is no object", "lsn_time_mapping.jsonl", "5\n", "line 1"},
      {"a change without a row", "changes/t.jsonl",
       "{\"start_lsn\": \"0x0000002A000001000001\", \"seqval\": "
       "\"0x0000002A000001000001\"}\n",
       "no row"},
      {"DDL without an LSN", "ddl/t.jsonl", "{\"command\": \"ALTER\"}\n", "no LSN"},
      {"a value that its type does not hold", "changes/t.jsonl",
       "{\"start_lsn\": \"0x0000002A000001000002\", \"seqval\": "
       "\"0x0000002A000001000001\", \"operation\": 2, \"row\": {\"id\": \"one\"}}\n",
       "column=id"},
  };
  const Request requests[] = {
      sqlserver::Poll({"dbo", "t", {"t"}, {}, {}, {}, "t", 10, {}}),
      sqlserver::ReadChanges({"t", {}, Lsn(9), true, {{"id", ""}}, {}, false})};
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.condition);
    Texts files = History();
    files.erase(row.file);
    if (row.text != nullptr) files[row.file] = row.text;
    Write(files);
    std::string said;
    for (const Request& request : requests) said += Answer(request);
    EXPECT_NE(said.find("MC5008"), std::string::npos) << said;
    EXPECT_NE(said.find(row.named), std::string::npos) << said;
  }
}

TEST_F(FakeSession, ALineThatIsStillBeingWrittenIsNotThereYet) {
  Texts files = History();
  std::string& mapping = files["lsn_time_mapping.jsonl"];
  mapping += CommitLine(6);
  mapping.pop_back();
  Write(files);
  EXPECT_EQ(Answer(sqlserver::AskNewestCommit({})), "L5|08:05");
}

TEST_F(FakeSession, IsUncleanUntilAReplyIsRead) {
  Write(History());
  const auto session = OpenSession(directory_).value();
  const auto reply = session->Execute(sqlserver::AskServerClock(), {}).value();
  EXPECT_FALSE(session->clean());
  EXPECT_TRUE(reply->Finish().ok());
  EXPECT_TRUE(session->clean());
  EXPECT_EQ(session->request_count(), 1);
}

TEST_F(FakeSession, HandsOnNoMoreRowsThanABatchMayHave) {
  Write(History());
  const auto session = OpenSession(directory_).value();
  const auto reply =
      session->Execute(sqlserver::ReadChunk({Two(), {}, {{"a", ""}}}), {3}).value();
  ASSERT_TRUE(reply->NextResult().value().has_value());
  EXPECT_EQ(reply->NextBatch().value()->row_count, 3);
  EXPECT_EQ(reply->NextBatch().value()->row_count, 1);
  EXPECT_FALSE(reply->NextBatch().value().has_value());
}

TEST(FakeTypes, AreReadAsTheyAreNamed) {
  const columns::Type kTypes[] = {
      {Kind::kBool},   {Kind::kInt16},        {Kind::kInt32},
      {Kind::kInt64},  {Kind::kFloat32},      {Kind::kFloat64},
      {Kind::kDate32}, {Kind::kTimestampNtz}, {Kind::kTimestampUtc},
      {Kind::kUtf8},   {Kind::kBinary},       {Kind::kDecimal128, 18, 2}};
  for (const columns::Type& type : kTypes) {
    const SqlName name = SqlNameOf(type);
    std::string text = name.type;
    if (type.kind == Kind::kDecimal128) {
      text += "(" + std::to_string(*name.precision) + ", " +
              std::to_string(*name.scale) + ")";
    }
    SCOPED_TRACE(text);
    EXPECT_EQ(TypeOfSql(text), type);
  }
  EXPECT_EQ(TypeOfSql("geometry"), std::nullopt);
}

}  // namespace
}  // namespace mssql_cdc::fake
