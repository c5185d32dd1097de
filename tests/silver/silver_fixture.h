// A captured table, bronze and silver of it, and differences planted in silver behind
// the product's back: what the tests of comparing and repairing share.

#pragma once

#include <gmock/gmock.h>

#include <map>

#include "columns/take.h"
#include "lake/rows_for_test.h"
#include "runtime/apply.h"
#include "runtime/reconcile.h"
#include "runtime/silver_source.h"
#include "tests/source_fixture.h"

namespace mssql_cdc {

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
  Status TryApply() {
    return With(*lake_,
                [&](const runtime::SilverConfig& silver,
                    const runtime::ReconcileParts& parts) -> Status {
                  TRY(runtime::Apply(silver, {parts.lake, parts.clock, parts.dice}));
                  return Unit{};
                });
  }
  void ApplyWell() {
    const Status status = TryApply();
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
  Status TryCompare() {
    return With(*lake_,
                [&](const runtime::SilverConfig& silver,
                    const runtime::ReconcileParts& parts) -> Status {
                  TRY(runtime::Reconcile(config_, silver, {}, parts));
                  return Unit{};
                });
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

}  // namespace mssql_cdc
