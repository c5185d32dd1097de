// MERGE: the source joined to the target, then one action for each row.

#include <algorithm>
#include <map>

#include "sim/sql/row_writing.h"
#include "sim/sql/written_columns.h"

namespace mssql_cdc::sim {
namespace {

class Merger {
 public:
  Merger(const ast::Merge& merge, const Run& run)
      : merge_(merge),
        run_(run),
        binder_(run.environment, run.session, run.variables) {}

  std::int64_t Run() {
    Bind();
    Output output(merge_.output, *target_, binder_, run_);
    OperatorPtr plan = PlanFrom(*from_, {}, {}).op;
    if (run_.bind_only) return 0;
    Context context = binder_.MakeContext();
    Decide(*plan, context);
    output.Begin();
    const std::uint64_t count = Apply(output, context);
    output.End();
    return static_cast<std::int64_t>(count);
  }

 private:
  struct Action {
    const ast::MergeAction* node;
    Bound condition;
    BoundAssignments assignments;
    std::vector<std::size_t> insert_columns;
    std::vector<Bound> insert_values;
    std::vector<std::pair<RowId, Row>> updates;
    std::vector<Row> inserts;
    std::vector<RowId> deletes;
  };

  void Bind() {
    binder_.PushCommonTables(merge_.with);
    from_ = std::make_unique<FromNode>();
    from_->kind = FromNode::Kind::kJoin;
    from_->join = ast::JoinKind::kLeft;
    from_->left = binder_.BindFrom({merge_.source}, scope_);
    target_ = FindTarget(merge_.target, "", Access::kUpdate, run_);
    from_->right =
        binder_.BindTarget(target_, merge_.target, merge_.target_alias, scope_);
    from_->begin = from_->left->begin;
    from_->end = from_->right->end;
    row_id_ = std::make_shared<RowId>();
    from_->right->row_id = row_id_;
    SplitConditions(binder_.BindCondition(merge_.on, &scope_), from_->on);
    for (const ast::MergeAction& node : merge_.actions) {
      if (node.when == ast::MergeAction::When::kNotMatchedBySource) {
        RaiseSql(102, 15, 1, "Incorrect syntax near 'SOURCE'.");
      }
      Action action{&node, nullptr, {}, {}, {}, {}, {}, {}};
      if (node.condition) {
        action.condition = binder_.BindCondition(node.condition, &scope_);
      }
      action.assignments.Bind(node.assignments, *target_, scope_, binder_);
      BindInsert(node, action);
      actions_.push_back(std::move(action));
    }
  }

  void BindInsert(const ast::MergeAction& node, Action& action) {
    if (node.when != ast::MergeAction::When::kNotMatched) return;
    std::vector<std::size_t> columns;
    for (const std::string& name : node.insert_columns) {
      columns.push_back(ColumnIndex(*target_, name, run_.environment));
      CheckAssignable(target_->columns()[columns.back()]);
    }
    for (std::size_t i = 0;
         node.insert_columns.empty() && i < target_->columns().size(); ++i) {
      const ColumnInfo& column = target_->columns()[i];
      if (!column.identity && !column.computed) columns.push_back(i);
    }
    if (columns.size() != node.insert_values.size()) {
      RaiseSql(213, 16, 1,
               "Column name or number of supplied values does not match table "
               "definition.");
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (std::holds_alternative<ast::DefaultKeyword>(node.insert_values[i]->node)) {
        continue;
      }
      action.insert_columns.push_back(columns[i]);
      action.insert_values.push_back(
          Assigned(binder_, binder_.Bind(node.insert_values[i], &scope_),
                   target_->columns()[columns[i]], target_->name()));
    }
  }

  // Reads everything before the first change.
  void Decide(Operator& plan, Context& context) {
    std::map<RowId, bool> touched;
    plan.Open(context);
    while (plan.Next(context)) {
      const bool matched =
          std::all_of(from_->on.begin(), from_->on.end(), [&](const Bound& condition) {
            return condition->test(context) == Truth::kTrue;
          });
      for (Action& action : actions_) {
        const bool wants = action.node->when == ast::MergeAction::When::kMatched;
        if (wants != matched) continue;
        if (action.condition && action.condition->test(context) != Truth::kTrue)
          continue;
        if (matched && !touched.try_emplace(*row_id_, true).second) {
          RaiseSql(
              8672, 16, 1,
              "The MERGE statement attempted to UPDATE or DELETE the same row more "
              "than once. This happens when a target row matches more than one "
              "source row.");
        }
        Note(action, context);
        break;
      }
    }
  }

  void Note(Action& action, Context& context) {
    if (action.node->when == ast::MergeAction::When::kNotMatched) {
      Row row;
      for (const Bound& value : action.insert_values)
        row.push_back(value->Get(context));
      action.inserts.push_back(std::move(row));
    } else if (action.node->remove) {
      action.deletes.push_back(*row_id_);
    } else {
      action.updates.emplace_back(*row_id_, action.assignments.Evaluate(context));
    }
  }

  std::uint64_t Apply(Output& output, Context& context) {
    std::uint64_t count = 0;
    for (Action& action : actions_) {
      std::size_t at = 0;
      UpdateRequest update;
      update.of_merge = true;
      update.columns = action.assignments.columns;
      update.feed = [&](RowId& id, Row& row) {
        if (at == action.updates.size()) return false;
        id = action.updates[at].first;
        row = std::move(action.updates[at++].second);
        return true;
      };
      DeleteRequest remove;
      remove.feed = [&](RowId& id) {
        if (at == action.deletes.size()) return false;
        id = action.deletes[at++];
        return true;
      };
      InsertRequest insert;
      insert.columns = action.insert_columns;
      insert.feed = [&](Row& row) {
        if (at == action.inserts.size()) return false;
        row = std::move(action.inserts[at++]);
        return true;
      };
      if (output.present()) {
        update.output = [&](const Row& deleted, const Row& inserted) {
          output.Add(context, &deleted, &inserted);
        };
        remove.output = [&](const Row& row) { output.Add(context, &row, nullptr); };
        insert.output = [&](const Row& row) { output.Add(context, nullptr, &row); };
      }
      if (!action.updates.empty()) count += target_->Update(update);
      if (!action.deletes.empty()) count += target_->Delete(remove);
      if (!action.inserts.empty()) count += target_->Insert(insert);
    }
    return count;
  }

  const ast::Merge& merge_;
  const struct Run& run_;
  Binder binder_;
  Scope scope_;
  FromPtr from_;
  std::shared_ptr<TableSource> target_;
  std::shared_ptr<RowId> row_id_;
  std::vector<Action> actions_;
};

}  // namespace

std::int64_t RunMerge(const ast::Merge& merge, const Run& run) {
  return Merger(merge, run).Run();
}

}  // namespace mssql_cdc::sim
