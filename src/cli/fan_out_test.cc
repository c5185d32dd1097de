#include "cli/fan_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mssql_cdc::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

cdc::CaptureInstance Instance(std::string name, std::string table,
                              std::int64_t created_us) {
  cdc::CaptureInstance instance;
  instance.name = std::move(name);
  instance.source_schema = "dbo";
  instance.source_table = std::move(table);
  instance.created_us = created_us;
  return instance;
}

StreamSettings Settings(std::map<std::string, std::string> more) {
  StreamSettings settings;
  settings.options = {{"captureInstances", "dbo_*"},
                      {"target", "lake/{ci}"},
                      {"app_id", "{ci}-v1"},
                      {"checkpoint", "checkpoints/{ci}"}};
  for (auto& [key, value] : more) settings.options[key] = value;
  return settings;
}

std::vector<std::string> Names(const Expanded& expanded) {
  std::vector<std::string> names;
  for (const StreamSettings& stream : expanded.streams) {
    names.push_back(stream.options.at("captureInstance"));
  }
  return names;
}

TEST(FanOut, StarsAndQuestionMarksMatchInAnyCase) {
  const struct {
    const char* pattern;
    const char* name;
    bool matches;
  } cases[] = {{"dbo_*", "DBO_orders", true},  {"dbo_*", "sales_orders", false},
               {"*", "anything", true},        {"dbo_?", "dbo_a", true},
               {"dbo_?", "dbo_ab", false},     {"*_or*rs", "dbo_orders", true},
               {"a*b*c", "aXbYbZc", true},     {"a*b*c", "aXbYbZ", false},
               {"dbo_orders", "dbo_o", false}, {"**", "", true}};
  for (const auto& one : cases) {
    EXPECT_EQ(Matches(one.pattern, one.name), one.matches)
        << one.pattern << " " << one.name;
  }
}

TEST(FanOut, EachNameAndMatchIsOneStreamWithItsNameInThePlaces) {
  const auto fan_out =
      ReadFanOut(Settings({{"captureInstances", R"(["dbo_b", "dbo_*", "x_*"])"},
                           {"silver", "silver/{ci}"},
                           {"facts_table", "lake/facts"},
                           {"user", "{ci}"}}));
  ASSERT_TRUE(fan_out.ok()) << fan_out.error().Text();
  EXPECT_TRUE(fan_out.value()->has_pattern());
  const Expanded expanded = ExpandFanOut(
      *fan_out.value(),
      {Instance("dbo_a_2", "a", 9), Instance("dbo_a", "a", 3),
       Instance("dbo_b", "b", 3), Instance("dbo_c", "c", 3), Instance("y_d", "d", 1)},
      {"dbo_c"});
  EXPECT_THAT(Names(expanded), ElementsAre("dbo_b", "dbo_a"));
  EXPECT_THAT(expanded.unmatched, ElementsAre("x_*"));
  const auto& options = expanded.streams[1].options;
  EXPECT_EQ(options.at("target"), "lake/dbo_a");
  EXPECT_EQ(options.at("app_id"), "dbo_a-v1");
  EXPECT_EQ(options.at("silver"), "silver/dbo_a");
  EXPECT_EQ(options.at("facts_table"), "lake/facts");
  EXPECT_EQ(options.at("user"), "{ci}");
  EXPECT_FALSE(options.contains("captureInstances"));
}

TEST(FanOut, ATableIsReadByOneStream) {
  const std::vector<cdc::CaptureInstance> listed = {
      Instance("dbo_a", "a", 1), Instance("dbo_a_2", "a", 9), Instance("dbo_b", "b", 1),
      Instance("dbo_b_2", "b", 9), Instance("dbo_c", "c", 1)};
  const auto fan_out =
      ReadFanOut(Settings({{"captureInstances", "dbo_?, dbo_*, DBO_A_2, none_*"}}));
  ASSERT_TRUE(fan_out.ok()) << fan_out.error().Text();
  // One of a's instances is named, one of b's has a stream of its own.
  const Expanded expanded = ExpandFanOut(*fan_out.value(), listed, {"dbo_b_2"});
  EXPECT_THAT(Names(expanded), ElementsAre("dbo_c", "DBO_A_2"));
  EXPECT_THAT(expanded.unmatched, ElementsAre("none_*"));
}

