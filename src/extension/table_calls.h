// What Python asks of tables outside of a running stream: the backfill of a chunked
// snapshot, silver, the comparison with the source, the control table. All of it runs
// in the calling process.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dice.h"
#include "base/error.h"
#include "extension/source_context.h"
#include "lake/delta_lake.h"
#include "runtime/apply.h"
#include "runtime/backfill.h"
#include "runtime/control_table.h"
#include "runtime/reconcile.h"

namespace mssql_cdc::extension {

// Tables as the user names them and where they are; what a call does not need is empty.
struct TablePlaces {
  std::string app_id;
  std::string bronze;
  std::string bronze_location;
  std::string facts_table;
  std::string facts_location;
  std::string silver;
  std::string silver_location;
  std::string control_table;
  std::string control_location;
  std::string report_location;
  std::vector<std::string> keys;
  std::string capture_instance;  // Before the options' one.
  pipeline::Granularity granularity = pipeline::Granularity::kHour;
};

// A backfill call; Stop ends Run soon, from any thread.
class BackfillCall final : public runtime::BackfillObserver {
 public:
  // Connects to nothing yet. Errors: those of SourceContext::Open.
  static Result<std::unique_ptr<BackfillCall>> Open(
      const Options& options, const Access& access, const TablePlaces& places,
      const runtime::BackfillOptions& limits);

  Result<runtime::BackfillStatus> Run() { return backfill_->Run(); }
  void Stop() { backfill_->Stop(); }
  std::vector<std::string> TakeWarnings() { return context_->warnings().Take(); }

  void OnWarning(const std::string& text) override {
    context_->warnings().OnWarning(text);
  }

 private:
  BackfillCall() = default;

  lake::DeltaLake lake_;
  std::unique_ptr<SourceContext> context_;
  std::unique_ptr<runtime::Backfill> backfill_;
};

// Silver and what proves it.
class SilverCall {
 public:
  // Without options the key and the capture instance are those of `places`, and
  // Reconcile is not for it. Errors: OptionMissing (keys, captureInstance); those of
  // SourceContext::Open.
  static Result<std::unique_ptr<SilverCall>> Open(const std::optional<Options>& options,
                                                  const Access& access,
                                                  const TablePlaces& places);
  // Chances are drawn from it.
  void SetSeed(std::uint64_t seed) { dice_ = Dice(seed); }

  // Errors: those of AskSilver and of runtime::Apply.
  Result<runtime::ApplyOutcome> Apply();
  // Errors: those of AskSilver and of runtime::Reconcile.
  Result<runtime::ReconcileOutcome> Reconcile(const runtime::ReconcileOptions& options);

 private:
  SilverCall() : dice_(static_cast<std::uint64_t>(clock_.NowUtcUs())) {}
  Result<runtime::SilverConfig> Describe();

  lake::DeltaLake lake_;
  SystemClock clock_;
  Dice dice_;
  runtime::StreamConfig config_;
  std::unique_ptr<SourceContext> context_;  // Absent without options.
};

// The control table at a location.
class ControlCall {
 public:
  explicit ControlCall(std::string location)
      : dice_(static_cast<std::uint64_t>(clock_.NowUtcUs())),
        control_(lake_, clock_, dice_, std::move(location)) {}

  runtime::ControlTable& table() { return control_; }

 private:
  lake::DeltaLake lake_;
  SystemClock clock_;
  Dice dice_;
  runtime::ControlTable control_;
};

}  // namespace mssql_cdc::extension
