#include "cli/simulator_host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace mssql_cdc::cli {
namespace {

class Host : public testing::Test {
 protected:
  Host() {
    options_.state_dir =
        testing::TempDir() + "mssql_cdc_host_" + std::to_string(::getpid());
    options_.password = Secret("Sa-1");
  }
  ~Host() override { std::filesystem::remove_all(options_.state_dir); }

  HostOptions options_;
};

TEST_F(Host, IsOfTheReleaseThatWasAskedFor) {
  options_.release = 2019;
  const auto host = SimulatorHost::Start(options_);
  ASSERT_TRUE(host.ok()) << host.error().Text();
  EXPECT_EQ(host.value().engine->version().major, 15);
}

TEST_F(Host, RefusesAReleaseOrZoneItDoesNotKnow) {
  options_.release = 2008;
  const auto old = SimulatorHost::Start(options_);
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().id(), ErrorId::kOptionInvalid);
  options_.release = 2022;
  options_.time_zone = "Middle of Nowhere";
  const auto nowhere = SimulatorHost::Start(options_);
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().id(), ErrorId::kSimulatorFailed);
}

TEST_F(Host, HasAClockThatStandsOnlyIfAsked) {
  options_.start_utc_us = 1'780'000'000'000'000;
  const auto host = SimulatorHost::Start(options_);
  ASSERT_TRUE(host.ok()) << host.error().Text();
  EXPECT_EQ(host.value().engine->NowUtcUs(), 1'780'000'000'000'000);
  EXPECT_TRUE(host.value().shell->Run("EXEC sim.advance_clock 1000").ok());
  EXPECT_EQ(host.value().engine->NowUtcUs(), 1'780'000'001'000'000);
}

}  // namespace
}  // namespace mssql_cdc::cli
