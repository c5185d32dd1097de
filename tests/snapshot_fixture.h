// A captured table with a writer at work, its stream, and what fills the target besides
// the stream; and the comparison of the target's latest images with the table.

#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "runtime/backfill.h"
#include "runtime/snapshot_calls.h"
#include "tests/source_fixture.h"

namespace mssql_cdc {

class SnapshotTest : public SourceTest {
 protected:
  SnapshotTest() { Chunked(); }

  // Table t (id, note) with `count` rows, ids `step` apart from 0, in chunked mode.
  void Chunked(int count = 50, int step = 1) {
    Fresh();
    Sql("DELETE dbo.t");
    rows_.clear();
    for (int i = 0; i < count; ++i) Put(i * step, "n" + std::to_string(i));
    Pass(1);
    config_.bootstrap = true;
    config_.snapshot = pipeline::SnapshotMode::kChunked;
    config_.num_partitions = 2;
    options_ = {};
    options_.chunk_rows = 8;
    options_.target_wave_seconds = 0;
  }

  // The writer: the table and what is known of it.
  void Put(int id, const std::string& note) {
    Sql(rows_.contains(id)
            ? "UPDATE dbo.t SET note = N'" + note + "' WHERE id = " + std::to_string(id)
            : "INSERT dbo.t (id, note) VALUES (" + std::to_string(id) + ", N'" + note +
                  "')");
    rows_[id] = note;
  }
  void Remove(int id) {
    Sql("DELETE dbo.t WHERE id = " + std::to_string(id));
    rows_.erase(id);
  }
  void Move(int id, int to) {
    Sql("UPDATE dbo.t SET id = " + std::to_string(to) +
        " WHERE id = " + std::to_string(id));
    rows_[to] = rows_[id];
    rows_.erase(id);
  }

  Result<runtime::BackfillStatus> Backfill(lake::Lake& lake) {
    std::optional<runtime::BackfillStatus> got;
    const Status status = source_->With(
        lake, {}, "life", [&](const runtime::StreamParts& parts) -> Status {
          const auto backfill =
              runtime::Backfill::Make(config_, options_, parts, &backfill_warnings_);
          TRY_ASSIGN(got, backfill->Run());
          request_count_ = backfill->request_count();
          return Unit{};
        });
    if (!status.ok()) return status.error();
    return *got;
  }
  runtime::BackfillStatus BackfillWell() {
    const auto status = Backfill(*lake_);
    EXPECT_TRUE(status.ok()) << status.error().Text();
    return status.ok() ? status.value() : runtime::BackfillStatus{};
  }
  void BackfillToTheEnd() {
    for (int i = 0; i < 100; ++i) {
      const runtime::BackfillStatus status = BackfillWell();
      if (status.state == runtime::BackfillStatus::State::kDone) return;
      ASSERT_EQ(status.state, runtime::BackfillStatus::State::kRunning)
          << status.reason;
    }
    FAIL() << "it never ends";
  }
  Result<runtime::SnapshotSummary> Call(
      const std::function<Result<runtime::SnapshotSummary>(runtime::SnapshotCall&)>&
          call,
      lake::Lake& lake) {
    std::optional<runtime::SnapshotSummary> got;
    const Status status = source_->With(
        lake, {}, "life", [&](const runtime::StreamParts& parts) -> Status {
          const auto running = runtime::SnapshotCall::Make(config_, parts);
          TRY_ASSIGN(got, call(*running));
          return Unit{};
        });
    if (!status.ok()) return status.error();
    return *got;
  }
  Result<runtime::SnapshotSummary> Take(bool resnapshot = false) {
    return Call([&](auto& call) { return call.Take(resnapshot); }, *lake_);
  }

