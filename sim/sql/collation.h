// Comparing text the way a collation does: case and accents as its name says (CI, CS,
// AI, AS, BIN, BIN2), trailing blanks ignored. Letters of the Latin, Greek and Cyrillic
// scripts are folded; the order of other characters is their code's.

#pragma once

#include <string>
#include <string_view>

namespace mssql_cdc::sim {

struct CollationRule {
  bool binary = false;
  bool ignores_case = true;
  bool ignores_accents = false;
  bool utf8 = false;
};

// Of a name such as "Latin1_General_100_CI_AS_SC_UTF8"; nullopt if there is no such
// collation (448).
bool IsCollation(std::string_view name);
CollationRule RuleOfCollation(std::string_view name);

// -1, 0, 1.
int CompareText(std::u16string_view a, std::u16string_view b,
                const CollationRule& rule);
// Bytes whose order and equality are those of the texts.
std::string SortKey(std::u16string_view text, const CollationRule& rule);

char16_t FoldCase(char16_t unit);    // To lower case.
char16_t UnfoldCase(char16_t unit);  // To upper case.
char16_t FoldAccent(char16_t unit);  // A lower or upper case letter without its accent.

}  // namespace mssql_cdc::sim
