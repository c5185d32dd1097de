#include "sim/sql/collation.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "sim/wire/collation.h"

namespace mssql_cdc::sim {
namespace {

// Base letters of U+00C0 to U+017F; '\0' where the letter is its own.
constexpr char kLatin1Base[] =
    "AAAAAA\0CEEEEIIII\0NOOOOO\0OUUUUY\0\0aaaaaa\0ceeeeiiii\0nooooo\0ouuuuy\0y";
constexpr char kExtendedBase[] =
    "AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiI\0\0\0JjKk\0LlLlLlLlLlNnNnNn\0\0"
    "\0"
    "OoOoOo\0\0RrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZz\0";

std::u16string_view WithoutTrailingBlanks(std::u16string_view text) {
  while (!text.empty() && text.back() == u' ') text.remove_suffix(1);
  return text;
}

// Other signs before digits before letters, as Windows collations order them.
std::uint32_t PrimaryWeight(char16_t unit) {
  const char16_t folded = FoldAccent(FoldCase(unit));
  const std::uint32_t value = folded;
  if (folded >= u'0' && folded <= u'9') return 0x10000 + value;
  const bool letter = (folded >= u'a' && folded <= u'z') || folded >= 0xC0;
  return (letter ? 0x20000 : 0) + value;
}

int Sign(std::int64_t difference) {
  return difference < 0 ? -1 : difference > 0 ? 1 : 0;
}

std::uint32_t AccentWeight(char16_t unit) {
  const char16_t folded = FoldCase(unit);
  return folded == FoldAccent(folded) ? 0 : folded;
}

// Lower case sorts before upper case.
std::uint32_t CaseWeight(char16_t unit) { return FoldCase(unit) == unit ? 0 : 1; }

}  // namespace

bool IsCollation(std::string_view name) {
  return wire::FindCollation(name).has_value();
}

CollationRule RuleOfCollation(std::string_view name) {
  const std::string lower = LowerAscii(name) + '_';
  const auto has = [&](std::string_view part) {
    return lower.find(part) != std::string::npos;
  };
  CollationRule rule;
  rule.binary = has("_bin_") || has("_bin2_");
  rule.ignores_case = !has("_cs_");
  rule.ignores_accents = has("_ai_");
  rule.utf8 = has("_utf8_");
  return rule;
}

char16_t FoldCase(char16_t unit) {
  if (unit < 0x80) return unit >= u'A' && unit <= u'Z' ? char16_t(unit + 32) : unit;
  if (unit >= 0xC0 && unit <= 0xDE && unit != 0xD7) return char16_t(unit + 32);
  if (unit == 0x178) return 0xFF;
  if ((unit >= 0x100 && unit <= 0x137) || (unit >= 0x14A && unit <= 0x177)) {
    return char16_t(unit | 1);
  }
  if ((unit >= 0x139 && unit <= 0x148) || (unit >= 0x179 && unit <= 0x17E)) {
    return unit % 2 == 1 ? char16_t(unit + 1) : unit;
  }
  if (unit >= 0x391 && unit <= 0x3A9 && unit != 0x3A2) return char16_t(unit + 32);
  if (unit >= 0x410 && unit <= 0x42F) return char16_t(unit + 32);
  if (unit >= 0x400 && unit <= 0x40F) return char16_t(unit + 80);
  return unit;
}

char16_t UnfoldCase(char16_t unit) {
  if (unit < 0x80) return unit >= u'a' && unit <= u'z' ? char16_t(unit - 32) : unit;
  if (unit >= 0xE0 && unit <= 0xFE && unit != 0xF7) return char16_t(unit - 32);
  if (unit == 0xFF) return 0x178;
  if ((unit >= 0x100 && unit <= 0x137) || (unit >= 0x14A && unit <= 0x177)) {
    return char16_t(unit & ~1);
  }
  if ((unit >= 0x139 && unit <= 0x148) || (unit >= 0x179 && unit <= 0x17E)) {
    return unit % 2 == 0 ? char16_t(unit - 1) : unit;
  }
  if (unit >= 0x3B1 && unit <= 0x3C9 && unit != 0x3C2) return char16_t(unit - 32);
  if (unit >= 0x430 && unit <= 0x44F) return char16_t(unit - 32);
  if (unit >= 0x450 && unit <= 0x45F) return char16_t(unit - 80);
  return unit;
}

char16_t FoldAccent(char16_t unit) {
  if (unit >= 0xC0 && unit <= 0xFF) {
    const char base = kLatin1Base[unit - 0xC0];
    return base == '\0' ? unit : static_cast<char16_t>(base);
  }
  if (unit >= 0x100 && unit < 0x17F) {
    const char base = kExtendedBase[unit - 0x100];
    return base == '\0' ? unit : static_cast<char16_t>(base);
  }
  return unit;
}

int CompareText(std::u16string_view a, std::u16string_view b,
                const CollationRule& rule) {
  a = WithoutTrailingBlanks(a);
  b = WithoutTrailingBlanks(b);
  const std::size_t common = std::min(a.size(), b.size());
  const auto size_a = static_cast<std::int64_t>(a.size());
  const auto size_b = static_cast<std::int64_t>(b.size());
  if (rule.binary) {
    for (std::size_t i = 0; i < common; ++i) {
      if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    }
    return Sign(size_a - size_b);
  }
  int accent = 0;
  int letter_case = 0;
  for (std::size_t i = 0; i < common; ++i) {
    if (a[i] == b[i]) continue;
    const std::int64_t primary =
        std::int64_t{PrimaryWeight(a[i])} - std::int64_t{PrimaryWeight(b[i])};
    if (primary != 0) return Sign(primary);
    if (accent == 0) {
      accent =
          Sign(std::int64_t{AccentWeight(a[i])} - std::int64_t{AccentWeight(b[i])});
    }
    if (letter_case == 0) {
      letter_case =
          Sign(std::int64_t{CaseWeight(a[i])} - std::int64_t{CaseWeight(b[i])});
    }
  }
  if (size_a != size_b) return Sign(size_a - size_b);
  if (accent != 0 && !rule.ignores_accents) return accent;
  return rule.ignores_case ? 0 : letter_case;
}

std::string SortKey(std::u16string_view text, const CollationRule& rule) {
  text = WithoutTrailingBlanks(text);
  std::string key;
  const auto put = [&](std::uint32_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
      key += static_cast<char>((value >> shift) & 0xFF);
    }
  };
  if (rule.binary) {
    for (const char16_t unit : text) put(unit, 2);
    return key;
  }
  // Plus one, so that the end of a level is below every weight.
  for (const char16_t unit : text) put(PrimaryWeight(unit) + 1, 3);
  put(0, 3);
  if (!rule.ignores_accents) {
    for (const char16_t unit : text) put(AccentWeight(unit), 2);
  }
  if (!rule.ignores_case) {
    for (const char16_t unit : text) put(CaseWeight(unit), 1);
  }
  return key;
}

}  // namespace mssql_cdc::sim
