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

// Two of them on one port: the second says which, and its state stays new.
TEST_F(Host, APortInUseIsRefusedBeforeTheStateIsMade) {
  const auto first = SimulatorHost::Start(options_);
  ASSERT_TRUE(first.ok()) << first.error().Text();
  EXPECT_TRUE(first.value().is_new);
  HostOptions second = options_;
  second.state_dir += "_second";
  second.port = first.value().server->port();
  const auto refused = SimulatorHost::Start(second);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().id(), ErrorId::kOptionInvalid);
  EXPECT_NE(refused.error().Text().find(std::to_string(second.port)),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(second.state_dir));
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
