#include "pipeline/control.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "pipeline/tables.h"

namespace mssql_cdc::pipeline {
namespace {

std::int64_t At(const char* iso) { return ParseIsoUs(iso).value(); }

cdc::Offset End(const char* iso) {
  cdc::Offset end;
  end.lsn.bytes[9] = 7;
  if (iso != nullptr) end.commit_us = At(iso);
  return end;
}

TEST(Control, TruncatesToTheBeginningOfThePeriod) {
  const std::pair<Granularity, const char*> cases[] = {
      {Granularity::kMinute, "2026-03-01T15:50:00"},
      {Granularity::kHour, "2026-03-01T15:00:00"},
      {Granularity::kDay, "2026-03-01T00:00:00"}};
  for (const auto& [granularity, expected] : cases) {
    EXPECT_EQ(Truncate(At("2026-03-01T15:50:59.999"), granularity), At(expected));
  }
  EXPECT_EQ(Truncate(At("1969-12-31T23:59:59"), Granularity::kHour),
            At("1969-12-31T23:00:00"));
}

TEST(Control, TheVerdictOnlyMovesForward) {
  ControlRow row;
  row.table_name = "t";
  EXPECT_FALSE(Advanced(row, std::nullopt, Granularity::kHour, 1));
  EXPECT_FALSE(Advanced(row, End(nullptr), Granularity::kHour, 1));
  const auto first = Advanced(row, End("2026-03-01T15:10:00"), Granularity::kHour, 1);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->finalized_until, At("2026-03-01T15:00:00"));
  EXPECT_EQ(first->end_commit_ts, At("2026-03-01T15:10:00"));
  // The same period: end and time of the update stay those that moved it.
  EXPECT_FALSE(Advanced(*first, End("2026-03-01T15:50:00"), Granularity::kHour, 2));
  EXPECT_FALSE(Advanced(*first, End("2026-03-01T15:50:00"), Granularity::kDay, 2));
  const auto finer =
      Advanced(*first, End("2026-03-01T15:50:00"), Granularity::kMinute, 2);
  ASSERT_TRUE(finer);
  EXPECT_EQ(finer->finalized_until, At("2026-03-01T15:50:00"));
  EXPECT_EQ(finer->updated_at, 2);
}

TEST(Control, ARowSurvivesItsTable) {
  ControlRow row;
  row.table_name = "silver.orders";
  row.finalized_until = 5;
  row.applied_lsn = cdc::Lsn{}.Text();
  row.snapshot_wave = 3;
  EXPECT_EQ(ParseControlRow(ControlBatch(row), 0).value(), row);
  EXPECT_EQ(row.Position().value().wave, 3);
}

TEST(Control, APositionThatIsThereChangesNothing) {
  ControlRow row;
  row.finalized_until = 5;
  SilverPosition position;
  position.applied = cdc::Lsn{};
  const auto moved = Positioned(row, position);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->finalized_until, 5);
  EXPECT_FALSE(Positioned(*moved, position));
}

TEST(Control, GranularitiesAreThree) {
  EXPECT_EQ(ParseGranularity(" Day ").value(), Granularity::kDay);
  const auto bad = ParseGranularity("week");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().id(), ErrorId::kOptionInvalid);
}

TEST(Tables, OlderControlTablesGetTheirColumns) {
  columns::Schema schema;
  for (const columns::Field& field : ControlTable().schema.fields) {
    if (schema.fields.size() < 5) schema.fields.push_back(field);
  }
  const auto migration = PlanMigration(TableKind::kControl, {}, schema).value();
  ASSERT_TRUE(migration);
  EXPECT_EQ(migration->add.size(), 4u);
  EXPECT_EQ(migration->properties.at(std::string(kVersionProperty)), "4");
  EXPECT_EQ(ControlTable().properties.at(std::string(kVersionProperty)), "4");
  EXPECT_EQ(SilverTable({}).properties.at(std::string(kVersionProperty)), "0");
  EXPECT_EQ(ReportTable().schema.fields.size(), 17u);
}

TEST(Tables, SilverHasTheCapturedColumnsOfBronze) {
  const columns::Schema bronze =
      BronzeTable({{"id", {columns::Kind::kInt32}}, {"v", {columns::Kind::kUtf8}}},
                  true)
          .schema;
  const columns::Schema silver = SilverTable(SilverColumns(bronze)).schema;
  std::string names;
  for (const columns::Field& field : silver.fields) names += field.name + " ";
  EXPECT_EQ(names, "id v _start_lsn _commit_ts ");
}

}  // namespace
}  // namespace mssql_cdc::pipeline
