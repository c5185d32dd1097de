#include "sqlserver/key_spans.h"

#include <algorithm>
#include <limits>

#include "base/text.h"

namespace mssql_cdc::sqlserver {
namespace {

// Conditions on single columns; nullopt is one that never holds.
using Condition = std::optional<std::string>;

std::string Joined(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a + b;
  return a + " AND " + b;
}

constexpr char kAboveBigInt[] = "9223372036854775808";

// An integer as a literal of its own type: beyond int, T-SQL reads digits as numeric,
// and the column would be converted instead. Anything else is a text that the server
// fails to convert: it is never part of the statement.
std::string IntegerLiteral(const std::string& digits) {
  const std::optional<std::int64_t> value = ParseInt64(digits);
  if (digits == kAboveBigInt) return digits;
  if (!value) return "CAST(N'not a whole number' AS bigint)";
  const bool is_int = *value >= std::numeric_limits<std::int32_t>::min() &&
                      *value <= std::numeric_limits<std::int32_t>::max();
  return is_int ? digits : "CAST(" + digits + " AS bigint)";
}

// One bound's side of the comparisons.
class Side {
 public:
  Side(const std::vector<KeyColumn>& keys, const KeyBound& bound, const char* prefix,
       std::vector<Parameter>& parameters)
      : keys_(keys), bound_(bound), prefix_(prefix), parameters_(parameters) {}

  bool IsNull(std::size_t i) const { return !bound_[i].has_value(); }

  std::string Equal(std::size_t i) {
    return Name(i) + (IsNull(i) ? " IS NULL" : " = " + Value(i));
  }
  std::string Above(std::size_t i) {
    return Name(i) + (IsNull(i) ? " IS NOT NULL" : " > " + Value(i));
  }
  std::string AtLeast(std::size_t i) {
    return IsNull(i) ? "" : Name(i) + " >= " + Value(i);
  }
  // Without NULLs: something else of the condition keeps them out.
  Condition BelowNotNull(std::size_t i) {
    if (IsNull(i)) return std::nullopt;
    return Name(i) + " < " + Value(i);
  }
  Condition Below(std::size_t i) {
    if (IsNull(i)) return std::nullopt;
    return "(" + Name(i) + " < " + Value(i) + " OR " + Name(i) + " IS NULL)";
  }
  std::string EqualBefore(std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all = Joined(all, Equal(i));
    return all;
  }
  // All columns from `first` on, as one key, below this bound's.
  Condition TailBelow(std::size_t first) {
    Condition tail;
    for (std::size_t i = keys_.size(); i-- > first;) {
      const Condition below = Below(i);
      if (i + 1 == keys_.size()) {
        tail = below;
        continue;
      }
      Condition equal;
      if (tail) equal = "(" + Equal(i) + " AND " + *tail + ")";
      if (below && equal) {
        tail = "(" + *below + " OR " + *equal + ")";
      } else {
        tail = below ? below : equal;
      }
    }
    return tail;
  }

 private:
  std::string Name(std::size_t i) const { return QuoteName(keys_[i].name); }

  std::string Value(std::size_t i) {
    const KeyColumn& key = keys_[i];
    if (key.sql_type.empty()) return IntegerLiteral(*bound_[i]);
    const std::string name = prefix_ + std::to_string(i);
    const bool is_known =
        std::any_of(parameters_.begin(), parameters_.end(),
                    [&](const Parameter& parameter) { return parameter.name == name; });
    if (!is_known) {
      parameters_.push_back({name, Parameter::Kind::kNVarChar, *bound_[i], 0});
    }
    if (key.is_binary) return "CONVERT(" + key.sql_type + ", " + name + ", 1)";
    const std::string collate =
        key.collation.empty() ? "" : " COLLATE " + key.collation;
    return "CAST(" + name + collate + " AS " + key.sql_type + ")";
  }

  const std::vector<KeyColumn>& keys_;
  const KeyBound& bound_;
  const std::string prefix_;
  std::vector<Parameter>& parameters_;
};

void Add(std::vector<std::string>& pieces, const std::string& prefix,
         const Condition& condition) {
  if (condition) pieces.push_back(Joined(prefix, *condition));
}

std::vector<std::string> PiecesBelow(Side& hi, std::size_t count) {
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < count; ++i) {
    Add(pieces, hi.EqualBefore(i), hi.Below(i));
  }
  return pieces;
}

std::vector<std::string> PiecesAbove(Side& lo, std::size_t count, FirstKey first) {
  std::vector<std::string> pieces;
  for (std::size_t i = count; i-- > 0;) {
    const bool is_last = i + 1 == count;
    pieces.push_back(Joined(lo.EqualBefore(i), is_last && first == FirstKey::kIncluded
                                                   ? lo.AtLeast(i)
                                                   : lo.Above(i)));
  }
  return pieces;
}

// `same` leading columns have one value in both bounds. The outer pieces also say what
// follows from the bounds' order, and then holds nowhere if the server takes the first
// differing column's values for equal: what is between them is the lower pieces' then.
std::vector<std::string> PiecesBetween(Side& lo, Side& hi, std::size_t same,
                                       std::size_t count) {
  std::vector<std::string> pieces;
  const std::string shared = lo.EqualBefore(same);
  if (same + 1 == count) {
    const Condition below = lo.IsNull(same) ? hi.Below(same) : hi.BelowNotNull(same);
    Add(pieces, Joined(shared, lo.AtLeast(same)), below);
    return pieces;
  }
  const Condition below_hi = hi.TailBelow(same);
  for (std::size_t i = count; i-- > same + 1;) {
    const std::string above = i + 1 == count ? lo.AtLeast(i) : lo.Above(i);
    Add(pieces, Joined(lo.EqualBefore(i), above), below_hi);
  }
  Add(pieces, Joined(shared, lo.Above(same)), hi.BelowNotNull(same));
  for (std::size_t i = same + 1; i < count; ++i) {
    Add(pieces, Joined(hi.EqualBefore(i), lo.Above(same)), hi.Below(i));
  }
  return pieces;
}

}  // namespace

std::vector<std::string> PiecesOf(const std::vector<KeyColumn>& keys,
                                  const KeySpan& span, FirstKey first,
                                  std::vector<Parameter>& parameters) {
  const std::size_t count = keys.size();
  const KeyBound none;
  Side lo(keys, span.lo ? *span.lo : none, "@lo", parameters);
  Side hi(keys, span.hi ? *span.hi : none, "@hi", parameters);
  if (!span.lo && !span.hi) return {""};
  if (!span.lo) return PiecesBelow(hi, count);
  if (!span.hi) return PiecesAbove(lo, count, first);
  std::size_t same = 0;
  while (same < count && (*span.lo)[same] == (*span.hi)[same]) ++same;
  if (same == count) return {};
  return PiecesBetween(lo, hi, same, count);
}

}  // namespace mssql_cdc::sqlserver
