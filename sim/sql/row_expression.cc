// BindRowExpression: defaults, CHECKs and computed columns over a table's row.

#include <algorithm>

#include "sim/sql/binder.h"
#include "sim/sql/interpreter.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

class BoundRowExpression final : public RowExpression {
 public:
  BoundRowExpression(const ast::ExpressionPtr& expression,
                     const std::vector<ColumnInfo>& columns,
                     const std::optional<SqlType>& target, Environment& environment)
      : expression_(expression), binder_(environment, session_, variables_) {
    // Its value may be asked for at different times: nothing is kept between rows.
    binder_.SetVariablesChange();
    Scope scope;
    auto table = std::make_shared<BoundTable>();
    for (const ColumnInfo& info : columns) {
      OutputColumn column;
      column.name = info.name;
      column.type = info.type;
      column.nullable = info.nullable;
      column.slot = binder_.NewSlot();
      table->columns.push_back(std::move(column));
    }
    table->used.assign(columns.size(), false);
    scope.tables.push_back(std::move(table));
    bound_ = binder_.Bind(expression, &scope);
    if (bound_->IsCondition()) {
      // A CHECK: its truth as a bit.
      const Bound condition = bound_;
      bound_ = std::make_shared<BoundExpression>();
      bound_->type = TypeOf(TypeId::kBit);
      bound_->evaluate = [condition](Context& context, Value& out) {
        const Truth truth = condition->test(context);
        out = Value();
        if (truth != Truth::kUnknown) out.held = std::int64_t{truth == Truth::kTrue};
      };
    } else if (target) {
      bound_ = binder_.Convert(bound_, *target);
    }
  }

  const SqlType& type() const override { return bound_->type; }
  bool nullable() const override { return bound_->nullable; }
  Value Evaluate(const Row& row) override {
    Context context = binder_.MakeContext();
    std::copy_n(row.begin(), std::min(row.size(), context.slots.size()),
                context.slots.begin());
    return bound_->Get(context);
  }

 private:
  ast::ExpressionPtr expression_;
  SessionState session_;
  VariableFrame variables_;
  Binder binder_;
  Bound bound_;
};

}  // namespace

std::unique_ptr<RowExpression> BindRowExpression(const ast::ExpressionPtr& expression,
                                                 const std::vector<ColumnInfo>& columns,
                                                 const std::optional<SqlType>& target,
                                                 Environment& environment) {
  return std::make_unique<BoundRowExpression>(expression, columns, target, environment);
}

}  // namespace mssql_cdc::sim
