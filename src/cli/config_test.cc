#include "cli/config.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cli {
namespace {

constexpr char kFile[] = R"(
[source]
connectionString = "Server=localhost,1433;Database=shop"
user = "cdc_reader"
password = { env = "SHOP_PASSWORD" }
[catalog]
"bronze.orders" = "lake/bronze/orders"
[[stream]]
captureInstance = "dbo_orders"
target = "bronze.orders"
APP_ID = "orders-v1"
bootstrap = true
maxcommitsperbatch = 500
[[stream]]
captureInstance = "dbo_lines"
User = "other"
)";

Surroundings Fixed() {
  return {[](const std::string& name) -> std::optional<std::string> {
            if (name == "SHOP_PASSWORD") return "hunter2-canary";
            return std::nullopt;
          },
          [](const std::string& path) -> Result<std::string> {
            if (path == "/etc/secret") return std::string("from-file\r\n");
            return Error(ErrorId::kFileFailed).With("file", path);
          }};
}

TEST(Config, SourceIsTheDefaultOfEveryStreamAndNamesIgnoreCase) {
  const auto file = ParsePipeline(kFile, "pipeline.toml", "/base", Fixed());
  ASSERT_TRUE(file.ok()) << file.error().Text();
  ASSERT_EQ(file.value().streams.size(), 2u);
  const StreamSettings& orders = file.value().streams[0];
  EXPECT_EQ(orders.options.at("APP_ID"), "orders-v1");
  EXPECT_EQ(orders.options.at("bootstrap"), "true");
  EXPECT_EQ(orders.options.at("maxcommitsperbatch"), "500");
  EXPECT_EQ(orders.options.at("user"), "cdc_reader");
  EXPECT_EQ(orders.password->Reveal(), "hunter2-canary");
  EXPECT_EQ(file.value().streams[1].options.count("User"), 1u);
  EXPECT_EQ(file.value().streams[1].options.count("user"), 0u);
  EXPECT_EQ(file.value().catalog.at("bronze.orders"), "lake/bronze/orders");
  EXPECT_EQ(Absolute("s3://b/t", "/base"), "s3://b/t");
}

TEST(Config, ASecretInTheFileItselfIsWarnedOf) {
  const auto file =
      ParsePipeline("[[stream]]\npassword=\"canary\"\n", "p", "", Fixed());
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file.value().warnings.size(), 1u);
  EXPECT_EQ(file.value().warnings[0].find("canary"), std::string::npos);
}

TEST(Config, ASecretMayBeInAFile) {
  const auto file = ParsePipeline(
      "[[stream]]\ncaptureInstance=\"a\"\npassword={file=\"/etc/secret\"}\n", "p", "",
      Fixed());
  ASSERT_TRUE(file.ok()) << file.error().Text();
  EXPECT_EQ(file.value().streams[0].password->Reveal(), "from-file");
}

TEST(Config, AListOfStringsIsJson) {
  const auto file = ParsePipeline("[[stream]]\ncaptureInstances=[\"a_*\", 'b \"c']\n",
                                  "p", "", Fixed());
  ASSERT_TRUE(file.ok()) << file.error().Text();
  EXPECT_EQ(file.value().streams[0].options.at("captureInstances"),
            R"(["a_*","b \"c"])");
  const auto mixed = ParsePipeline("[[stream]]\nkeys=[\"a\", 1]\n", "p", "", Fixed());
  ASSERT_FALSE(mixed.ok());
  EXPECT_EQ(mixed.error().id(), ErrorId::kOptionInvalid);
}

TEST(Config, AFolderIsNoFile) {
  const auto text = RealSurroundings().read_file(testing::TempDir());
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().id(), ErrorId::kFileFailed);
}

TEST(Config, EachFaultNamesItsPlace) {
  struct Case {
    const char* name;
    const char* toml;
    ErrorId id;
    const char* text;
  };
  const Case cases[] = {
      {"not toml", "[source\n", ErrorId::kConfigUnreadable, "line="},
      {"no stream", "[source]\n", ErrorId::kOptionMissing, "[[stream]]"},
      {"a stream that is no array", "[stream]\n", ErrorId::kConfigUnreadable,
       "[[stream]]"},
      {"one name in two spellings", "[source]\nuser=\"a\"\nUSER=\"b\"\n[[stream]]\n",
       ErrorId::kOptionsClash, "options=USER, user"},
      {"an unknown section", "[sourc]\n", ErrorId::kOptionUnknown, "nearest=source"},
      {"a list for a value", "[[stream]]\ncolumns=[1]\n", ErrorId::kOptionInvalid,
       "option=columns"},
      {"a secret without its variable", "[[stream]]\npassword={env=\"NOT_THERE\"}\n",
       ErrorId::kOptionMissing, "environment_variable=NOT_THERE"},
      {"a secret without its file", "[[stream]]\npassword={file=\"/none\"}\n",
       ErrorId::kOptionMissing, "file=/none"},
      {"a secret of another form", "[[stream]]\npassword={vault=\"x\"}\n",
       ErrorId::kOptionInvalid, "option=password"},
      {"a catalog entry that is no text", "[catalog]\na=1\n[[stream]]\n",
       ErrorId::kOptionInvalid, "option=catalog.a"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto file = ParsePipeline(c.toml, "p.toml", "", Fixed());
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().id(), c.id);
    EXPECT_NE(file.error().Text().find(c.text), std::string::npos)
        << file.error().Text();
  }
}

}  // namespace
}  // namespace mssql_cdc::cli
