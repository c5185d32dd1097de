// Columns, variables and the @@ functions: what a name in an expression means.

#include <algorithm>

#include "base/text.h"
#include "sim/sql/binder.h"
#include "sim/sql/identifier.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {

Bound Binder::ColumnOf(const Scope& scope, BoundTable& table, std::size_t column) {
  const OutputColumn& found = table.columns[column];
  table.used[column] = true;
  MarkRead(found.slot);
  if (scope.grouping == nullptr || scope.grouping->inside_aggregate) {
    return SlotReference(found);
  }
  for (const GroupKeySpec& key : scope.grouping->keys) {
    if (key.expression->slot != found.slot) continue;
    OutputColumn grouped = found;
    grouped.slot = key.slot;
    MarkRead(key.slot);
    return SlotReference(grouped);
  }
  const std::string owner = table.alias.empty() ? table.name.Text() : table.alias;
  const bool having = std::string_view(scope.clause) == "HAVING clause";
  const bool order = std::string_view(scope.clause) == "ORDER BY clause";
  RaiseSql(having  ? 8121
           : order ? 8127
                   : 8120,
           16, 1,
           "Column '" + owner + '.' + found.name + "' is invalid in the " +
               scope.clause +
               " because it is not contained in either an aggregate function or the "
               "GROUP BY clause.");
}

Bound Binder::BindColumn(const ast::ColumnReference& reference, const Scope* scope) {
  const std::string& name = reference.parts.back();
  std::string written;
  for (const std::string& part : reference.parts) {
    written += (written.empty() ? "" : ".") + part;
  }
  const std::size_t prefixes = reference.parts.size() - 1;
  const auto names_table = [&](const BoundTable& table) {
    if (prefixes == 0) return true;
    const std::string& last = reference.parts[prefixes - 1];
    if (!table.alias.empty()) {
      return prefixes == 1 &&
             (table.any_case ? EqualsIgnoringAsciiCase(table.alias, last)
                             : SameIdentifier(table.alias, last, environment_));
    }
    if (!SameIdentifier(table.name.object, last, environment_)) return false;
    if (prefixes == 1) return true;
    const std::string& schema = reference.parts[prefixes - 2];
    const std::string own = table.name.schema.empty() ? "dbo" : table.name.schema;
    return SameIdentifier(own, schema.empty() ? "dbo" : schema, environment_);
  };
  bool table_found = false;
  for (; scope != nullptr; scope = scope->outer) {
    BoundTable* found = nullptr;
    std::size_t index = 0;
    for (const auto& table : scope->tables) {
      if (!names_table(*table)) continue;
      table_found = table_found || prefixes > 0;
      for (std::size_t i = 0; i < table->columns.size(); ++i) {
        if (!SameIdentifier(table->columns[i].name, name, environment_)) continue;
        if (found != nullptr) {
          RaiseSql(209, 16, 1, "Ambiguous column name '" + name + "'.");
        }
        found = table.get();
        index = i;
      }
    }
    if (found != nullptr) return ColumnOf(*scope, *found, index);
    if (table_found) break;
  }
  if (prefixes == 0 || table_found) {
    RaiseSql(207, 16, 1, "Invalid column name '" + name + "'.");
  }
  RaiseSql(4104, 16, 1,
           "The multi-part identifier \"" + written + "\" could not be bound.");
}

Bound Binder::BindVariable(const ast::Variable& variable) {
  const auto at = variables_.values.find(variable.name);
  if (at == variables_.values.end() && variables_.undeclared != nullptr) {
    const Bound bound = Constant(TypeOf(TypeId::kNull), Value());
    bound->undeclared = variable.name;
    auto& all = *variables_.undeclared;
    const bool known = std::any_of(all.begin(), all.end(), [&](const auto& parameter) {
      return EqualsIgnoringAsciiCase(parameter.name, variable.name);
    });
    if (!known) all.push_back({variable.name, std::nullopt});
    return bound;
  }
  if (at == variables_.values.end()) {
    if (variables_.tables.contains(variable.name)) {
      RaiseSql(137, 16, 1,
               "Must declare the scalar variable \"" + variable.name + "\".");
    }
    RaiseSql(137, 15, 2, "Must declare the scalar variable \"" + variable.name + "\".");
  }
  auto bound = std::make_shared<BoundExpression>();
  bound->type = at->second.type;
  bound->evaluate = [held = &at->second](Context&, Value& out) { out = held->value; };
  return bound;
}

void Binder::SuggestType(const Bound& place, const SqlType& type) {
  if (place->undeclared.empty() || type.id == TypeId::kNull) return;
  for (UndeclaredParameter& parameter : *variables_.undeclared) {
    if (parameter.type || !EqualsIgnoringAsciiCase(parameter.name, place->undeclared)) {
      continue;
    }
    parameter.type = type;
  }
}

Bound Binder::BindGlobal(const ast::GlobalVariable& variable) {
  const std::string upper = UpperName(variable.name);
  auto bound = std::make_shared<BoundExpression>();
  bound->type = TypeOf(TypeId::kInt);
  bound->nullable = false;
  using Reader = std::int64_t (*)(Context&);
  Reader reader = nullptr;
  if (upper == "@@ROWCOUNT") {
    reader = [](Context& context) { return context.session.row_count; };
  } else if (upper == "@@ERROR") {
    reader = [](Context& context) -> std::int64_t {
      return context.session.error_number;
    };
  } else if (upper == "@@TRANCOUNT") {
    reader = [](Context& context) -> std::int64_t {
      return context.environment.transaction_count();
    };
  } else if (upper == "@@NESTLEVEL") {
    reader = [](Context& context) -> std::int64_t {
      return context.session.nest_level;
    };
  }
  if (reader != nullptr) {
    bound->evaluate = [reader](Context& context, Value& out) {
      out.held = reader(context);
    };
    return bound;
  }
  const auto value = environment_.GlobalVariable(upper);
  if (!value) {
    RaiseSql(137, 15, 2, "Must declare the scalar variable \"" + variable.name + "\".");
  }
  bound->type = value->type;
  bound->nullable = value->value.IsNull();
  bound->evaluate = [upper](Context& context, Value& out) {
    out = context.environment.GlobalVariable(upper)->value;
  };
  return bound;
}

}  // namespace mssql_cdc::sim
