#include "extension/batch_text.h"

#include <gtest/gtest.h>

namespace mssql_cdc::extension {
namespace {

using sqlserver::Parameter;
using sqlserver::Request;

TEST(BatchText, IsTheStatementOrACallWithLiterals) {
  using enum Parameter::Kind;
  const std::pair<Request, std::string> cases[] = {
      {{"SELECT 'a'", {}}, "SELECT 'a'"},
      {{"SELECT @n", {{"@n", kBigInt, std::nullopt, -7}}},
       "EXEC sp_executesql N'SELECT @n', N'@n bigint', @n = -7"},
      {{"SELECT 'x', @t, @b",
        {{"@t", kNVarChar, "it's \xC3\xA9", 0},
         {"@b", kVarBinary, std::string("\x00\xAF", 2), 0}}},
       "EXEC sp_executesql N'SELECT ''x'', @t, @b', N'@t nvarchar(max), @b "
       "varbinary(max)', @t = N'it''s \xC3\xA9', @b = 0x00AF"},
      {{"SELECT @l, @m",
        {{"@l", kBinary10, std::string(10, '\x01'), 0},
         {"@m", kNVarChar, std::nullopt, 0}}},
       "EXEC sp_executesql N'SELECT @l, @m', N'@l binary(10), @m nvarchar(max)', @l = "
       "0x01010101010101010101, @m = NULL"},
  };
  for (const auto& [request, text] : cases) EXPECT_EQ(BatchText(request), text);
}

}  // namespace
}  // namespace mssql_cdc::extension
