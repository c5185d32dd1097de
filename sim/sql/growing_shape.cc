// Which queries only grow: told from FROM, WHERE, the select list and ORDER BY as they
// are bound.

#include <algorithm>
#include <utility>

#include "sim/sql/binder.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

// The tables of FROM: one, or two that are joined. Empty: it is something else.
std::vector<const FromNode*> TablesOf(const FromNode& from,
                                      std::vector<Bound>& conditions) {
  if (from.kind == FromNode::Kind::kTable) return {&from};
  const bool joins = from.kind == FromNode::Kind::kJoin &&
                     from.join == ast::JoinKind::kInner &&
                     from.left->kind == FromNode::Kind::kTable &&
                     from.right->kind == FromNode::Kind::kTable;
  if (!joins) return {};
  conditions.insert(conditions.end(), from.on.begin(), from.on.end());
  return {from.left.get(), from.right.get()};
}

class Recognition {
 public:
  Recognition(const FromNode& from, std::vector<Bound> conditions)
      : conditions_(std::move(conditions)) {
    tables_ = TablesOf(from, conditions_);
  }

  // The sources and what is asked of their LSNs.
  bool TakeConditions(GrowingQuery& query) {
    if (tables_.empty()) return false;
    for (const FromNode* table : tables_) {
      const std::vector<ColumnInfo>& columns = table->source->columns();
      if (columns.empty() || !IsBinary(columns[0].type.id)) return false;
      query.sources.push_back(table->source);
      query.shape += std::to_string(table->begin) + ' ';
    }
    bool joined = tables_.size() == 1;
    for (const Bound& condition : conditions_) {
      if (condition->shape != BoundExpression::Shape::kComparison) return false;
      const bool left = IsLsn(condition->left->slot);
      const bool right = IsLsn(condition->right->slot);
      if (left && right) {
        // Of one table with itself, the comparison says nothing about the other.
        joined = joined || (condition->comparison == Comparison::kEqual &&
                            *condition->left->slot != *condition->right->slot);
        if (condition->comparison != Comparison::kEqual) return false;
        continue;
      }
      if (left == right || !TakeBound(*condition, left, query)) return false;
    }
    return joined;
  }

  bool IsLsn(const std::optional<Slot>& slot) const {
    return slot && std::any_of(tables_.begin(), tables_.end(),
                               [&](const FromNode* t) { return t->begin == *slot; });
  }

 private:
  bool TakeBound(const BoundExpression& condition, bool left, GrowingQuery& query) {
    const Bound& value = left ? condition.right : condition.left;
    const bool constant = value->slots.empty() && !value->is_volatile;
    if (!constant || !IsBinary(condition.compared_type.id)) return false;
    query.bounds.push_back(
        {0, left ? condition.comparison : Mirrored(condition.comparison), value,
         condition.compared_type, condition.rule});
    return true;
  }

  std::vector<Bound> conditions_;
  std::vector<const FromNode*> tables_;
};

}  // namespace

std::optional<GrowingQuery> GrowingQueryOf(const FromNode& from,
                                           const std::vector<Bound>& conditions,
                                           const std::vector<Projection>& projections,
                                           const std::vector<WantedOrder>& order) {
  GrowingQuery query;
  Recognition recognition(from, conditions);
  if (!recognition.TakeConditions(query)) return std::nullopt;
  std::optional<std::size_t> lsn_index;
  // Output columns may be named in the order in their tables' place.
  const auto table_slot = [&projections](Slot slot) {
    for (const Projection& projection : projections) {
      if (projection.slot == slot) return *projection.expression->slot;
    }
    return slot;
  };
  for (std::size_t i = 0; i < projections.size(); ++i) {
    const std::optional<Slot>& slot = projections[i].expression->slot;
    if (!slot || *slot < from.begin || *slot >= from.end) return std::nullopt;
    if (recognition.IsLsn(slot)) lsn_index = i;
    query.shape += std::to_string(*slot) + ',';
  }
  if (!lsn_index) return std::nullopt;
  query.lsn_index = *lsn_index;
  for (const WantedOrder& item : order) {
    const Slot slot = table_slot(item.slot);
    const bool first = &item == &order.front();
    if (first && (item.descending || !recognition.IsLsn(slot))) return std::nullopt;
    query.shape += (item.descending ? 'd' : 'a') + std::to_string(slot);
  }
  return query;
}

}  // namespace mssql_cdc::sim
