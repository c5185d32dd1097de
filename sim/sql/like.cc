// LIKE and PATINDEX: whether a text matches a pattern.

#include "sim/sql/binder.h"

namespace mssql_cdc::sim {
namespace {

// [a-f], [^0-9]: whether `unit` is in the set that begins at `at`; moves past it.
bool InSet(char16_t unit, std::u16string_view pattern, std::size_t& at,
           const CollationRule& rule) {
  const auto compare = [&](char16_t a, char16_t b) {
    return CompareText({&a, 1}, {&b, 1}, rule);
  };
  bool negated = false;
  bool found = false;
  ++at;
  if (at < pattern.size() && pattern[at] == u'^') {
    negated = true;
    ++at;
  }
  for (bool first = true; at < pattern.size() && (first || pattern[at] != u']');
       first = false) {
    if (at + 2 < pattern.size() && pattern[at + 1] == u'-' && pattern[at + 2] != u']') {
      found = found ||
              (compare(unit, pattern[at]) >= 0 && compare(unit, pattern[at + 2]) <= 0);
      at += 3;
    } else {
      found = found || compare(unit, pattern[at]) == 0;
      ++at;
    }
  }
  if (at < pattern.size()) ++at;
  return found != negated;
}

}  // namespace

bool MatchesLike(std::u16string_view text, std::u16string_view pattern,
                 std::optional<char16_t> escape, const CollationRule& rule) {
  // The last %, and how much of the text it has swallowed so far.
  std::optional<std::size_t> star;
  std::size_t star_text = 0;
  std::size_t at = 0;
  std::size_t i = 0;
  for (;;) {
    bool matched = false;
    if (at < pattern.size() && pattern[at] == u'%' && pattern[at] != escape) {
      star = ++at;
      star_text = i;
      continue;
    }
    if (at == pattern.size() && i == text.size()) return true;
    // Blanks at the end of the text need no match.
    if (at == pattern.size() && text.find_first_not_of(u' ', i) == text.npos)
      return true;
    if (at < pattern.size() && i < text.size()) {
      std::size_t next = at;
      const char16_t unit = pattern[at];
      if (escape && unit == *escape && at + 1 < pattern.size()) {
        matched = CompareText(text.substr(i, 1), pattern.substr(at + 1, 1), rule) == 0;
        next = at + 2;
      } else if (unit == u'_') {
        matched = true;
        next = at + 1;
      } else if (unit == u'[') {
        matched = InSet(text[i], pattern, next, rule);
      } else {
        const char16_t a = text[i];
        matched = a == unit || CompareText({&a, 1}, {&unit, 1}, rule) == 0;
        // CompareText ignores blanks, which count here.
        if ((a == u' ') != (unit == u' ')) matched = false;
        next = at + 1;
      }
      if (matched) {
        at = next;
        ++i;
        continue;
      }
    }
    if (!star || star_text >= text.size()) return false;
    at = *star;
    i = ++star_text;
  }
}

}  // namespace mssql_cdc::sim
