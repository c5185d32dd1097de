#include "fake/answers.h"

#include <algorithm>
#include <concepts>
#include <optional>
#include <utility>
#include <variant>

#include "base/case_fold.h"
#include "base/text.h"
#include "fake/sql_types.h"
#include "fake/table_answers.h"
#include "sqlserver/question.h"

namespace mssql_cdc::fake {
namespace {

using columns::Field;
using columns::Kind;
using sqlserver::Question;
using Sets = std::vector<ResultSet>;

cdc::Lsn LsnOf(const sqlserver::LsnBytes& bytes) { return cdc::Lsn{bytes}; }

class Answers {
 public:
  Answers(const Files& files, std::int64_t row_count_max)
      : files_(files), row_count_max_(row_count_max), table_(files, row_count_max) {}

  Result<Sets> operator()(const Question::ServerClock&) const {
    AnswerTable table({Own("major_version", Kind::kInt32),
                       Own("engine_edition", Kind::kInt32),
                       Own("offset_minutes", Kind::kInt32)});
    // Of the first release that names its zone.
    return One(table.Int(16).Int(3).Int(0));
  }
  Result<Sets> operator()(const Question::ServerZone&) const {
    AnswerTable table({Own("zone", Kind::kUtf8)});
    return One(table.Text("UTC"));
  }
  Result<Sets> operator()(const Question::Instances&) const {
    Sets sets;
    TRY(AddInstances(nullptr, sets));
    return sets;
  }
  Result<Sets> operator()(const Question::Columns& asked) const;
  Result<Sets> operator()(const Question::NewestCommit&) const {
    TRY_ASSIGN(const std::vector<Commit> commits, files_.Mapping());
    Sets sets;
    TRY(AddCommit(commits.empty() ? nullptr : &commits.back(), sets));
    return sets;
  }
  Result<Sets> operator()(const Question::CommitTime& asked) const {
    TRY_ASSIGN(const std::vector<Commit> commits, files_.Mapping());
    const cdc::Lsn lsn = LsnOf(asked.lsn);
    const Commit* found = nullptr;
    for (const Commit& commit : commits) {
      if (commit.lsn == lsn || (asked.or_below && commit.lsn < lsn)) found = &commit;
    }
    Sets sets;
    TRY(AddTime(found, sets));
    return sets;
  }
  Result<Sets> operator()(const Question::MinLsn& asked) const {
    Sets sets;
    TRY(AddMinLsn(asked.capture_instance, sets));
    return sets;
  }
  Result<Sets> operator()(const sqlserver::PollQuestion& asked) const;
  Result<Sets> operator()(const sqlserver::ChangesQuestion& asked) const;
  Result<Sets> operator()(const sqlserver::TilesQuestion& asked) const;
  // What is asked of a table's own rows.
  template <typename What>
    requires std::invocable<const TableAnswers&, const What&>
  Result<Sets> operator()(const What& asked) const {
    return table_(asked);
  }

 private:
  static Result<Sets> One(AnswerTable& table) {
    TRY_ASSIGN(ResultSet set, table.Build());
    Sets sets;
    sets.push_back(std::move(set));
    return sets;
  }
  static Status Add(AnswerTable& table, Sets& sets) {
    TRY_ASSIGN(ResultSet set, table.Build());
    sets.push_back(std::move(set));
    return Unit{};
  }
  // At most one row: lsn, commit_time.
  static Status AddCommit(const Commit* commit, Sets& sets) {
    AnswerTable table(
        {Own("lsn", Kind::kBinary), Own("commit_time", Kind::kTimestampNtz)});
    if (commit != nullptr) table.LsnOf(commit->lsn).Long(commit->commit_us);
    return Add(table, sets);
  }
  static Status AddTime(const Commit* commit, Sets& sets) {
    AnswerTable table({Own("commit_time", Kind::kTimestampNtz)});
    if (commit != nullptr) table.Long(commit->commit_us);
    return Add(table, sets);
  }
  Status AddMinLsn(const std::string& capture_instance, Sets& sets) const {
    TRY_ASSIGN(const std::vector<Instance> instances, files_.Instances());
    const auto found = std::ranges::find(instances, capture_instance, &Instance::name);
    AnswerTable table({Own("min_lsn", Kind::kBinary)});
    found == instances.end() ? table.Null() : table.LsnOf(found->min_lsn);
    return Add(table, sets);
  }
  // As sys.sp_cdc_help_change_data_capture, of one table or of all.
  Status AddInstances(const std::string* only_table, Sets& sets) const;
  Status AddDdl(const std::string& capture_instance, Sets& sets) const;

