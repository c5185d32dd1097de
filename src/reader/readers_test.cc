// The readers against replies made by hand: what the runtime's scripted server, which
// is well behaved, never answers.

#include <gtest/gtest.h>

#include "reader/change_reader.h"
#include "reader/snapshot_reader.h"

namespace mssql_cdc::reader {
namespace {

using columns::ColumnBuilder;
using columns::Kind;

cdc::Lsn L(std::uint8_t last) { return cdc::Lsn{{0, 0, 0, 1, 0, 0, 0, 2, 0, last}}; }

struct Row {
  std::uint8_t lsn;
  std::int32_t operation;
  std::int32_t id;
};

// Answers every request with one set of rows; then, for a change read, with the lowest
// LSN.
class FakeSession final : public sqlserver::Session {
 public:
  std::vector<Row> rows;
  bool is_snapshot = false;
  Kind id_kind = Kind::kInt32;
  std::uint8_t min_lsn = 1;

  class FakeReply final : public sqlserver::Reply {
   public:
    explicit FakeReply(std::vector<columns::RecordBatch> sets)
        : sets_(std::move(sets)) {}
    Result<std::optional<columns::SchemaPtr>> NextResult() override {
      if (next_ == sets_.size()) return std::optional<columns::SchemaPtr>();
      is_read_ = sets_[next_].row_count == 0;
      return std::optional<columns::SchemaPtr>(sets_[next_++].schema);
    }
    Result<std::optional<columns::RecordBatch>> NextBatch() override {
      if (is_read_) return std::optional<columns::RecordBatch>();
      is_read_ = true;
      return std::optional<columns::RecordBatch>(sets_[next_ - 1]);
    }
    Status Finish() override { return Unit{}; }

   private:
    std::vector<columns::RecordBatch> sets_;
    std::size_t next_ = 0;
    bool is_read_ = false;
  };

  Result<std::unique_ptr<sqlserver::Reply>> Execute(
      const sqlserver::Request&, const sqlserver::BatchLimits&) override {
    std::vector<columns::RecordBatch> sets = {Rows()};
    if (!is_snapshot) {
      sets.push_back(Single("min_lsn", Kind::kBinary, true));
      sets.push_back(Single("commit_time", Kind::kTimestampNtz, false));
      sets.push_back(Single("lsn", Kind::kBinary, false));
    }
    return std::unique_ptr<sqlserver::Reply>(
        std::make_unique<FakeReply>(std::move(sets)));
  }
  void Cancel() override {}
  bool clean() const override { return true; }
  const sqlserver::ServerFacts& facts() const override { return facts_; }
  std::int64_t request_count() const override { return 0; }
  void Close() override {}

 private:
  static void AppendLsn(ColumnBuilder& builder, std::uint8_t last) {
    const cdc::Lsn lsn = L(last);
    builder.AppendBytes({reinterpret_cast<const char*>(lsn.bytes.data()), 10});
  }
  columns::RecordBatch Rows() const {
    auto schema = std::make_shared<columns::Schema>();
    std::vector<std::pair<const char*, Kind>> fields = {
        {"__$start_lsn", Kind::kBinary},
        {"__$seqval", Kind::kBinary},
        {"__$operation", Kind::kInt32},
        {"commit_time", Kind::kTimestampNtz}};
    if (is_snapshot) fields.clear();
    fields.emplace_back("id", id_kind);
    std::vector<ColumnBuilder> builders;
    for (const auto& [name, kind] : fields) {
      schema->fields.push_back({name, {kind}, true, ""});
      builders.emplace_back(columns::Type{kind}, 4);
    }
    for (const Row& row : rows) {
      if (!is_snapshot) {
        AppendLsn(builders[0], row.lsn);
        AppendLsn(builders[1], row.lsn);
        builders[2].AppendInt32(row.operation);
        builders[3].AppendInt64(row.lsn * 1'000'000);
      }
      if (id_kind == Kind::kInt32) builders.back().AppendInt32(row.id);
      if (id_kind == Kind::kInt64) builders.back().AppendInt64(row.id);
    }
    columns::RecordBatch batch{schema, static_cast<std::int64_t>(rows.size()), {}};
    for (ColumnBuilder& builder : builders) {
      batch.columns.push_back(std::make_shared<columns::Column>(builder.Finish()));
    }
    return batch;
  }
  columns::RecordBatch Single(const char* name, Kind kind, bool has_row) const {
    auto schema = std::make_shared<columns::Schema>();
    schema->fields.push_back({name, {kind}, true, ""});
    ColumnBuilder builder({kind}, 1);
    if (has_row) AppendLsn(builder, min_lsn);
    columns::RecordBatch batch{schema, builder.row_count(), {}};
    batch.columns.push_back(std::make_shared<columns::Column>(builder.Finish()));
    return batch;
  }

