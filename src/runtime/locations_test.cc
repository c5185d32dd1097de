#include "runtime/locations.h"

#include <gtest/gtest.h>

namespace mssql_cdc::runtime {
namespace {

StreamConfig Stream(const std::string& name) {
  StreamConfig config;
  config.target_location = "/lake/" + name;
  config.checkpoint = "/checkpoints/" + name;
  config.facts_table = config.facts_location = "/lake/facts";
  config.control_table = config.control_location = "/lake/control";
  config.silver = config.silver_location = "/silver/" + name;
  return config;
}

TEST(Locations, StreamsMayShareWhatIsMadeForIt) {
  StreamConfig a = Stream("a");
  StreamConfig b = Stream("b");
  b.target_location = "file:///lake/x/../a/";
  EXPECT_TRUE(CheckApart({&a, &b}).ok());
  // Delta leaves folders alone whose names begin with _.
  b.checkpoint = "/lake/a/_checkpoints/b";
  EXPECT_TRUE(CheckApart({&a, &b}).ok());
  EXPECT_TRUE(CheckApart({&a}).ok());
}

TEST(Locations, NoStreamWritesIntoAnothersFolder) {
  const struct {
    const char* what;
    void (*change)(StreamConfig& b);
    const char* option;
    const char* with;
  } cases[] = {
      {"silver is another's bronze",
       [](StreamConfig& b) { b.silver_location = "/lake/a"; }, "target",
       "another stream's silver"},
      {"silver lies in another's bronze",
       [](StreamConfig& b) { b.silver_location = "/lake/a/silver"; }, "silver",
       "another stream's target"},
      {"checkpoint is another's bronze",
       [](StreamConfig& b) { b.checkpoint = "/lake/a"; }, "target",
       "another stream's checkpoint"},
      {"bronze holds another's checkpoint",
       [](StreamConfig& b) { b.target_location = "/checkpoints"; }, "checkpoint",
       "another stream's target"},
      {"one silver for two", [](StreamConfig& b) { b.silver_location = "/silver/a"; },
       "silver", "another stream's silver"},
      {"facts in the place of another's silver",
       [](StreamConfig& b) { b.facts_location = "/silver/a"; }, "silver",
       "another stream's facts_table"}};
  for (const auto& one : cases) {
    const StreamConfig a = Stream("a");
    StreamConfig b = Stream("b");
    one.change(b);
    const Status done = CheckApart({&a, &b});
    ASSERT_FALSE(done.ok()) << one.what;
    EXPECT_EQ(done.error().id(), ErrorId::kOptionsClash);
    EXPECT_EQ(done.error().Fact("option"), one.option) << one.what;
    EXPECT_EQ(done.error().Fact("with"), one.with) << one.what;
  }
}

}  // namespace
}  // namespace mssql_cdc::runtime
