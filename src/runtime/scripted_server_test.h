// A model of one SQL Server table under CDC that answers the product's own statements,
// for tests of what the runtime does with the answers. It knows statements by their
// beginnings and parameters by name; anything else is an error.

#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cdc/lsn.h"
#include "columns/batch.h"
#include "runtime/session_pool.h"
#include "sqlserver/session.h"

namespace mssql_cdc::runtime {

struct ScriptedChange {
  std::int32_t operation = 2;
  std::int32_t id = 0;
  std::string note;
};

struct ScriptedCommit {
  std::uint8_t lsn = 0;                 // The last byte; the others are fixed.
  std::vector<ScriptedChange> changes;  // None: of another table.
};

inline cdc::Lsn ScriptedLsn(std::uint8_t last) {
  return cdc::Lsn{{0, 0, 0, 0x2A, 0, 0, 1, 0, 0, last}};
}
// 2026-11-20T08:00:00 and a minute per LSN.
inline std::int64_t ScriptedTimeUs(std::uint8_t lsn) {
  return 1'795'161'600'000'000 + lsn * std::int64_t{60'000'000};
}

struct ScriptedServer {
  std::uint8_t first_lsn = 1;  // fn_cdc_get_min_lsn; 0: gone.
  std::vector<ScriptedCommit> commits;
  std::map<std::int32_t, std::string> table;
  bool cdc_enabled = true;
  bool command_id = true;
  std::string column_type = "nvarchar";  // Of `note`, as the catalogue says.
  std::int64_t request_count = 0;
  std::int64_t login_count = 0;
  std::function<void()> before_after_read;  // Runs when all rows of a read were sent.

  // Applies the changes to the table and records the commit.
  void Commit(std::uint8_t lsn, std::vector<ScriptedChange> changes) {
    for (const ScriptedChange& change : changes) {
      if (change.operation == 1) table.erase(change.id);
      if (change.operation == 2 || change.operation == 4)
        table[change.id] = change.note;
    }
    commits.push_back({lsn, std::move(changes)});
  }
};

// The integer that begins at `position` of `text`; 0 if there is none.
inline std::int64_t NumberAt(std::string_view text, std::size_t position) {
  text.remove_prefix(position);
  return ParseInt64(text.substr(0, text.find_first_not_of("-0123456789"))).value_or(0);
}

struct ScriptedSet {
  columns::SchemaPtr schema;
  std::vector<columns::RecordBatch> batches;
};

// Builds one result set row by row.
class SetBuilder {
 public:
  explicit SetBuilder(std::vector<std::pair<std::string, columns::Kind>> fields) {
    for (auto& [name, kind] : fields) {
      schema_->fields.push_back({name, {kind}, true, ""});
      builders_.emplace_back(columns::Type{kind}, 8);
    }
  }
  SetBuilder& Null() {
    Next().AppendNull();
    return *this;
  }
  SetBuilder& Text(std::string_view value) {
    Next().AppendBytes(value);
    return *this;
  }
  SetBuilder& LsnValue(const cdc::Lsn& lsn) {
    return Text({reinterpret_cast<const char*>(lsn.bytes.data()), lsn.bytes.size()});
  }
  SetBuilder& Int(std::int32_t value) {
    Next().AppendInt32(value);
    return *this;
  }
  SetBuilder& Long(std::int64_t value) {
    Next().AppendInt64(value);
    return *this;
  }
  SetBuilder& Bool(bool value) {
    Next().AppendBool(value);
    return *this;
  }
  ScriptedSet Build() {
    columns::RecordBatch batch{schema_, builders_[0].row_count(), {}};
    for (columns::ColumnBuilder& builder : builders_) {
      batch.columns.push_back(std::make_shared<columns::Column>(builder.Finish()));
    }
    ScriptedSet set{schema_, {}};
    if (batch.row_count != 0) set.batches.push_back(std::move(batch));
    return set;
  }

 private:
  columns::ColumnBuilder& Next() {
    columns::ColumnBuilder& builder = builders_[next_];
    next_ = (next_ + 1) % builders_.size();
    return builder;
  }

