#include "cdc/key_types.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cdc {
namespace {

std::optional<KeyType> Bind(const char* type, std::int64_t max_length = 0,
                            std::int64_t precision = 0, std::int64_t scale = 0,
                            const char* collation = "") {
  return BindKey({"k", 1, type, {}, {}},
                 {"k", max_length, precision, scale, collation});
}

TEST(BindKey, AsTheColumnsOwnType) {
  const struct {
    const char* what;
    std::optional<KeyType> key;
    const char* sql_type;
    KeyForm form;
  } kRows[] = {
      {"int", Bind("int", 4, 10), "", KeyForm::kInteger},
      {"bigint", Bind("BIGINT", 8), "", KeyForm::kInteger},
      {"bit", Bind("bit", 1), "bit", KeyForm::kBool},
      {"float", Bind("float", 8, 53), "float", KeyForm::kReal},
      {"decimal", Bind("decimal", 9, 18, 4), "decimal(18, 4)", KeyForm::kDecimal},
      {"money", Bind("money", 8, 19, 4), "money", KeyForm::kDecimal},
      {"date", Bind("date", 3), "date", KeyForm::kDate},
      {"datetime", Bind("datetime", 8), "datetime", KeyForm::kMillis},
      {"smalldatetime", Bind("smalldatetime", 4), "smalldatetime", KeyForm::kMillis},
      {"datetime2", Bind("datetime2", 8, 27, 3), "datetime2(3)", KeyForm::kMicros},
      {"datetimeoffset", Bind("datetimeoffset", 10, 34, 0), "datetimeoffset(0)",
       KeyForm::kInstant},
      {"nvarchar", Bind("nvarchar", 80), "nvarchar(40)", KeyForm::kText},
      {"nvarchar(max)", Bind("nvarchar", -1), "nvarchar(max)", KeyForm::kText},
      {"varchar", Bind("varchar", 40, 0, 0, "Latin1_General_CI_AS"), "varchar(40)",
       KeyForm::kText},
      {"uniqueidentifier", Bind("uniqueidentifier", 16), "uniqueidentifier",
       KeyForm::kText},
      {"varbinary", Bind("varbinary", 16), "varbinary(16)", KeyForm::kBinary},
      {"rowversion", Bind("timestamp", 8), "binary(8)", KeyForm::kBinary},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.what);
    ASSERT_TRUE(row.key.has_value());
    EXPECT_EQ(row.key->sql_type, row.sql_type);
    EXPECT_EQ(row.key->form, row.form);
  }
  EXPECT_EQ(Bind("varchar", 40, 0, 0, "Thai_CI_AS")->collation, "Thai_CI_AS");
  EXPECT_FALSE(Bind("bit")->is_sortable);
}

TEST(BindKey, WhatHasNoFormInText) {
  for (const char* type : {"time", "xml", "text", "ntext", "image", "sql_variant",
                           "hierarchyid", "geometry"}) {
    EXPECT_FALSE(Bind(type).has_value()) << type;
  }
  EXPECT_FALSE(Bind("varchar", 40).has_value());
  EXPECT_FALSE(Bind("char", 40, 0, 0, "x; DROP TABLE t").has_value());
}

TEST(BindKeys, AMicrosecondThatIsCutOffMayOnlyComeLast) {
  const std::vector<CapturedColumn> captured = {{"At", 1, "datetime2", {}, {}},
                                                {"id", 2, "int", {}, {}}};
  const std::vector<ColumnDetail> details = {{"At", 8, 27, 7, ""},
                                             {"id", 4, 10, 0, ""}};
  EXPECT_EQ(BindKeys({"id", "at"}, captured, details).types.size(), 2u);
  EXPECT_EQ(BindKeys({"id", "at"}, captured, details).types[1].column, "At");
  EXPECT_EQ(BindKeys({"at", "id"}, captured, details).unbindable,
            (std::vector<std::string>{"at"}));
  EXPECT_EQ(BindKeys({"id", "gone"}, captured, details).unbindable,
            (std::vector<std::string>{"gone"}));
}

}  // namespace
}  // namespace mssql_cdc::cdc
