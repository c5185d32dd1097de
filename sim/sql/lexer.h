// T-SQL text to tokens. Comments and blanks are dropped; brackets, quotes and prefixes
// are resolved. Raises 105 and 113 for text that does not end.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mssql_cdc::sim {

enum class TokenKind : std::uint8_t {
  kEnd,
  kWord,            // A keyword or a plain identifier.
  kQuotedName,      // [x] or "x"
  kString,          // 'x'
  kNationalString,  // N'x'
  kInteger,
  kDecimal,   // 1.5
  kFloat,     // 1e0
  kMoney,     // $1.5: `text` is without the sign.
  kBinary,    // 0x..: `text` is the digits.
  kVariable,  // @x
  kGlobal,    // @@x
  kSymbol,    // + <= ( ...
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;   // The name, the string's content, the digits, the symbol.
  std::string upper;  // Of kWord: upper case. Of kSymbol: the symbol.
  std::int32_t line = 1;
  std::size_t begin = 0;  // Byte offsets into the batch.
  std::size_t end = 0;
};

// Always ends with a kEnd token.
std::vector<Token> Tokenize(std::string_view sql, bool quoted_identifier);

// Words that cannot be names without brackets.
bool IsReservedWord(std::string_view upper);

}  // namespace mssql_cdc::sim