  std::shared_ptr<columns::Schema> schema_ = std::make_shared<columns::Schema>();
  std::vector<columns::ColumnBuilder> builders_;
  std::size_t next_ = 0;
};

class ScriptedReply final : public sqlserver::Reply {
 public:
  ScriptedReply(std::vector<ScriptedSet> sets, std::function<void()> at_second,
                bool* clean)
      : sets_(std::move(sets)), at_second_(std::move(at_second)), clean_(clean) {
    *clean_ = false;
  }
  Result<std::optional<columns::SchemaPtr>> NextResult() override {
    if (next_ == sets_.size()) {
      *clean_ = true;
      return std::optional<columns::SchemaPtr>();
    }
    if (next_ == 1 && at_second_) at_second_();
    batch_ = 0;
    return std::optional<columns::SchemaPtr>(sets_[next_++].schema);
  }
  Result<std::optional<columns::RecordBatch>> NextBatch() override {
    ScriptedSet& set = sets_[next_ - 1];
    if (batch_ == set.batches.size()) return std::optional<columns::RecordBatch>();
    return std::optional<columns::RecordBatch>(set.batches[batch_++]);
  }
  Status Finish() override {
    *clean_ = true;
    return Unit{};
  }

 private:
  std::vector<ScriptedSet> sets_;
  std::function<void()> at_second_;
  bool* clean_;
  std::size_t next_ = 0;
  std::size_t batch_ = 0;
};

class ScriptedSession final : public sqlserver::Session {
 public:
  explicit ScriptedSession(ScriptedServer& server) : server_(server) {
    facts_.product = "Microsoft SQL Server";
    facts_.major_version = 16;
    facts_.database = "shop";
  }
  Result<std::unique_ptr<sqlserver::Reply>> Execute(
      const sqlserver::Request& request, const sqlserver::BatchLimits&) override {
    ++server_.request_count;
    ++request_count_;
    const std::string& sql = request.sql;
    const auto is = [&](std::string_view part) {
      return sql.find(part) != std::string::npos;
    };
    if (is("AS age_seconds FROM cdc.lsn")) return Reply(Poll(request));
    if (is("sp_cdc_help_change_data_capture")) {
      if (!server_.cdc_enabled) {
        return Error(ErrorId::kServerError).With("number", "22901");
      }
      return Reply({Instances()});
    }
    if (is("sp_cdc_get_captured_columns")) return Reply(Columns());
    if (is("SERVERPROPERTY")) {
      return Reply({SetBuilder({{"major_version", columns::Kind::kInt32},
                                {"engine_edition", columns::Kind::kInt32},
                                {"offset_minutes", columns::Kind::kInt32}})
                        .Int(16)
                        .Int(3)
                        .Int(0)
                        .Build()});
    }
    if (is("CURRENT_TIMEZONE_ID")) {
      return Reply({SetBuilder({{"zone", columns::Kind::kUtf8}}).Text("UTC").Build()});
    }
    if (is("_CT]")) return ReadChanges(request);
    if (sql.starts_with("SELECT wait_time_ms")) return Reply({Wait()});
    if (is("cdc_jobs") || is("dm_cdc_errors")) {
      return Error(ErrorId::kPermissionDenied).With("number", "229");
    }
    if (sql.starts_with("SELECT TOP (1) start_lsn AS lsn")) return Reply({Newest()});
    if (is("WHERE start_lsn = @lsn")) return Reply({TimeOf(LsnOf(request, "@lsn"))});
    if (is("AS min_lsn")) return Reply({MinLsn()});
    if (is("AS min_key")) return Reply({Extent()});
    if (is("FROM [dbo].[orders]")) return Reply({Table(sql)});
    return Error(ErrorId::kServerError).With("number", "102").With("sql", sql);
  }
  void Cancel() override {}
  bool clean() const override { return clean_; }
  const sqlserver::ServerFacts& facts() const override { return facts_; }
  std::int64_t request_count() const override { return request_count_; }
  void Close() override {}