TEST(FanOut, NamesThatDifferInCaseAreTwoWhereTheServerHasBoth) {
  const std::vector<cdc::CaptureInstance> sensitive = {Instance("dbo_A", "A", 1),
                                                       Instance("dbo_a", "a", 1)};
  const std::vector<cdc::CaptureInstance> insensitive = {Instance("dbo_a", "a", 1)};
  const struct {
    const char* wanted;
    std::set<std::string> taken;
    bool needs_list;
    std::vector<std::string> two, one;
  } cases[] = {{"dbo_?", {}, true, {"dbo_A", "dbo_a"}, {"dbo_a"}},
               {"dbo_A, dbo_a", {}, true, {"dbo_A", "dbo_a"}, {"dbo_A"}},
               {"dbo_*", {"dbo_a"}, true, {"dbo_A"}, {}},
               {"dbo_A", {"dbo_a"}, true, {"dbo_A"}, {}},
               {"dbo_a", {"dbo_a"}, false, {}, {}},
               {"dbo_a, dbo_a", {}, false, {"dbo_a"}, {"dbo_a"}}};
  for (const auto& one : cases) {
    const auto fan_out = ReadFanOut(Settings({{"captureInstances", one.wanted}}));
    ASSERT_TRUE(fan_out.ok()) << one.wanted;
    EXPECT_EQ(NeedsList(*fan_out.value(), one.taken), one.needs_list) << one.wanted;
    EXPECT_EQ(Names(ExpandFanOut(*fan_out.value(), sensitive, one.taken)), one.two)
        << one.wanted;
    EXPECT_EQ(Names(ExpandFanOut(*fan_out.value(), insensitive, one.taken)), one.one)
        << one.wanted;
  }
}

TEST(FanOut, AStreamOfAnotherServerHoldsNothing) {
  PipelineFile file;
  StreamSettings own;
  own.options = {{"captureInstance", "dbo_a"}, {"connectionString", "Server=other"}};
  file.streams = {Settings({{"connectionString", "Server=one"}}), own};
  ASSERT_TRUE(ExpandStreams(file, [](const StreamSettings&) {
                return Result<std::vector<cdc::CaptureInstance>>(
                    std::vector<cdc::CaptureInstance>{Instance("dbo_a", "a", 1)});
              }).ok());
  EXPECT_THAT(Names({file.streams, {}}), ElementsAre("dbo_a", "dbo_a"));
}

TEST(FanOut, NamesAloneNeedNoServer) {
  const auto fan_out =
      ReadFanOut(Settings({{"captureInstances", "dbo_a, dbo_b, DBO_A"}}));
  ASSERT_TRUE(fan_out.ok()) << fan_out.error().Text();
  EXPECT_FALSE(fan_out.value()->has_pattern());
  EXPECT_THAT(Names(ExpandFanOut(*fan_out.value(), {}, {})),
              ElementsAre("dbo_a", "dbo_b"));
}

