#include "sim/engine/behaviour.h"

#include <atomic>

namespace mssql_cdc::sim {
namespace {

constexpr int kNone = -1;
std::atomic<int> turned_off{kNone};

}  // namespace

bool Does(Behaviour behaviour) {
  return turned_off.load(std::memory_order_relaxed) != static_cast<int>(behaviour);
}

bool TurnOffForTest(std::string_view name) {
  for (const BehaviourRow& row : kBehaviours) {
    if (row.name != name) continue;
    turned_off = static_cast<int>(row.behaviour);
    return true;
  }
  return false;
}

}  // namespace mssql_cdc::sim
