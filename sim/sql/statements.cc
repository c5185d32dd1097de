#include "sim/sql/statements.h"

#include <map>

#include "sim/sql/identifier.h"
#include "sim/sql/row_writing.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

// The part UPDATE and DELETE have in common: which rows of which table.
class TargetRows {
 public:
  TargetRows(Binder& binder, const Run& run) : binder_(binder), run_(run) {}

  // The target may be an alias of FROM.
  void Bind(const ObjectName& target, const std::string& variable,
            const std::vector<ast::TableReferencePtr>& from,
            const ast::ExpressionPtr& where, Access access) {
    if (from.empty()) {
      source = FindTarget(target, variable, access, run_);
      ObjectName name = target;
      if (!variable.empty()) name.object = variable;
      from_ = binder_.BindTarget(source, name, "", scope);
      node_ = from_.get();
    } else {
      from_ = binder_.BindFrom(from, scope);
      node_ = FindNode(*from_, target, variable, run_);
      if (node_ == nullptr) {
        source = FindTarget(target, variable, access, run_);
        RaiseSql(
            4104, 16, 1,
            "The multi-part identifier \"" + target.Text() + "\" could not be bound.");
      }
      source = node_->source;
      // The right to change is asked for under the table's own name.
      if (variable.empty()) {
        FindTarget(node_->table->name, "", access, run_);
      }
    }
    row_id = std::make_shared<RowId>();
    node_->row_id = row_id;
    if (where) SplitConditions(binder_.BindCondition(where, &scope), conditions_);
  }

  void Plan() { plan_ = PlanFrom(*from_, conditions_, {}).op; }

  // Calls `each` once for every row of the target that qualifies.
  void ForEach(Context& context, std::uint64_t top, const std::function<void()>& each) {
    std::map<RowId, bool> seen;
    plan_->Open(context);
    while (seen.size() < top && plan_->Next(context)) {
      if (!seen.try_emplace(*row_id, true).second) continue;
      each();
    }
  }

  Scope scope;
  std::shared_ptr<TableSource> source;
  std::shared_ptr<RowId> row_id;

 private:
  static FromNode* FindNode(FromNode& node, const ObjectName& target,
                            const std::string& variable, const Run& run) {
    if (node.kind == FromNode::Kind::kJoin) {
      FromNode* left = FindNode(*node.left, target, variable, run);
      return left != nullptr ? left : FindNode(*node.right, target, variable, run);
    }
    if (node.kind != FromNode::Kind::kTable) return nullptr;
    const std::string& wanted = variable.empty() ? target.object : variable;
    const Environment& in = run.environment;
    const bool matches = SameIdentifier(node.table->alias, wanted, in) ||
                         SameIdentifier(node.table->name.object, wanted, in);
    return matches ? &node : nullptr;
  }

  Binder& binder_;
  const Run& run_;
  FromPtr from_;
  FromNode* node_ = nullptr;
  std::vector<Bound> conditions_;
  OperatorPtr plan_;
};

}  // namespace

std::vector<ResultColumn> ResultColumns(const std::vector<OutputColumn>& columns,
                                        Environment& environment) {
  std::vector<ResultColumn> result;
  for (const OutputColumn& column : columns) {
    ResultColumn shown{column.name, column.type, column.nullable, column.identity,
                       column.computed};
    if (IsText(shown.type.id) && shown.type.collation.empty()) {
      shown.type.collation = environment.database_collation();
    }
    result.push_back(std::move(shown));
  }
  return result;
}

std::int64_t RunSelect(const ast::Select& select, const Run& run) {
  Binder binder(run.environment, run.session, run.variables);
  const QueryPtr query = binder.BindSelect(select, nullptr);
  const std::optional<GrowingQuery> growing = query->Growing();
  OperatorPtr plan = query->Plan({}).op;
  const bool sends = !query->assigns_variables && run.sink != nullptr;
  if (sends) Check(run.sink->Columns(ResultColumns(query->columns, run.environment)));
  if (run.bind_only) return 0;
  Context context = binder.MakeContext();
  const std::int64_t limit = run.environment.settings().rowcount;
  if (sends && growing && limit == 0) {
    const auto sent = SendGrowing(*growing, query->columns, *plan, context, *run.sink);
    if (sent) return *sent;
  }
  plan->Open(context);
  Row row(query->columns.size());
  std::int64_t count = 0;
  while ((limit == 0 || count < limit) && plan->Next(context)) {
    ++count;
    if (!sends) continue;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::swap(row[i], context.slots[query->columns[i].slot]);
    }
    Check(run.sink->Row(row));
  }
  return count;
}

std::int64_t RunUpdate(const ast::Update& update, const Run& run) {
  Binder binder(run.environment, run.session, run.variables);
  binder.PushCommonTables(update.with);
  TargetRows rows(binder, run);
  rows.Bind(update.target, update.target_variable, update.from, update.where,
            Access::kUpdate);
  BoundAssignments assignments;
  assignments.Bind(update.assignments, *rows.source, rows.scope, binder);
  Output output(update.output, *rows.source, binder, run);
  rows.Plan();
  if (run.bind_only) return 0;
  Context context = binder.MakeContext();
  const std::uint64_t top = TopOf(update.top, binder, context);
  context.slots.resize(binder.slot_count());
  std::vector<std::pair<RowId, Row>> changes;
  rows.ForEach(context, top, [&] {
    changes.emplace_back(*rows.row_id, assignments.Evaluate(context));
  });
  UpdateRequest request;
  request.columns = assignments.columns;
  std::size_t at = 0;
  request.feed = [&](RowId& id, Row& row) {
    if (at == changes.size()) return false;
    id = changes[at].first;
    row = std::move(changes[at++].second);
    return true;
  };
  if (output.present()) {
    request.output = [&](const Row& deleted, const Row& inserted) {
      output.Add(context, &deleted, &inserted);
    };
  }
  output.Begin();
  const std::uint64_t count = rows.source->Update(request);
  output.End();
  return static_cast<std::int64_t>(count);
}

std::int64_t RunDelete(const ast::Delete& remove, const Run& run) {
  Binder binder(run.environment, run.session, run.variables);
  binder.PushCommonTables(remove.with);
  TargetRows rows(binder, run);
  rows.Bind(remove.target, remove.target_variable, remove.from, remove.where,
            Access::kDelete);
  Output output(remove.output, *rows.source, binder, run);
  rows.Plan();
  if (run.bind_only) return 0;
  Context context = binder.MakeContext();
  const std::uint64_t top = TopOf(remove.top, binder, context);
  context.slots.resize(binder.slot_count());
  std::vector<RowId> ids;
  rows.ForEach(context, top, [&] { ids.push_back(*rows.row_id); });
  DeleteRequest request;
  std::size_t at = 0;
  request.feed = [&](RowId& id) {
    if (at == ids.size()) return false;
    id = ids[at++];
    return true;
  };
  if (output.present()) {
    request.output = [&](const Row& deleted) {
      output.Add(context, &deleted, nullptr);
    };
  }
  output.Begin();
  const std::uint64_t count = rows.source->Delete(request);
  output.End();
  return static_cast<std::int64_t>(count);
}

}  // namespace mssql_cdc::sim
