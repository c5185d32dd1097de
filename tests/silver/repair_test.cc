// Comparing silver with its source and putting it right, while others go on.
//
// Goal: every row that is wrong in silver is found beside what is in flight, and a
// repair arrives whoever else applies. Method: the simulator behind TDS, a lake in
// memory whose calls say when something else is to happen; rows are planted in silver
// behind the product's back.

#include "runtime/watched_lake_test.h"
#include "tests/silver/silver_fixture.h"

namespace mssql_cdc {
namespace {

using columns::Kind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(RepairTest, WhatIsWrongIsFoundBesideWhatIsInFlight) {
  EXPECT_TRUE(Compare().is_equal());
  Plant({"2"}, {"3"});
  Commit("INSERT dbo.t VALUES (6, N'f'); INSERT dbo.t VALUES (7, N'g')");
  const runtime::ReconcileOutcome found = Compare();
  EXPECT_EQ(found.in_flight, 1);
  EXPECT_EQ(found.mismatch, 0);
  EXPECT_FALSE(found.is_equal());
  EXPECT_THAT(KindsOf(found), ElementsAre(std::pair("{\"id\":2}", "MISSING_TARGET"),
                                          std::pair("{\"id\":3}", "MISSING_SOURCE"),
                                          std::pair("{\"id\":6}", "IN_FLIGHT"),
                                          std::pair("{\"id\":7}", "IN_FLIGHT")));
  RunWell();
  RepairWell(*lake_);
  EXPECT_TRUE(Compare().is_equal());
  EXPECT_THAT(Silver(),
              UnorderedElementsAre("1|a", "2|b", "3|c", "4|d", "5|e", "6|f", "7|g"));
}

TEST_F(RepairTest, ARepairArrivesThoughAnotherApplyPassesItsStamp) {
  Plant({"2"}, {"3"});
  Commit("DELETE dbo.t WHERE id = 4");
  RunWell();
  ApplyWell();
  Plant({}, {"1"});
  GoOn("once");
  runtime::WatchedLake watched(*lake_);
  int append_count = 0;
  int look_count = 0;
  watched.before = [&](std::string_view call, const std::string& location) -> Status {
    if (call == "Append" && location == "bronze" && ++append_count <= 2) {
      GoOn("passed " + std::to_string(append_count));
      ApplyWell();
      look_count = 0;
    }
    // Its own apply looks twice, then it looks for another stamp.
    if (call == "Read" && location == "control" && append_count > 0 &&
        ++look_count == 3) {
      GoOn("on " + std::to_string(append_count));
    }
    return Unit{};
  };
  RepairWell(watched);
  EXPECT_EQ(append_count, 3);
  EXPECT_THAT(Silver(), UnorderedElementsAre("1|a", "2|b", "3|c", "5|on 2"));
  EXPECT_TRUE(Compare().is_equal());
}

TEST_F(RepairTest, ARepairWaitsUntilTheStreamIsAheadOfSilver) {
  GoOn("first");
  ApplyWell();
  Plant({"2"}, {});
  const runtime::ReconcileOutcome found = Compare();
  const std::size_t before = Rows().size();
  const Status idle = Repair(found, *lake_);
  ASSERT_FALSE(idle.ok());
  EXPECT_EQ(idle.error().id(), ErrorId::kRepairNotYet);
  EXPECT_EQ(Rows().size(), before);
  runtime::WatchedLake watched(*lake_);
  int look_count = 0;
  watched.before = [&](std::string_view call, const std::string& location) -> Status {
    if (call == "Read" && location == "control" && ++look_count == 3) GoOn("at last");
    return Unit{};
  };
  const Status status = Repair(found, watched);
  ASSERT_TRUE(status.ok()) << status.error().Text();
  EXPECT_THAT(Silver(), UnorderedElementsAre("1|a", "2|b", "3|c", "4|d", "5|at last"));
}

TEST_F(RepairTest, AKeyThatIsWrittenAsAnotherTypeIsComparedAsItIsWritten) {
  Fresh();
  config_.columns = "id STRING, note STRING";
  Made();
  Commit("UPDATE dbo.t SET note = N'new' WHERE id = 4");
  EXPECT_THAT(KindsOf(Compare()),
              ElementsAre(std::pair("{\"id\":\"4\"}", "IN_FLIGHT")));
  Plant({"2"}, {"3"});
  EXPECT_THAT(KindsOf(Compare()),
              ElementsAre(std::pair("{\"id\":\"2\"}", "MISSING_TARGET"),
                          std::pair("{\"id\":\"3\"}", "MISSING_SOURCE"),
                          std::pair("{\"id\":\"4\"}", "IN_FLIGHT")));
  RunWell();
  RepairWell(*lake_);
  EXPECT_TRUE(Compare().is_equal());
  EXPECT_THAT(Silver(), UnorderedElementsAre("1|a", "2|b", "3|c", "4|new", "5|e"));
}

TEST_F(RepairTest, KeysAtBothEndsOfTheirTypeAndColumnsWithAnUnderscore) {
  Fresh();
  Sql("CREATE TABLE dbo.ends (_id bigint NOT NULL PRIMARY KEY, _rev nvarchar(9) NULL)");
  Sql("INSERT dbo.ends VALUES (-9223372036854775808, N'low'), (0, N'zero'), "
      "(9223372036854775807, N'high')");
  Enable("ends", "dbo_ends");
  config_.capture_instance = "dbo_ends";
  WithSilver();
  EXPECT_TRUE(Compare().is_equal());
  Plant({"-9223372036854775808", "9223372036854775807"}, {"0"}, "_id");
  EXPECT_EQ(KindsOf(Compare()),
            (Found{{"{\"_id\":-9223372036854775808}", "MISSING_TARGET"},
                   {"{\"_id\":0}", "MISSING_SOURCE"},
                   {"{\"_id\":9223372036854775807}", "MISSING_TARGET"}}));
  Commit("INSERT dbo.ends VALUES (1, N'one')");
  RunWell();
  RepairWell(*lake_);
  EXPECT_TRUE(Compare().is_equal());
  EXPECT_THAT(lake::RowsOf(*lake_, "silver", {{"_id", "_rev"}}),
              UnorderedElementsAre("-9223372036854775808|low", "0|zero", "1|one",
                                   "9223372036854775807|high"));
  // One slice a key.
  Sql("DELETE dbo.ends WHERE _id < 9");
  Pass(1);
  RunWell();
  ApplyWell();
  EXPECT_TRUE(Compare().is_equal());
}

TEST_F(RepairTest, AColumnThatSilverLacksIsNamed) {
  EXPECT_THAT(Compare().left_out, IsEmpty());
  Sql("ALTER TABLE dbo.t ADD extra int NULL");
  Enable("t", "dbo_t2");
  config_.capture_instance = "dbo_t2";
  EXPECT_THAT(Compare().left_out, ElementsAre("extra"));
}

TEST_F(RepairTest, AKeyThatSilverHasAsAnotherTypeIsRefused) {
  config_.columns = "id BIGINT, note STRING";
  const Status status = With(*lake_,
                             [&](const runtime::SilverConfig& silver,
                                 const runtime::ReconcileParts& parts) -> Status {
                               TRY(runtime::Reconcile(config_, silver, {}, parts));
                               return Unit{};
                             });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().id(), ErrorId::kSilverKeyInvalid) << status.error().Text();
  EXPECT_EQ(status.error().Fact("column"), "id");
}

}  // namespace
}  // namespace mssql_cdc
