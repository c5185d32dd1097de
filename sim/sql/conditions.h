// Making conditions: what an expression takes over from its parts, and three-valued
// truth.

#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>

#include "sim/sql/binder.h"

namespace mssql_cdc::sim {

inline void AddSlots(const Bound& part, BoundExpression& whole) {
  if (!part) return;
  whole.slots.insert(whole.slots.end(), part->slots.begin(), part->slots.end());
  whole.is_volatile = whole.is_volatile || part->is_volatile;
}

inline Truth Not(Truth truth) {
  if (truth == Truth::kUnknown) return truth;
  return truth == Truth::kTrue ? Truth::kFalse : Truth::kTrue;
}
inline Truth Of(bool holds) { return holds ? Truth::kTrue : Truth::kFalse; }

inline Bound NewCondition(std::initializer_list<Bound> parts,
                          std::function<Truth(Context&)> test) {
  auto bound = std::make_shared<BoundExpression>();
  for (const Bound& part : parts) AddSlots(part, *bound);
  bound->test = std::move(test);
  return bound;
}

}  // namespace mssql_cdc::sim
