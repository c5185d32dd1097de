// How values of one type compare, and what they have in a hash table.

#include <algorithm>
#include <cstring>

#include "sim/sql/convert.h"
#include "sim/sql/dates.h"
#include "sim/sql/decimals.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

int CompareBytes(const Bytes& a, const Bytes& b) {
  const std::size_t common = std::min(a.size(), b.size());
  const int order = common == 0 ? 0 : std::memcmp(a.data(), b.data(), common);
  if (order != 0) return order < 0 ? -1 : 1;
  // The shorter one counts as padded with zeros.
  const Bytes& longer = a.size() > b.size() ? a : b;
  for (std::size_t i = common; i < longer.size(); ++i) {
    if (longer[i] != 0) return &longer == &a ? 1 : -1;
  }
  return 0;
}

// Bytes 10 to 15 first, then group by group backwards, as SQL Server sorts them.
constexpr std::size_t kGuidOrder[] = {10, 11, 12, 13, 14, 15, 8, 9,
                                      7,  6,  5,  4,  3,  2,  1, 0};

int CompareVariants(const Value& a, const Value& b, const CollationRule& rule) {
  const SqlType& type_a = *a.variant_type;
  const SqlType& type_b = *b.variant_type;
  const SqlType& high =
      Precedence(type_a.id) >= Precedence(type_b.id) ? type_a : type_b;
  const auto family = [](TypeId id) {
    return IsDateTime(id) ? 6
           : IsNumber(id) ? 5
           : IsText(id)   ? 3
           : IsBinary(id) ? 2
                          : 1;
  };
  if (family(type_a.id) != family(type_b.id)) {
    return family(type_a.id) < family(type_b.id) ? -1 : 1;
  }
  const ConvertOptions options;
  const SqlType common = CommonType(type_a, type_b);
  return CompareValues(ConvertValue(a, type_a, common, options),
                       ConvertValue(b, type_b, common, options),
                       high.id == common.id ? common : high, rule);
}

}  // namespace

int CompareValues(const Value& a, const Value& b, const SqlType& type,
                  const CollationRule& rule) {
  const auto order = [](const auto& x, const auto& y) {
    return x < y ? -1 : y < x ? 1 : 0;
  };
  if (type.id == TypeId::kSqlVariant) {
    if (a.variant_type && b.variant_type) {
      Value inner_a = a, inner_b = b;
      return CompareVariants(inner_a, inner_b, rule);
    }
    return 0;
  }
  switch (a.held.index()) {
    case 1:
      return order(std::get<1>(a.held), std::get<1>(b.held));
    case 2:
      return order(std::get<2>(a.held), std::get<2>(b.held));
    case 3:
      return CompareDecimals(std::get<3>(a.held), std::get<3>(b.held));
    case 4: {
      const auto& x = std::get<4>(a.held);
      const auto& y = std::get<4>(b.held);
      const auto moment = [](const DateTimeValue& v) {
        return TotalTicks(v) - v.offset_minutes * __int128{kTicksPerMinute};
      };
      if (x.offset_minutes == 0 && y.offset_minutes == 0) {
        return x.days != y.days ? order(x.days, y.days) : order(x.ticks, y.ticks);
      }
      return order(moment(x), moment(y));
    }
    case 5:
      return CompareText(std::get<5>(a.held), std::get<5>(b.held), rule);
    case 6:
      return CompareBytes(std::get<6>(a.held), std::get<6>(b.held));
    case 7: {
      for (const std::size_t i : kGuidOrder) {
        const std::uint8_t x = std::get<7>(a.held).bytes[i];
        const std::uint8_t y = std::get<7>(b.held).bytes[i];
        if (x != y) return x < y ? -1 : 1;
      }
      return 0;
    }
    default:
      return 0;
  }
}

void AppendHashKey(const Value& value, const SqlType& type, const CollationRule& rule,
                   std::string& key) {
  const auto put = [&](const void* data, std::size_t size) {
    key.append(static_cast<const char*>(data), size);
  };
  const auto sized = [&](std::string_view part) {
    const std::size_t size = part.size();
    put(&size, sizeof size);
    key += part;
  };
  key += static_cast<char>(value.held.index());
  switch (value.held.index()) {
    case 1:
      put(&std::get<1>(value.held), 8);
      break;
    case 2: {
      const double number = std::get<2>(value.held) + 0.0;  // -0 equals 0.
      put(&number, 8);
      break;
    }
    case 3: {
      // Without trailing zeros, so that 1.0 equals 1.00.
      Decimal decimal = std::get<3>(value.held);
      while (decimal.scale > 0 && decimal.unscaled % 10 == 0) {
        decimal.unscaled /= 10;
        --decimal.scale;
      }
      put(&decimal.unscaled, 16);
      put(&decimal.scale, 1);
      break;
    }
    case 4: {
      const auto& date = std::get<4>(value.held);
      const __int128 moment =
          TotalTicks(date) - date.offset_minutes * __int128{kTicksPerMinute};
      put(&moment, 16);
      break;
    }
    case 5:
      sized(SortKey(std::get<5>(value.held), rule));
      break;
    case 6: {
      const Bytes& bytes = std::get<6>(value.held);
      std::size_t size = bytes.size();
      while (size > 0 && bytes[size - 1] == 0) --size;
      sized({reinterpret_cast<const char*>(bytes.data()), size});
      break;
    }
    case 7:
      put(std::get<7>(value.held).bytes, 16);
      break;
    default:
      break;
  }
  (void)type;
}

}  // namespace mssql_cdc::sim