  sqlserver::ServerFacts facts_;
};

ChangePlan PlanFromTwoToNine() {
  ChangePlan plan;
  plan.capture_instance = "dbo_orders";
  plan.columns = {{"id", {Kind::kInt32}, true, ""}};
  plan.command_id = false;
  plan.window = {L(2), L(9)};
  plan.batch_id = 4;
  return plan;
}

TEST(ChangeReader, CountsWhatItHandsOn) {
  FakeSession session;
  session.rows = {{3, 2, 1}, {3, 3, 1}, {3, 4, 1}, {7, 1, 1}, {9, 2, 5}};
  ManualClock clock(0);
  const std::atomic<bool> stop{false};
  ChangeReader reader(PlanFromTwoToNine(), session, clock, stop);
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.ok()) << batch.error().Text();
  ASSERT_TRUE(batch.value().has_value());
  EXPECT_EQ(batch.value()->columns.size(), reader.schema()->fields.size());
  for (std::size_t i = 0; i < reader.schema()->fields.size(); ++i) {
    EXPECT_EQ(batch.value()->columns[i]->type, reader.schema()->fields[i].type);
    EXPECT_EQ(batch.value()->columns[i]->row_count, 5);
  }
  const auto end = reader.Next();
  ASSERT_TRUE(end.ok()) << end.error().Text();
  EXPECT_FALSE(end.value().has_value());
  const ChangeCounts& counts = reader.counts();
  EXPECT_EQ(counts.row_count, 5);
  EXPECT_EQ(counts.inserts, 2);
  EXPECT_EQ(counts.updates, 1);
  EXPECT_EQ(counts.deletes, 1);
  EXPECT_EQ(counts.min_lsn, L(3));
  EXPECT_EQ(counts.max_lsn, L(9));
  EXPECT_EQ(counts.min_commit_us, 3'000'000);
  EXPECT_EQ(counts.max_commit_us, 9'000'000);
  ASSERT_TRUE(reader.after_read().has_value());
  EXPECT_EQ(reader.after_read()->instance_min, L(1));
  EXPECT_EQ(reader.after_read()->newest, std::nullopt);
}

TEST(ChangeReader, RefusesWhatBreaksTheContract) {
  const struct {
    const char* when;
    std::vector<Row> rows;
    std::uint8_t min_lsn;
    Kind id_kind;
    bool stop;
    ErrorId error;
  } kRows[] = {
      {"at the exclusive end",
       {{2, 2, 1}},
       1,
       Kind::kInt32,
       false,
       ErrorId::kTdsMalformed},
      {"beyond the window",
       {{10, 2, 1}},
       1,
       Kind::kInt32,
       false,
       ErrorId::kTdsMalformed},
      {"out of order",
       {{5, 2, 1}, {4, 2, 1}},
       1,
       Kind::kInt32,
       false,
       ErrorId::kTdsMalformed},
      {"an operation of net changes",
       {{5, 5, 1}},
       1,
       Kind::kInt32,
       false,
       ErrorId::kTdsMalformed},
      {"another type", {{5, 2, 1}}, 1, Kind::kInt64, false, ErrorId::kSchemaChanged},
      {"cleanup came while it was read",
       {{5, 2, 1}},
       4,
       Kind::kInt32,
       false,
       ErrorId::kDataLoss},
      {"stopped", {{5, 2, 1}}, 1, Kind::kInt32, true, ErrorId::kStopped},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    FakeSession session;
    session.rows = row.rows;
    session.min_lsn = row.min_lsn;
    session.id_kind = row.id_kind;
    ManualClock clock(0);
    const std::atomic<bool> stop{row.stop};
    ChangeReader reader(PlanFromTwoToNine(), session, clock, stop);
    auto batch = reader.Next();
    if (batch.ok()) batch = reader.Next();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.error().id(), row.error) << batch.error().Text();
  }
}

TEST(SnapshotReader, StampsRowsAndReadsNullForWhatTheTableLost) {
  FakeSession session;
  session.is_snapshot = true;
  session.rows = {{0, 0, 1}, {0, 0, 2}};
  SnapshotPlan plan;
  plan.capture_instance = "dbo_orders";
  plan.columns = {{{"gone", {Kind::kUtf8}, true, ""}, false},
                  {{"id", {Kind::kInt32}, true, ""}, true}};
  plan.stamp = {L(9), std::nullopt};
  int lent = 0;
  int returned = 0;
  std::int64_t row_count = 0;
  const std::atomic<bool> stop{false};
  const LendSession lend = [&]() -> Result<LentSession> {
    ++lent;
    return LentSession(&session, [&](sqlserver::Session*) { ++returned; });
  };
  SnapshotReader reader(plan, lend, stop,
                        [&](std::int64_t rows, std::int64_t) { row_count += rows; });
  EXPECT_EQ(lent, 0);
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.ok()) << batch.error().Text();
  ASSERT_EQ(batch.value()->row_count, 2);
  const columns::Schema& schema = *reader.schema();
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    SCOPED_TRACE(schema.fields[i].name);
    EXPECT_EQ(batch.value()->columns[i]->type, schema.fields[i].type);
    const bool is_known = schema.fields[i].name == "_capture_instance" ||
                          schema.fields[i].name == "_start_lsn" ||
                          schema.fields[i].name == "_operation" ||
                          schema.fields[i].name == "_snapshot" ||
                          schema.fields[i].name == "id";
    EXPECT_EQ(batch.value()->columns[i]->null_count, is_known ? 0 : 2);
  }
  EXPECT_EQ(returned, 0);
  EXPECT_FALSE(reader.Next().value().has_value());
  EXPECT_EQ(lent, 1);
  EXPECT_EQ(returned, 1);
  EXPECT_EQ(row_count, 2);
}

}  // namespace
}  // namespace mssql_cdc::reader
