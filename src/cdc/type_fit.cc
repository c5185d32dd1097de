#include "cdc/type_fit.h"

#include <optional>

namespace mssql_cdc::cdc {
namespace {

using columns::Kind;

struct IntegerRow {
  Kind kind;
  int rank;
  int digit_count;
};
constexpr IntegerRow kIntegers[] = {
    {Kind::kInt16, 1, 5}, {Kind::kInt32, 2, 10}, {Kind::kInt64, 3, 20}};

std::optional<IntegerRow> IntegerOf(const columns::Type& type) {
  for (const IntegerRow& row : kIntegers) {
    if (row.kind == type.kind) return row;
  }
  return std::nullopt;
}

}  // namespace

bool Fits(const columns::Type& from, const columns::Type& to) {
  if (from == to) return true;
  const std::optional<IntegerRow> integer = IntegerOf(from);
  const int before_point = static_cast<int>(to.precision) - static_cast<int>(to.scale);
  switch (to.kind) {
    case Kind::kInt32:
    case Kind::kInt64:
      return integer && integer->rank < IntegerOf(to)->rank;
    case Kind::kFloat64:
      return from.kind == Kind::kFloat32 || (integer && from.kind != Kind::kInt64);
    case Kind::kTimestampNtz:
      return from.kind == Kind::kDate32;
    case Kind::kDecimal128:
      if (integer) return before_point >= integer->digit_count;
      return from.kind == Kind::kDecimal128 && to.scale >= from.scale &&
             before_point >=
                 static_cast<int>(from.precision) - static_cast<int>(from.scale);
    case Kind::kBool:
    case Kind::kInt16:
    case Kind::kFloat32:
    case Kind::kDate32:
    case Kind::kTimestampUtc:
    case Kind::kUtf8:
    case Kind::kBinary:
      return false;
  }
  return false;
}

}  // namespace mssql_cdc::cdc
