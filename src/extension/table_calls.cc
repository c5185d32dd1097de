#include "extension/table_calls.h"

#include <utility>

#include "runtime/silver_source.h"

namespace mssql_cdc::extension {
namespace {

std::optional<std::string> Given(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

void Place(const TablePlaces& places, runtime::StreamConfig& config) {
  config.app_id = places.app_id;
  config.target = places.bronze;
  config.target_location = places.bronze_location;
  config.facts_table = Given(places.facts_table);
  config.facts_location = places.facts_location;
  config.silver = Given(places.silver);
  config.silver_location = places.silver_location;
  config.control_table = Given(places.control_table);
  config.control_location = places.control_location;
  config.silver_keys = places.keys;
  config.granularity = places.granularity;
}

}  // namespace

Result<std::unique_ptr<BackfillCall>> BackfillCall::Open(
    const Options& options, const Access& access, const TablePlaces& places,
    const runtime::BackfillOptions& limits) {
  std::unique_ptr<BackfillCall> call(new BackfillCall());
  TRY_ASSIGN(call->context_, SourceContext::Open(options, access, &call->lake_));
  SourceContext& context = *call->context_;
  Place(places, context.config());
  call->backfill_ = runtime::Backfill::Make(context.config(), limits,
                                            {.sessions = &context.sessions(),
                                             .lake = &call->lake_,
                                             .clock = &context.clock()},
                                            call.get());
  return call;
}

Result<std::unique_ptr<SilverCall>> SilverCall::Open(
    const std::optional<Options>& options, const Access& access,
    const TablePlaces& places) {
  std::unique_ptr<SilverCall> call(new SilverCall());
  if (options) {
    TRY_ASSIGN(call->context_, SourceContext::Open(*options, access, &call->lake_));
    call->config_ = call->context_->config();
  }
  if (!places.capture_instance.empty()) {
    call->config_.capture_instance = places.capture_instance;
  }
  Place(places, call->config_);
  if (call->context_) return call;
  if (call->config_.capture_instance.empty()) {
    return Error(ErrorId::kOptionMissing)
        .With("option", "capture_instance")
        .With("reason", "there are no options that name one");
  }
  if (places.keys.empty()) {
    return Error(ErrorId::kOptionMissing)
        .With("option", "keys")
        .With("reason", "without options the source is not asked for its index");
  }
  return call;
}

Result<runtime::SilverConfig> SilverCall::Describe() {
  if (!context_) return runtime::DescribeSilver(config_);
  return runtime::AskSilver(config_, context_->sessions());
}

Result<runtime::ApplyOutcome> SilverCall::Apply() {
  TRY_ASSIGN(const runtime::SilverConfig silver, Describe());
  return runtime::Apply(silver, {lake_, clock_, dice_});
}

Result<runtime::ReconcileOutcome> SilverCall::Reconcile(
    const runtime::ReconcileOptions& options) {
  if (!context_) {
    return Error(ErrorId::kOptionMissing)
        .With("option", "options")
        .With("reason", "the source is what silver is compared with");
  }
  TRY_ASSIGN(const runtime::SilverConfig silver, Describe());
  return runtime::Reconcile(config_, silver, options,
                            {lake_, context_->sessions(), clock_, dice_});
}

}  // namespace mssql_cdc::extension