TEST(FanOut, WhatCannotBeManyIsRefusedByName) {
  const struct {
    std::map<std::string, std::string> more;
    ErrorId id;
    std::string option;
  } cases[] = {
      {{{"target", "lake/t"}, {"app_id", "a"}}, ErrorId::kOptionInvalid, "target"},
      {{{"app_id", "a"}, {"checkpoint", "c"}}, ErrorId::kOptionInvalid, "app_id"},
      {{{"checkpoint", "c"}}, ErrorId::kOptionInvalid, "checkpoint"},
      {{{"silver", "lake/s"}}, ErrorId::kOptionInvalid, "silver"},
      {{{"captureInstances", " "}}, ErrorId::kOptionInvalid, "captureInstances"},
      {{{"captureInstances", "a,,b"}}, ErrorId::kOptionInvalid, "captureInstances"}};
  for (const auto& one : cases) {
    const auto fan_out = ReadFanOut(Settings(one.more));
    ASSERT_FALSE(fan_out.ok()) << one.option;
    EXPECT_EQ(fan_out.error().id(), one.id);
    EXPECT_EQ(fan_out.error().Fact("option"), one.option);
  }
  EXPECT_EQ(ReadFanOut(Settings({{"captureInstance", "dbo_a"}})).error().id(),
            ErrorId::kOptionsClash);
  StreamSettings lacking = Settings({});
  lacking.options.erase("checkpoint");
  EXPECT_EQ(ReadFanOut(lacking).error().id(), ErrorId::kOptionMissing);
  StreamSettings one = Settings({});
  one.options.erase("captureInstances");
  EXPECT_FALSE(ReadFanOut(one).value().has_value());
}

TEST(FanOut, AFileIsExpandedInPlaceAndItsCatalogToo) {
  PipelineFile file;
  file.catalog = {{"bronze.{ci}", "/lake/{ci}"}, {"facts", "/lake/facts"}};
  StreamSettings own;
  own.options = {{"captureInstance", "DBO_B"}};
  StreamSettings names = Settings({{"captureInstances", "x_a"}});
  file.streams = {Settings({}), own, names};
  int asked = 0;
  const auto list = [&](const StreamSettings& one) {
    ++asked;
    EXPECT_EQ(one.options.at("target"), "lake/dbo_*");
    return Result<std::vector<cdc::CaptureInstance>>(std::vector<cdc::CaptureInstance>{
        Instance("dbo_a", "a", 1), Instance("dbo_b", "b", 1)});
  };
  ASSERT_TRUE(ExpandStreams(file, list).ok());
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(Names({file.streams, {}}), ElementsAre("dbo_a", "DBO_B", "x_a"));
  EXPECT_EQ(file.catalog.at("bronze.dbo_a"), "/lake/dbo_a");
  EXPECT_THAT(file.warnings, IsEmpty());
}

TEST(FanOut, NoTableAtAllIsAnError) {
  PipelineFile file;
  file.streams = {Settings({})};
  const Status done = ExpandStreams(file, [](const StreamSettings&) {
    return Result<std::vector<cdc::CaptureInstance>>(
        std::vector<cdc::CaptureInstance>{Instance("sales_a", "a", 1)});
  });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().id(), ErrorId::kCaptureInstanceNotFound);
  EXPECT_EQ(done.error().Fact("captureInstances"), "dbo_*");
  EXPECT_THAT(file.warnings, testing::SizeIs(1));
}

TEST(FanOut, ANameThatCannotBePutInIsRefused) {
  const std::vector<std::string> names = {
      "dbo_../../etc", "dbo_a\\b", "dbo_/", ".", "..", "dbo_we]ird"};
  for (const std::string& name : names) {
    PipelineFile file;
    file.streams = {Settings({{"captureInstances", name}})};
    const Status done = ExpandStreams(file, nullptr);
    ASSERT_FALSE(done.ok()) << name;
    EXPECT_EQ(done.error().id(), ErrorId::kOptionInvalid);
    EXPECT_EQ(done.error().Fact("value"), name);
  }
  // A pattern goes on without them, and says so.
  PipelineFile file;
  file.streams = {Settings({{"captureInstances", "*"}})};
  std::vector<cdc::CaptureInstance> listed = {Instance("dbo_a", "a", 1)};
  for (const std::string& name : names) listed.push_back(Instance(name, name, 1));
  ASSERT_TRUE(ExpandStreams(file, [&](const StreamSettings&) {
                return Result<std::vector<cdc::CaptureInstance>>(listed);
              }).ok());
  EXPECT_THAT(Names({file.streams, {}}), ElementsAre("dbo_a"));
  ASSERT_EQ(file.warnings.size(), names.size());
  EXPECT_THAT(file.warnings[0], testing::HasSubstr("is not read"));
}

}  // namespace
}  // namespace mssql_cdc::cli
