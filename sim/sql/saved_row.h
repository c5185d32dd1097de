// The slots of one side of a plan, put away and brought back as a row.

#pragma once

#include <vector>

#include "sim/sql/bound.h"

namespace mssql_cdc::sim {

inline bool AllHold(const std::vector<Bound>& conditions, Context& context) {
  for (const Bound& condition : conditions) {
    if (condition->test(context) != Truth::kTrue) return false;
  }
  return true;
}

inline Row Save(const std::vector<Slot>& slots, Context& context) {
  Row row;
  row.reserve(slots.size());
  for (const Slot slot : slots) row.push_back(context.slots[slot]);
  return row;
}

inline void Restore(const std::vector<Slot>& slots, const Row& row, Context& context) {
  for (std::size_t i = 0; i < slots.size(); ++i) context.slots[slots[i]] = row[i];
}

inline void SetNull(const std::vector<Slot>& slots, Context& context) {
  for (const Slot slot : slots) context.slots[slot] = Value();
}

}  // namespace mssql_cdc::sim