  // A copy of the table as it is, under other spellings and types, with a column more.
  void Copy(const char* location) {
    auto schema = std::make_shared<columns::Schema>();
    schema->fields = {{"NOTE", {columns::Kind::kUtf8}},
                      {"more", {columns::Kind::kInt32}},
                      {"Id", {columns::Kind::kInt64}}};
    const auto count = static_cast<std::int64_t>(rows_.size());
    columns::ColumnBuilder note({columns::Kind::kUtf8}, count);
    columns::ColumnBuilder more({columns::Kind::kInt32}, count);
    columns::ColumnBuilder id({columns::Kind::kInt64}, count);
    for (const auto& [key, text] : rows_) {
      note.AppendBytes(text);
      more.AppendNull();
      id.AppendInt64(key);
    }
    columns::RecordBatch batch{schema, count, {}};
    for (auto* builder : {&note, &more, &id}) {
      batch.columns.push_back(
          std::make_shared<const columns::Column>(builder->Finish()));
    }
    ASSERT_TRUE(lake_->Create(location, {*schema, "", {}}).ok());
    std::vector<columns::RecordBatch> batches;
    batches.push_back(std::move(batch));
    std::vector<std::unique_ptr<columns::BatchReader>> sources;
    sources.push_back(columns::ReadBatches(schema, std::move(batches)));
    ASSERT_TRUE(lake_->Append(location, std::move(sources), {}).ok());
  }
  std::string NowText() {
    return IsoMillis(source_->engine().NowUtcUs()).substr(0, 19);
  }

  // What consumers keep: the newest image of each id, deletes left out; of rows from
  // `from` on, where that is given.
  std::map<int, std::string> Latest(const std::string& from = "") {
    struct Image {
      std::string order;
      std::int64_t operation = 0;
      std::string note;
    };
    std::map<int, Image> newest;
    Each("bronze", [&](const cdc::RowView& row) {
      const std::string lsn = row.Text("_start_lsn").value().value_or("");
      const std::string snapshot = row.Text("_snapshot").value().value_or("");
      if (!from.empty() && (snapshot.empty() ? lsn <= from : snapshot != from)) return;
      const std::int64_t command = row.Integer("_command_id").value().value_or(-1) + 1;
      const std::int64_t operation = row.Integer("_operation").value().value_or(0);
      char order[200];
      std::snprintf(order, sizeof order, "%s %012lld %s %lld", lsn.c_str(),
                    static_cast<long long>(command),
                    row.Text("_seqval").value().value_or("").c_str(),
                    static_cast<long long>(operation));
      Image& image = newest[static_cast<int>(row.Integer("id").value().value_or(-1))];
      if (image.order < order) {
        image = {order, operation, row.Text("note").value().value_or("NULL")};
      }
    });
    std::map<int, std::string> latest;
    for (auto& [id, image] : newest) {
      if (image.operation != 1) latest[id] = std::move(image.note);
    }
    return latest;
  }

  // "chunk wave-less: id", of all snapshot rows.
  std::multiset<std::string> SnapshotRows() {
    std::multiset<std::string> lines;
    Each("bronze", [&](const cdc::RowView& row) {
      if (row.Integer("_operation").value() != 0) return;
      const auto chunk = row.Integer("_chunk").value();
      lines.insert((chunk ? std::to_string(*chunk) : "-") + ": " +
                   std::to_string(row.Integer("id").value().value_or(-1)) + " " +
                   row.Text("note").value().value_or("NULL"));
    });
    return lines;
  }

  // Events of the facts with what does not depend on clocks: "app event rows detail".
  Lines Events() {
    Lines lines;
    Each("facts", [&](const cdc::RowView& row) {
      const auto event = row.Text("event").value();
      if (!event) return;
      const auto rows = row.Integer("rows").value();
      lines.push_back(row.Text("app_id").value().value_or("") + " " + *event + " " +
                      (rows ? std::to_string(*rows) : "-") + " " +
                      row.Text("detail").value().value_or(""));
    });
    return lines;
  }
  Lines Plans() {
    Lines lines;
    if (!lake_->State("bronze_snapshot_plans").value()) return lines;
    Each("bronze_snapshot_plans", [&](const cdc::RowView& row) {
      lines.push_back(row.Text("event").value().value_or("") + " " +
                      row.Text("detail").value().value_or(""));
    });
    return lines;
  }
  std::int64_t CountOf(const std::string& event) {
    std::int64_t count = 0;
    for (const std::string& line : Events()) {
      if (line.find(" " + event + " ") != std::string::npos) ++count;
    }
    return count;
  }

  class BackfillWarnings final : public runtime::BackfillObserver {
   public:
    Lines texts;
    void OnWarning(const std::string& text) override { texts.push_back(text); }
  };

  std::map<int, std::string> rows_;
  runtime::BackfillOptions options_;
  BackfillWarnings backfill_warnings_;
  std::int64_t request_count_ = 0;
};

}  // namespace mssql_cdc