  const Files& files_;
  std::int64_t row_count_max_;
  TableAnswers table_;
};

Status Answers::AddInstances(const std::string* only_table, Sets& sets) const {
  TRY_ASSIGN(const std::vector<Instance> instances, files_.Instances());
  AnswerTable answer(
      {Own("source_schema", Kind::kUtf8), Own("source_table", Kind::kUtf8),
       Own("capture_instance", Kind::kUtf8), Own("start_lsn", Kind::kBinary),
       Own("create_date", Kind::kTimestampNtz), Own("index_column_list", Kind::kUtf8)});
  for (const Instance& instance : instances) {
    if (only_table != nullptr && instance.table != *only_table) continue;
    TRY_ASSIGN(const Table table, files_.TableOf(instance.table));
    std::string keys;
    for (const std::string& key : table.keys) {
      keys += (keys.empty() ? "" : ", ") + sqlserver::QuoteName(key);
    }
    answer.Text("dbo").Text(instance.table).Text(instance.name);
    answer.LsnOf(instance.min_lsn).Long(instance.created_us);
    keys.empty() ? answer.Null() : answer.Text(keys);
  }
  return Add(answer, sets);
}

Status Answers::AddDdl(const std::string& capture_instance, Sets& sets) const {
  TRY_ASSIGN(const std::vector<Ddl> ddl, files_.DdlOf(capture_instance));
  AnswerTable table({Own("ddl_lsn", Kind::kBinary), Own("ddl_command", Kind::kUtf8)});
  for (const Ddl& entry : ddl) table.LsnOf(entry.lsn).Text(entry.command);
  return Add(table, sets);
}

Result<Sets> Answers::operator()(const Question::Columns& asked) const {
  TRY_ASSIGN(const std::vector<Instance> instances, files_.Instances());
  const auto instance =
      std::ranges::find(instances, asked.capture_instance, &Instance::name);
  if (instance == instances.end()) return Gone(asked.capture_instance);
  TRY_ASSIGN(const std::vector<Field> fields, FieldsOf(files_, instance->table));
  TRY_ASSIGN(const Table table, files_.TableOf(instance->table));
  const auto id_of = [&](const std::string& name) {
    const auto found = std::ranges::find_if(fields, [&](const Field& field) {
      return EqualsIgnoringCase(field.name, name);
    });
    return static_cast<std::int32_t>(found - fields.begin()) + 1;
  };
  AnswerTable captured(
      {Own("column_name", Kind::kUtf8), Own("column_id", Kind::kInt32),
       Own("column_ordinal", Kind::kInt32), Own("data_type", Kind::kUtf8),
       Own("numeric_precision", Kind::kInt32), Own("numeric_scale", Kind::kInt32)});
  AnswerTable changes({Own("name", Kind::kUtf8)});
  changes.Text("__$start_lsn").Text("__$command_id");
  std::int32_t ordinal = 0;
  for (const Field& field : instance->columns) {
    const SqlName name = SqlNameOf(field.type);
    captured.Text(field.name).Int(id_of(field.name)).Int(++ordinal).Text(name.type);
    name.precision ? captured.Int(*name.precision) : captured.Null();
    name.scale ? captured.Int(*name.scale) : captured.Null();
    changes.Text(field.name);
  }
  AnswerTable source({Own("name", Kind::kUtf8), Own("column_id", Kind::kInt32),
                      Own("is_computed", Kind::kBool)});
  for (const Field& field : fields) {
    const std::string lower = LowerCase(field.name);
    if (table.dropped.contains(lower)) continue;
    source.Text(field.name).Int(id_of(field.name)).Bool(table.computed.contains(lower));
  }
  Sets sets;
  TRY(Add(captured, sets));
  TRY(Add(source, sets));
  TRY(Add(changes, sets));
  return sets;
}

Result<Sets> Answers::operator()(const sqlserver::PollQuestion& asked) const {
  TRY_ASSIGN(const std::vector<Commit> commits, files_.Mapping());
  const cdc::Lsn after = LsnOf(asked.after);
  AnswerTable newest({Own("lsn", Kind::kBinary),
                      Own("commit_time", Kind::kTimestampNtz),
                      Own("age_seconds", Kind::kInt32)});
  AnswerTable facts({Own("oldest_lsn", Kind::kBinary),
                     Own("position_time", Kind::kTimestampNtz),
                     Own("offset_minutes", Kind::kInt32)});
  const auto above = std::ranges::upper_bound(commits, after, {}, &Commit::lsn);
  // Its history may be of any day: that is no capture job that stands still.
  if (!commits.empty()) {
    newest.LsnOf(commits.back().lsn).Long(commits.back().commit_us).Int(0);
    facts.LsnOf(commits.front().lsn);
  } else {
    facts.Null();
  }
  const bool is_at_commit = above != commits.begin() && std::prev(above)->lsn == after;
  is_at_commit ? facts.Long(std::prev(above)->commit_us) : facts.Null();
  facts.Int(0);
  Sets sets;
  TRY(Add(newest, sets));
  TRY(Add(facts, sets));
  if (above == commits.end()) return sets;
  TRY(AddInstances(&asked.source_table, sets));
  for (const std::string& instance : asked.capture_instances) {
    TRY(AddDdl(instance, sets));
  }
  if (asked.row_count_max) {
    TRY_ASSIGN(const std::vector<Change> changes,
               files_.Changes(asked.counted_instance));
    const auto count = std::ranges::count_if(
        changes, [&](const Change& change) { return after < change.lsn; });
    AnswerTable table({Own("row_count", Kind::kInt64)});
    table.Long(std::min<std::int64_t>(count, *asked.row_count_max));
    TRY(Add(table, sets));
  }
  if (asked.commit_count_max) {
    const Commit* last = nullptr;
    std::int64_t left = *asked.commit_count_max;
    for (auto commit = above; commit != commits.end() && left > 0; ++commit, --left) {
      if (asked.through_max && LsnOf(*asked.through_max) < commit->lsn) break;
      last = &*commit;
    }
    TRY(AddCommit(last, sets));
  }
  return sets;
}

Result<Sets> Answers::operator()(const sqlserver::ChangesQuestion& asked) const {
  TRY_ASSIGN(const std::vector<Instance> instances, files_.Instances());
  const auto instance =
      std::ranges::find(instances, asked.capture_instance, &Instance::name);
  if (instance == instances.end()) return Gone(asked.capture_instance);
  TRY_ASSIGN(const Table table, files_.TableOf(instance->table));
  std::vector<Field> own = {Own("__$start_lsn", Kind::kBinary),
                            Own("__$seqval", Kind::kBinary),
                            Own("__$operation", Kind::kInt32)};
  if (asked.command_id) own.push_back(Own("__$command_id", Kind::kInt32));
  own.push_back(Own("commit_time", Kind::kTimestampNtz));
  std::vector<Field> values;
  for (const sqlserver::SelectedColumn& column : asked.columns) {
    const auto known = std::ranges::find(instance->columns, column.name, &Field::name);
    if (known == instance->columns.end()) return Gone(column.name);
    const std::optional<columns::Type> type =
        column.cast_to.empty() ? known->type : TypeOfSql(column.cast_to);
    if (!type) return Gone(column.cast_to);
    values.push_back({column.name, *type, true, ""});
  }
  TRY_ASSIGN(const std::vector<Commit> commits, files_.Mapping());
  TRY_ASSIGN(const std::vector<Change> changes, files_.Changes(instance->name));
  const cdc::Lsn after = LsnOf(asked.after);
  const cdc::Lsn through = LsnOf(asked.through);
  AnswerTable rows(std::move(own), values, row_count_max_);
  for (const Change& change : changes) {
    if (change.lsn <= after || through < change.lsn) continue;
    const auto commit = std::ranges::lower_bound(commits, change.lsn, {}, &Commit::lsn);
    if (commit == commits.end() || commit->lsn != change.lsn) continue;
    rows.LsnOf(change.lsn).LsnOf(change.seqval).Int(change.operation);
    if (asked.command_id) rows.Int(change.command_id);
    rows.Long(commit->commit_us);
    for (const Field& field : values) {
      const bool is_computed = table.computed.contains(LowerCase(field.name));
      is_computed ? rows.Null() : rows.Value(ValueOf(change.row, field.name));
    }
  }
  Sets sets;
  TRY(Add(rows, sets));
  // What cleanup has done meanwhile: asked anew.
  TRY(AddMinLsn(asked.capture_instance, sets));
  TRY_ASSIGN(const std::vector<Commit> now, files_.Mapping());
  const auto min = std::ranges::find(now, instance->min_lsn, &Commit::lsn);
  TRY(AddTime(min == now.end() ? nullptr : &*min, sets));
  TRY(AddCommit(now.empty() ? nullptr : &now.back(), sets));
  return sets;
}

Result<Sets> Answers::operator()(const sqlserver::TilesQuestion& asked) const {
  TRY_ASSIGN(const std::vector<Change> changes, files_.Changes(asked.capture_instance));
  std::vector<cdc::Lsn> lsns;
  for (const Change& change : changes) {
    if (LsnOf(asked.after) < change.lsn && change.lsn <= LsnOf(asked.through)) {
      lsns.push_back(change.lsn);
    }
  }
  AnswerTable table({Own("last_lsn", Kind::kBinary), Own("row_count", Kind::kInt64)});
  // As NTILE: the first tiles take what does not divide.
  const auto row_count = static_cast<std::int64_t>(lsns.size());
  std::int64_t done = 0;
  for (std::int64_t tile = 0; tile < asked.tile_count && done < row_count; ++tile) {
    const std::int64_t size =
        row_count / asked.tile_count + (tile < row_count % asked.tile_count ? 1 : 0);
    done += size;
    if (size > 0) table.LsnOf(lsns[static_cast<std::size_t>(done - 1)]).Long(size);
  }
  return One(table);
}

}  // namespace

Result<Sets> AnswersTo(const Files& files, const sqlserver::Request& request,
                       std::int64_t row_count_max) {
  if (!request.question) {
    return Error(ErrorId::kPermissionDenied)
        .With("reason", "backend fake has no answer to this")
        .With("statement", request.sql.substr(0, 100));
  }
  return std::visit(Answers(files, row_count_max), request.question->what);
}

}  // namespace mssql_cdc::fake
