// Comparing silver with its source and putting it right, while others go on.
//
// Goal: every row that is wrong in silver is found beside what is in flight, and a
// repair arrives whoever else applies. Method: the simulator behind TDS, a lake in
// memory whose calls say when something else is to happen; rows are planted in silver
// behind the product's back.

#include <gmock/gmock.h>

#include "columns/take.h"
#include "lake/rows_for_test.h"
#include "runtime/apply.h"
#include "runtime/reconcile.h"
#include "runtime/silver_source.h"
#include "runtime/watched_lake_test.h"
#include "tests/source_fixture.h"

namespace mssql_cdc {
namespace {

using columns::Kind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Found = std::map<std::string, std::string>;  // Key to kind.

class RepairTest : public SourceTest {
 protected:
  RepairTest() : dice_(1) { Made(); }

  // Bronze and silver of t with ids 1 to 5.
  void Made() {
    Sql("INSERT dbo.t VALUES (2, N'b'), (3, N'c'), (4, N'd'), (5, N'e')");
    Pass(1);
    WithSilver();
  }
  void WithSilver() {
    config_.bootstrap = true;
    config_.silver = config_.silver_location = "silver";
    config_.control_table = config_.control_location = "control";
    RunWell();
    ApplyWell();
  }

  Status With(lake::Lake& lake,
              const std::function<Status(const runtime::SilverConfig&,
                                         const runtime::ReconcileParts&)>& call) {
    return source_->With(
        lake, {}, "life", [&](const runtime::StreamParts& parts) -> Status {
          TRY_ASSIGN(const runtime::SilverConfig silver,
                     runtime::AskSilver(config_, *parts.sessions));
          return call(silver, {*parts.lake, *parts.sessions, *parts.clock, dice_});
        });
  }
  void ApplyWell() {
    const Status status =
        With(*lake_,
             [&](const runtime::SilverConfig& silver,
                 const runtime::ReconcileParts& parts) -> Status {
               TRY(runtime::Apply(silver, {parts.lake, parts.clock, parts.dice}));
               return Unit{};
             });
    ASSERT_TRUE(status.ok()) << status.error().Text();
  }
  runtime::ReconcileOutcome Compare() {
    runtime::ReconcileOutcome found;
    const Status status =
        With(*lake_,
             [&](const runtime::SilverConfig& silver,
                 const runtime::ReconcileParts& parts) -> Status {
               runtime::ReconcileOptions options;
               options.sample = 1;
               TRY_ASSIGN(found, runtime::Reconcile(config_, silver, options, parts));
               return Unit{};
             });
    EXPECT_TRUE(status.ok()) << status.error().Text();
    return found;
  }
  static Found KindsOf(const runtime::ReconcileOutcome& outcome) {
    Found found;
    for (const pipeline::Finding& finding : outcome.findings) {
      found[finding.key.value_or("-")] = finding.failure_type;
    }
    return found;
  }
  Status Repair(const runtime::ReconcileOutcome& found, lake::Lake& lake) {
    return With(lake,
                [&](const runtime::SilverConfig& silver,
                    const runtime::ReconcileParts& parts) -> Status {
                  TRY(runtime::Repair(config_, silver, found, parts));
                  return Unit{};
                });
  }
  void RepairWell(lake::Lake& lake) {
    const Status status = Repair(Compare(), lake);
    ASSERT_TRUE(status.ok()) << status.error().Text();
    ApplyWell();
  }

  // Takes rows out of silver, and puts copies of others in, so often as they stand
  // there.
  void Plant(const std::vector<std::string>& out, const std::vector<std::string>& in,
             const std::string& key = "id") {
    const auto state = lake_->State("silver").value();
    const auto change =
        lake_->Change("silver", {lake::ChangeKind::kMerge, state->schema.fields})
            .value();
    lake::ProbeSpec spec;
    for (const columns::Field& field : state->schema.fields) {
      spec.columns.push_back(field.name);
    }
    const auto rows = change->Probe(spec).value();
    std::vector<std::unique_ptr<columns::BatchReader>> added;
    while (true) {
      auto batch = rows->Next().value();
      if (!batch) break;
      const cdc::RowView view(*batch, 0);
      std::vector<std::int64_t> copies;
      for (std::int64_t i = 0; i < batch->row_count; ++i) {
        const std::string text = KeyOf(*batch, i, key);
        for (const std::string& each : in) {
          if (each == text) copies.push_back(i);
        }
        if (std::ranges::find(out, text) == out.end()) continue;
        const std::int64_t number[] = {
            columns::FixedValue<std::int64_t>(*batch->columns.back(), i)};
        ASSERT_TRUE(change
                        ->Remove(columns::FixedValue<std::int32_t>(
                                     *batch->columns[batch->columns.size() - 2], i),
                                 number)
                        .ok());
      }
      if (copies.empty()) continue;
      columns::RecordBatch copied{nullptr, std::ssize(copies), {}};
      auto schema = std::make_shared<columns::Schema>(*batch->schema);
      schema->fields.resize(schema->fields.size() - 2);
      copied.schema = schema;
      for (std::size_t c = 0; c < schema->fields.size(); ++c) {
        copied.columns.push_back(std::make_shared<const columns::Column>(
            columns::Take(*batch->columns[c], copies)));
      }
      std::vector<columns::RecordBatch> one;
      one.push_back(std::move(copied));
      added.push_back(columns::ReadBatches(schema, std::move(one)));
    }
    if (!added.empty()) {
      ASSERT_TRUE(change->Add(std::move(added)).ok());
    }
    ASSERT_TRUE(change->Commit(std::nullopt).ok());
  }
  static std::string KeyOf(const columns::RecordBatch& batch, std::int64_t row,
                           const std::string& key) {
    const cdc::RowView view(batch, row);
    const auto number = view.Integer(key);
    if (number.ok()) return std::to_string(number.value().value_or(0));
    return view.Text(key).value().value_or("NULL");
  }

  Lines Silver() { return lake::RowsOf(*lake_, "silver", {{"id", "note"}}); }

  // A commit that the stream has read and silver has not applied.
  void GoOn(const std::string& note) {
    Commit("UPDATE dbo.t SET note = N'" + note + "' WHERE id = 5");
    RunWell();
  }

  Dice dice_;
};

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
