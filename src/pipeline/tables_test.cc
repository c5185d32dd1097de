#include "pipeline/tables.h"

#include <gtest/gtest.h>

namespace mssql_cdc::pipeline {
namespace {

using columns::Kind;

std::string Names(const columns::Schema& schema) {
  std::string text;
  for (const columns::Field& field : schema.fields) {
    text += field.name + " " + columns::DeltaTypeName(field.type) + ", ";
  }
  return text;
}

TEST(Tables, BronzeHasTheExistingPackagesColumnsInItsOrder) {
  const TableDefinition table =
      BronzeTable({{"order_id", {Kind::kInt32}, true, ""}}, true);
  EXPECT_EQ(Names(table.schema),
            "_capture_instance string, _start_lsn string, _seqval string, "
            "_operation integer, _command_id integer, _commit_ts timestamp_ntz, "
            "order_id integer, _batch_id integer, _snapshot string, _chunk integer, ");
  EXPECT_EQ(table.properties,
            (std::map<std::string, std::string>{{"mssql_cdc.schema_version", "2"}}));
  for (const columns::Field& field : table.schema.fields) {
    EXPECT_EQ(field.comment.empty(), field.name == "order_id") << field.name;
    EXPECT_TRUE(field.nullable);
  }
  EXPECT_EQ(BronzeTable({}, false).schema.fields.size(), 8u);
}

TEST(Tables, FactsHaveTheExistingPackagesColumnsInItsOrder) {
  EXPECT_EQ(
      Names(FactsTable().schema),
      "app_id string, batch_id long, rows long, min_lsn string, max_lsn string, "
      "min_commit_ts timestamp_ntz, max_commit_ts timestamp_ntz, deletes long, "
      "inserts long, updates long, started_at timestamp_ntz, duration_ms long, "
      "source_rtt_ms double, read_seconds double, read_mb double, network_wait_ms "
      "long, "
      "retention_watermark_ts timestamp_ntz, retention_headroom_hours double, "
      "event string, lost_from_ts timestamp_ntz, lost_to_ts timestamp_ntz, "
      "source_max_commit_ts timestamp_ntz, capture_lag_seconds double, "
      "ingestion_lag_seconds double, end_lsn string, end_commit_ts timestamp_ntz, "
      "detail string, target string, written_at timestamp_ntz, ");
  EXPECT_EQ(FactsTable().properties.at("mssql_cdc.schema_version"), "14");
}

TEST(Tables, ColumnMappingIsLeftToTheLake) {
  const auto table = BronzeTable({{"a b", {Kind::kInt32}, true, ""}}, true);
  EXPECT_EQ(table.properties.count("delta.columnMapping.mode"), 0u);
}

TEST(Tables, PlansTableIsBesideItsTarget) {
  EXPECT_EQ(PlansTableOf("bronze.orders"), "bronze.orders_snapshot_plans");
  EXPECT_EQ(PlansTableOf("/lake/orders//"), "/lake/orders_snapshot_plans");
  EXPECT_EQ(PlansTableOf("bronze.`my orders`"), "bronze.`my orders_snapshot_plans`");
}

// What a facts table is before its first migration.
columns::Schema OldestFacts() {
  const columns::Schema facts = FactsTable().schema;
  columns::Schema schema;
  for (std::size_t i = 0; i < 12; ++i) schema.fields.push_back(facts.fields[i]);
  schema.fields.push_back(facts.fields[27]);
  schema.fields.push_back(facts.fields[28]);
  return schema;
}

TEST(PlanMigration, BringsATableOfAnyAgeUpToDate) {
  const columns::Schema facts = FactsTable().schema;
  const struct {
    const char* when;
    TableKind kind;
    std::map<std::string, std::string> properties;
    columns::Schema schema;
    int added;  // -1: nothing to do, -2: refused.
  } kRows[] = {
      {"facts as first made", TableKind::kFacts, {}, OldestFacts(), 15},
      {"facts at version 4",
       TableKind::kFacts,
       {{"mssql_cdc.schema_version", "4"}},
       facts,
       0},
      {"facts at today's",
       TableKind::kFacts,
       {{"mssql_cdc.schema_version", "14"}},
       facts,
       -1},
      {"facts of a later release",
       TableKind::kFacts,
       {{"mssql_cdc.schema_version", "15"}},
       facts,
       -1},
      {"a later release that shuts us out",
       TableKind::kFacts,
       {{"mssql_cdc.schema_version", "15"}, {"mssql_cdc.min_version", "15"}},
       facts,
       -2},
      {"a damaged version",
       TableKind::kFacts,
       {{"mssql_cdc.schema_version", "x"}},
       facts,
       -2},
      {"bronze before chunks",
       TableKind::kBronze,
       {{"mssql_cdc.schema_version", "1"}},
       {{{"_batch_id", {Kind::kInt32}, true, ""}}},
       2},
      {"bronze with them, unstamped",
       TableKind::kBronze,
       {},
       BronzeTable({}, true).schema,
       0},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    const auto migration = PlanMigration(row.kind, row.properties, row.schema);
    ASSERT_EQ(migration.ok(), row.added != -2);
    if (!migration.ok()) {
      EXPECT_EQ(migration.error().id(), ErrorId::kLakeTableUnsupported);
      continue;
    }
    ASSERT_EQ(migration.value().has_value(), row.added != -1);
    if (!migration.value()) continue;
    EXPECT_EQ(migration.value()->add.size(), static_cast<std::size_t>(row.added));
    EXPECT_EQ(migration.value()->properties.at("mssql_cdc.schema_version"),
              std::to_string(SchemaVersion(row.kind)));
  }
}

}  // namespace
}  // namespace mssql_cdc::pipeline
