#include "sqlserver/connection_string.h"

#include <gtest/gtest.h>

namespace mssql_cdc::sqlserver {
namespace {

TEST(ConnectionString, EveryKeywordSetsItsOption) {
  const auto parsed = ParseConnectionString(
      "Driver={ODBC Driver 18 for SQL Server}; SERVER = tcp:db.example , 1444 ;"
      "Initial Catalog=shop;User ID=reader;Password={p;w}}d=};Encrypt=Strict;"
      "TrustServerCertificate=yes;HostNameInCertificate=cn.example;"
      "ServerCertificate=/a/leaf.pem;CAFile=/a/ca.pem;ApplicationIntent=readonly;"
      "Application Name=demo;Workstation ID=box;Packet Size=8000;"
      "Connection Timeout=7;Command Timeout=8;;");
  ASSERT_TRUE(parsed.ok()) << parsed.error().Text();
  const ConnectOptions& options = parsed.value();
  EXPECT_EQ(options.host, "db.example");
  EXPECT_EQ(options.port, 1444);
  EXPECT_EQ(options.instance, std::nullopt);
  EXPECT_EQ(options.database, "shop");
  EXPECT_EQ(options.user, "reader");
  EXPECT_EQ(options.password.Reveal(), "p;w}d=");
  EXPECT_EQ(options.encrypt, Encrypt::kStrict);
  EXPECT_TRUE(options.trust_server_certificate);
  EXPECT_EQ(options.host_name_in_certificate, "cn.example");
  EXPECT_EQ(options.server_certificate, "/a/leaf.pem");
  EXPECT_EQ(options.ca_file, "/a/ca.pem");
  EXPECT_TRUE(options.read_only_intent);
  EXPECT_EQ(options.application_name, "demo");
  EXPECT_EQ(options.workstation, "box");
  EXPECT_EQ(options.packet_size_bytes, 8000);
  EXPECT_EQ(options.connect_timeout_ms, 7000);
  EXPECT_EQ(options.silence_timeout_ms, 8000);
}

TEST(ConnectionString, WithoutKeywordsTheConnectionIsEncryptedAndVerified) {
  const auto parsed = ParseConnectionString("Server=db");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().encrypt, Encrypt::kMandatory);
  EXPECT_FALSE(parsed.value().trust_server_certificate);
  EXPECT_EQ(parsed.value().port, std::nullopt);
  EXPECT_EQ(parsed.value().connect_timeout_ms, 30'000);
  EXPECT_FALSE(parsed.value().read_only_intent);
}

struct ServerCase {
  const char* value;
  const char* host;
  std::optional<std::uint16_t> port;
  std::optional<std::string> instance;
};

const ServerCase kServerCases[] = {
    {"db", "db", std::nullopt, std::nullopt},
    {"db,1", "db", 1, std::nullopt},
    {"TCP:db,65535", "db", 65535, std::nullopt},
    {".", "localhost", std::nullopt, std::nullopt},
    {"(LOCAL)", "localhost", std::nullopt, std::nullopt},
    {".\\SQLEXPRESS", "localhost", std::nullopt, "SQLEXPRESS"},
    {"db\\sales", "db", std::nullopt, "sales"},
    {"db\\sales,1500", "db", 1500, "sales"},
    {"[::1],1433", "::1", 1433, std::nullopt},
    {"tcp:fe80::1", "fe80::1", std::nullopt, std::nullopt},
};

TEST(ConnectionString, ServerHasTheFormsOfOdbc) {
  for (const ServerCase& c : kServerCases) {
    SCOPED_TRACE(c.value);
    const auto parsed = ParseConnectionString(std::string("Server=") + c.value);
    ASSERT_TRUE(parsed.ok()) << parsed.error().Text();
    EXPECT_EQ(parsed.value().host, c.host);
    EXPECT_EQ(parsed.value().port, c.port);
    EXPECT_EQ(parsed.value().instance, c.instance);
  }
}

TEST(ConnectionString, EncryptHasSeveralNamesForEachMode) {
  const std::pair<const char*, Encrypt> cases[] = {
      {"yes", Encrypt::kMandatory},       {"TRUE", Encrypt::kMandatory},
      {"mandatory", Encrypt::kMandatory}, {"strict", Encrypt::kStrict},
      {"no", Encrypt::kLoginOnly},        {"False", Encrypt::kLoginOnly},
      {"optional", Encrypt::kLoginOnly}};
  for (const auto& [value, mode] : cases) {
    const auto parsed = ParseConnectionString(std::string("Server=a;Encrypt=") + value);
    ASSERT_TRUE(parsed.ok()) << value;
    EXPECT_EQ(parsed.value().encrypt, mode) << value;
  }
}

struct BadCase {
  const char* name;
  const char* text;
  ErrorId error;
  const char* fact;
  const char* value;
};

const BadCase kBadCases[] = {
    {"nothing", "", ErrorId::kOptionMissing, "option", "Server"},
    {"no server", "Database=x", ErrorId::kOptionMissing, "option", "Server"},
    {"empty server", "Server=", ErrorId::kOptionInvalid, "option", "Server"},
    {"port zero", "Server=a,0", ErrorId::kOptionInvalid, "option", "Server"},
    {"port too large", "Server=a,65536", ErrorId::kOptionInvalid, "option", "Server"},
    {"port with colon", "Server=a:1433", ErrorId::kOptionInvalid, "option", "Server"},
    {"named pipe", "Server=np:a", ErrorId::kOptionInvalid, "option", "Server"},
    {"empty instance", "Server=a\\", ErrorId::kOptionInvalid, "option", "Server"},
    {"local database", "Server=(localdb)\\x", ErrorId::kOptionInvalid, "option",
     "Server"},
    {"encrypt", "Server=a;Encrypt=maybe", ErrorId::kOptionInvalid, "option", "Encrypt"},
    {"trust", "Server=a;TrustServerCertificate=maybe", ErrorId::kOptionInvalid,
     "option", "TrustServerCertificate"},
    {"intent", "Server=a;ApplicationIntent=x", ErrorId::kOptionInvalid, "option",
     "ApplicationIntent"},
    {"packet size", "Server=a;Packet Size=511", ErrorId::kOptionInvalid, "option",
     "Packet Size"},
    {"timeout", "Server=a;Timeout=-1", ErrorId::kOptionInvalid, "option",
     "Connect Timeout"},
    {"no equals sign", "Server=a;UID", ErrorId::kOptionInvalid, "pair_number", "2"},
    {"pair without a value", "Server=a;UID;PWD=x", ErrorId::kOptionInvalid,
     "pair_number", "2"},
    {"no key", "Server=a;=x", ErrorId::kOptionInvalid, "pair_number", "2"},
    {"brace not closed", "Server={a", ErrorId::kOptionInvalid, "pair_number", "1"},
    {"text behind a brace", "Server={a}b", ErrorId::kOptionInvalid, "pair_number", "1"},
    {"twice", "Server=a;UID=x;User ID=y", ErrorId::kOptionsClash, "option", "UID"},
    {"windows login", "Server=a;Trusted_Connection=yes", ErrorId::kKeywordUnsupported,
     "keyword", "Trusted_Connection"},
    {"entra login", "Server=a;Authentication=ActiveDirectoryInteractive",
     ErrorId::kKeywordUnsupported, "keyword", "Authentication"},
    {"mars", "Server=a;MARS_Connection=yes", ErrorId::kKeywordUnsupported, "keyword",
     "MARS_Connection"},
    {"mirroring", "Server=a;Failover_Partner=b", ErrorId::kKeywordUnsupported,
     "keyword", "Failover_Partner"},
    {"always encrypted", "Server=a;ColumnEncryption=Enabled",
     ErrorId::kKeywordUnsupported, "keyword", "ColumnEncryption"},
    {"misspelt", "Server=a;Databse=b", ErrorId::kKeywordUnsupported, "nearest",
     "Database"},
};

TEST(ConnectionString, WhatIsNotUnderstoodIsNamed) {
  for (const BadCase& c : kBadCases) {
    SCOPED_TRACE(c.name);
    const auto parsed = ParseConnectionString(c.text);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().id(), c.error);
    EXPECT_EQ(parsed.error().Fact(c.fact), c.value);
  }
}

TEST(ConnectionString, KeywordsThatAskForWhatHoldsAnywayAreTaken) {
  const auto parsed = ParseConnectionString(
      "Server=a;Server=a;Trusted_Connection=no;Integrated "
      "Security=no;MARS_Connection=0;"
      "Authentication=SqlPassword;MultiSubnetFailover=yes;ColumnEncryption=Disabled");
  EXPECT_TRUE(parsed.ok()) << parsed.error().Text();
}

TEST(ConnectionString, NoErrorHoldsAPieceOfThePassword) {
  for (const std::string& text :
       {std::string("Server=a;PWD=canary1;canary2=3"), std::string("PWD={canary1"),
        std::string("Server=a;PWD={canary1}canary2"),
        std::string("PWD=canary1;canary2"),
        std::string("Server=a;PWD=canary1;PWD=canary2"),
        std::string("Server=a;Encrypt=yes PWD=canary1"),
        std::string("Server=a,1 PWD=canary1"), std::string("PWD=canary1")}) {
    SCOPED_TRACE(text);
    const auto parsed = ParseConnectionString(text);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().Text().find("canary"), std::string::npos)
        << parsed.error().Text();
  }
}

}  // namespace
}  // namespace mssql_cdc::sqlserver