 private:
  Result<std::unique_ptr<sqlserver::Reply>> Reply(
      std::vector<ScriptedSet> sets, std::function<void()> at_second = {}) {
    return std::unique_ptr<sqlserver::Reply>(std::make_unique<ScriptedReply>(
        std::move(sets), std::move(at_second), &clean_));
  }
  static cdc::Lsn LsnOf(const sqlserver::Request& request, std::string_view name) {
    for (const sqlserver::Parameter& parameter : request.parameters) {
      if (parameter.name != name) continue;
      cdc::Lsn lsn;
      std::copy(parameter.bytes->begin(), parameter.bytes->end(), lsn.bytes.begin());
      return lsn;
    }
    return {};
  }
  ScriptedSet Instances() {
    SetBuilder set({{"source_schema", columns::Kind::kUtf8},
                    {"source_table", columns::Kind::kUtf8},
                    {"capture_instance", columns::Kind::kUtf8},
                    {"start_lsn", columns::Kind::kBinary},
                    {"create_date", columns::Kind::kTimestampNtz},
                    {"index_column_list", columns::Kind::kUtf8}});
    if (server_.first_lsn != 0) {
      set.Text("dbo").Text("orders").Text("dbo_orders");
      set.LsnValue(ScriptedLsn(server_.first_lsn)).Long(0).Text("[id]");
    }
    return set.Build();
  }
  std::vector<ScriptedSet> Columns() {
    using columns::Kind;
    SetBuilder captured({{"column_name", Kind::kUtf8},
                         {"column_id", Kind::kInt32},
                         {"column_ordinal", Kind::kInt32},
                         {"data_type", Kind::kUtf8},
                         {"numeric_precision", Kind::kInt32},
                         {"numeric_scale", Kind::kInt32}});
    captured.Text("id").Int(1).Int(1).Text("int").Int(10).Int(0);
    captured.Text("note").Int(2).Int(2).Text(server_.column_type).Null().Null();
    SetBuilder source({{"name", Kind::kUtf8},
                       {"column_id", Kind::kInt32},
                       {"is_computed", Kind::kBool}});
    source.Text("id").Int(1).Bool(false).Text("note").Int(2).Bool(false);
    SetBuilder changes({{"name", Kind::kUtf8}});
    changes.Text("__$start_lsn").Text("id").Text("note");
    if (server_.command_id) changes.Text("__$command_id");
    return {captured.Build(), source.Build(), changes.Build()};
  }
  ScriptedSet Commit(const std::function<bool(const cdc::Lsn&)>& taken,
                     std::size_t count_max) {
    SetBuilder set({{"lsn", columns::Kind::kBinary},
                    {"commit_time", columns::Kind::kTimestampNtz}});
    const ScriptedCommit* last = nullptr;
    for (const ScriptedCommit& commit : server_.commits) {
      if (count_max == 0 || !taken(ScriptedLsn(commit.lsn))) continue;
      last = &commit;
      --count_max;
    }
    if (last != nullptr) {
      set.LsnValue(ScriptedLsn(last->lsn)).Long(ScriptedTimeUs(last->lsn));
    }
    return set.Build();
  }
  ScriptedSet Newest() {
    return Commit([](const cdc::Lsn&) { return true; }, server_.commits.size());
  }
  ScriptedSet MinLsn() {
    SetBuilder set({{"min_lsn", columns::Kind::kBinary}});
    set.LsnValue(server_.first_lsn == 0 ? cdc::Lsn{} : ScriptedLsn(server_.first_lsn));
    return set.Build();
  }
  ScriptedSet TimeOf(const cdc::Lsn& lsn) {
    SetBuilder set({{"commit_time", columns::Kind::kTimestampNtz}});
    for (const ScriptedCommit& commit : server_.commits) {
      if (ScriptedLsn(commit.lsn) == lsn) set.Long(ScriptedTimeUs(commit.lsn));
    }
    return set.Build();
  }
  ScriptedSet Wait() {
    return SetBuilder({{"wait_ms", columns::Kind::kInt64}}).Long(7).Build();
  }
  std::vector<ScriptedSet> Poll(const sqlserver::Request& request) {
    using columns::Kind;
    const cdc::Lsn after = LsnOf(request, "@after");
    SetBuilder newest({{"lsn", Kind::kBinary},
                       {"commit_time", Kind::kTimestampNtz},
                       {"age_seconds", Kind::kInt32}});
    SetBuilder facts({{"oldest_lsn", Kind::kBinary},
                      {"position_time", Kind::kTimestampNtz},
                      {"offset_minutes", Kind::kInt32}});
    const std::vector<ScriptedCommit>& commits = server_.commits;
    if (commits.empty()) {
      facts.Null().Null().Int(0);
      return {newest.Build(), facts.Build()};
    }
    const std::uint8_t last = commits.back().lsn;
    newest.LsnValue(ScriptedLsn(last)).Long(ScriptedTimeUs(last)).Int(60);
    facts.LsnValue(ScriptedLsn(commits.front().lsn));
    const auto at = std::ranges::find_if(commits, [&](const ScriptedCommit& commit) {
      return ScriptedLsn(commit.lsn) == after;
    });
    if (at == commits.end()) {
      facts.Null();
    } else {
      facts.Long(ScriptedTimeUs(at->lsn));
    }
    facts.Int(0);
    std::vector<ScriptedSet> sets = {newest.Build(), facts.Build()};
    if (ScriptedLsn(last) <= after) return sets;
    sets.push_back(Instances());
    sets.push_back(
        SetBuilder({{"ddl_lsn", Kind::kBinary}, {"ddl_command", Kind::kUtf8}}).Build());
    if (request.sql.find("AS row_count") != std::string::npos) {
      sets.push_back(SetBuilder({{"row_count", Kind::kInt64}}).Long(1).Build());
    }
    const std::size_t limit = request.sql.rfind(") start_lsn AS lsn");
    if (limit > request.sql.find("IF EXISTS")) {
      const std::size_t digits = request.sql.rfind('(', limit) + 1;
      const auto count = static_cast<std::size_t>(NumberAt(request.sql, digits));
      sets.push_back(Commit([&](const cdc::Lsn& lsn) { return after < lsn; }, count));
    }
    return sets;
  }
  Result<std::unique_ptr<sqlserver::Reply>> ReadChanges(
      const sqlserver::Request& request) {
    using columns::Kind;
    const cdc::Lsn after = LsnOf(request, "@after");
    const cdc::Lsn through = LsnOf(request, "@through");
    std::vector<std::pair<std::string, Kind>> fields = {{"__$start_lsn", Kind::kBinary},
                                                        {"__$seqval", Kind::kBinary},
                                                        {"__$operation", Kind::kInt32}};
    if (server_.command_id) fields.emplace_back("__$command_id", Kind::kInt32);
    fields.emplace_back("commit_time", Kind::kTimestampNtz);
    fields.emplace_back("id", Kind::kInt32);
    fields.emplace_back("note", Kind::kUtf8);
    SetBuilder rows(fields);
    for (const ScriptedCommit& commit : server_.commits) {
      const cdc::Lsn lsn = ScriptedLsn(commit.lsn);
      if (lsn <= after || through < lsn) continue;
      std::int32_t command_id = 0;
      for (const ScriptedChange& change : commit.changes) {
        rows.LsnValue(lsn).LsnValue(lsn).Int(change.operation);
        if (server_.command_id) rows.Int(++command_id);
        rows.Long(ScriptedTimeUs(commit.lsn)).Int(change.id).Text(change.note);
      }
    }
    if (server_.before_after_read) server_.before_after_read();
    std::vector<ScriptedSet> sets = {rows.Build(), MinLsn(),
                                     TimeOf(ScriptedLsn(server_.first_lsn)), Newest()};
    if (request.sql.find("ASYNC_NETWORK_IO") != std::string::npos)
      sets.push_back(Wait());
    return Reply(std::move(sets));
  }
  ScriptedSet Extent() {
    SetBuilder set(
        {{"min_key", columns::Kind::kInt64}, {"max_key", columns::Kind::kInt64}});
    if (server_.table.empty()) {
      set.Null().Null();
    } else {
      set.Long(server_.table.begin()->first).Long(server_.table.rbegin()->first);
    }
    return set.Build();
  }
  // Understands "[id] > n" and "[id] <= n".
  ScriptedSet Table(const std::string& sql) {
    const auto bound = [&](std::string_view comparison, std::int64_t otherwise) {
      const std::size_t position = sql.find(comparison);
      if (position == std::string::npos) return otherwise;
      return NumberAt(sql, position + comparison.size());
    };
    const std::int64_t after = bound("[id] > ", INT64_MIN);
    const std::int64_t through = bound("[id] <= ", INT64_MAX);
    SetBuilder set({{"id", columns::Kind::kInt32}, {"note", columns::Kind::kUtf8}});
    for (const auto& [id, note] : server_.table) {
      if (id > after && id <= through) set.Int(id).Text(note);
    }
    return set.Build();
  }

  ScriptedServer& server_;
  sqlserver::ServerFacts facts_;
  bool clean_ = true;
  std::int64_t request_count_ = 0;
};

class ScriptedSessions final : public SessionSource {
 public:
  explicit ScriptedSessions(ScriptedServer& server) : server_(server) {}
  Result<std::unique_ptr<sqlserver::Session>> Open() override {
    ++server_.login_count;
    return std::unique_ptr<sqlserver::Session>(
        std::make_unique<ScriptedSession>(server_));
  }

 private:
  ScriptedServer& server_;
};

}  // namespace mssql_cdc::runtime
