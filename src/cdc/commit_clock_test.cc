#include "cdc/commit_clock.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cdc {
namespace {

using Kind = CommitClock::Kind;

TEST(CommitClock, IsChosenByTheOptionThenByTheServer) {
  const CommitClock none{Kind::kUtc, -1, "refused"};
  const struct {
    const char* option;
    std::uint8_t major_version;
    const char* zone;  // nullptr: the server does not say.
    std::int64_t offset_minutes;
    CommitClock clock;
  } kRows[] = {
      {"auto", 16, "UTC", 0, CommitClock{}},
      {"AUTO", 16, "utc", 0, CommitClock{}},
      {"auto", 16, "Romance Standard Time", 120,
       CommitClock{Kind::kNamedZone, 0, "Romance Standard Time"}},
      {"auto", 15, nullptr, -180, CommitClock{Kind::kFixedOffset, -180, ""}},
      {"UTC", 15, nullptr, -180, CommitClock{}},
      {"E. South America Standard Time", 15, nullptr, -180,
       CommitClock{Kind::kNamedZone, 0, "E. South America Standard Time"}},
      {"UTC'; DROP TABLE x --", 16, "UTC", 0, none},
      {"", 16, "UTC", 0, none},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.option);
    ClockFacts facts{row.major_version, 3, std::nullopt, row.offset_minutes};
    if (row.zone != nullptr) facts.zone = row.zone;
    const Result<CommitClock> clock = ChooseClock(row.option, facts);
    ASSERT_EQ(clock.ok(), row.clock != none);
    if (clock.ok()) {
      EXPECT_EQ(clock.value(), row.clock);
    } else {
      EXPECT_EQ(clock.error().id(), ErrorId::kOptionInvalid);
    }
  }
}

TEST(CommitClock, TicksOfDatetimeRoundToMillisecondsBeforeTheOffset) {
  const CommitClock utc;
  const CommitClock fixed{Kind::kFixedOffset, 90, ""};
  EXPECT_EQ(CommitUtcUs(utc, 1'000'003'333), 1'000'003'000);
  EXPECT_EQ(CommitUtcUs(utc, 1'000'006'667), 1'000'007'000);
  EXPECT_EQ(CommitUtcUs(utc, 1'000'007'000), 1'000'007'000);
  EXPECT_EQ(CommitUtcUs(utc, -3'334), -3'000);
  EXPECT_EQ(CommitUtcUs(fixed, 6'000'000'000), 600'000'000);
  EXPECT_EQ(fixed.Text(), "UTC+01:30");
  EXPECT_EQ((CommitClock{Kind::kFixedOffset, -210, ""}.Text()), "UTC-03:30");
}

TEST(CommitClock, ZoneNamesComeWith2022AndAzure) {
  EXPECT_TRUE(ServerNamesItsZone(16, 3));
  EXPECT_TRUE(ServerNamesItsZone(12, 5));
  EXPECT_TRUE(ServerNamesItsZone(12, 8));
  EXPECT_FALSE(ServerNamesItsZone(15, 3));
}

}  // namespace
}  // namespace mssql_cdc::cdc
