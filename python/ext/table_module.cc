// Tables outside of a running stream, and what Python lists for its callers.

#include <nanobind/stl/map.h>

#include <utility>

#include "base/text.h"
#include "cdc/option_table.h"
#include "cdc/output_columns.h"
#include "cdc/spark_ddl.h"
#include "definition.h"
#include "edge.h"
#include "extension/table_calls.h"
#include "pipeline/tables.h"

namespace mssql_cdc::extension {
namespace {

using Texts = std::map<std::string, std::string>;

TablePlaces PlacesFrom(const Texts& given, std::vector<std::string> keys) {
  const auto text = [&given](const char* name) {
    const auto found = given.find(name);
    return found == given.end() ? std::string() : found->second;
  };
  TablePlaces places{
      text("app_id"),          text("bronze"),         text("bronze_location"),
      text("facts_table"),     text("facts_location"), text("silver"),
      text("silver_location"), text("control_table"),  text("control_location"),
      text("report_location"), std::move(keys),        text("capture_instance")};
  if (const std::string granularity = text("granularity"); !granularity.empty()) {
    places.granularity = Take(pipeline::ParseGranularity(granularity));
  }
  return places;
}

template <typename T>
std::optional<T> Get(const nb::dict& settings, const char* name) {
  if (!settings.contains(name)) return std::nullopt;
  return nb::cast<std::optional<T>>(settings[name]);
}

runtime::BackfillOptions LimitsFrom(const nb::dict& settings) {
  runtime::BackfillOptions limits;
  limits.chunk_rows = Get<std::int64_t>(settings, "chunk_rows");
  limits.max_waves = Get<std::int64_t>(settings, "max_waves");
  limits.max_seconds = Get<double>(settings, "max_seconds");
  limits.target_wave_seconds =
      Get<double>(settings, "target_wave_seconds").value_or(limits.target_wave_seconds);
  limits.min_headroom_hours = Get<double>(settings, "min_headroom_hours");
  if (const auto isolation = Get<std::string>(settings, "isolation")) {
    limits.isolation = LowerAscii(*isolation) == "snapshot"
                           ? runtime::IsolationLevel::kSnapshot
                           : runtime::IsolationLevel::kReadCommitted;
  }
  return limits;
}

// The status as a dictionary, and warnings.
auto RunBackfill(const Options& options, const nb::object& tokens, const Texts& places,
                 const nb::dict& settings) {
  const Access tokens_call = AccessBy(tokens);
  const TablePlaces at = PlacesFrom(places, {});
  const runtime::BackfillOptions limits = LimitsFrom(settings);
  const auto call =
      Free([&] { return BackfillCall::Open(options, tokens_call, at, limits); });
  const runtime::BackfillStatus status =
      FreeUntilInterrupted([&] { return call->Run(); }, [&] { call->Stop(); });
  nb::dict told;
  told["snapshot"] = status.snapshot ? Cell(status.snapshot->Text()) : Cell();
  told["chunks_done"] = status.chunks_done;
  told["chunks_total"] = status.chunks_total;
  told["state"] = NameOf(status.state);
  told["reason"] = status.reason.empty() ? Cell() : Cell(status.reason);
  return std::make_pair(told, call->TakeWarnings());
}

std::unique_ptr<SilverCall> OpenSilver(const std::optional<Options>& options,
                                       const nb::object& tokens, const Texts& places,
                                       std::vector<std::string> keys) {
  const Access call = AccessBy(tokens);
  const TablePlaces at = PlacesFrom(places, std::move(keys));
  return Free([&] { return SilverCall::Open(options, call, at); });
}

nb::object TextOf(const std::optional<cdc::Lsn>& lsn) {
  return lsn ? nb::cast(lsn->Text()) : nb::none();
}

nb::dict Apply(SilverCall& self) {
  const runtime::ApplyOutcome outcome = Free([&] { return self.Apply(); });
  nb::dict told;
  told["bronze_found"] = outcome.bronze_found;
  told["rebuilt"] = outcome.rebuilt;
  told["applied_lsn"] = TextOf(outcome.position.applied);
  told["finalized_until_us"] = outcome.finalized_until_us;
  told["warnings"] = outcome.warnings;
  return told;
}

// A report's rows for another library's hand.
struct Rows {
  columns::RecordBatch batch;
  nb::capsule Stream(const nb::object&) const {
    std::vector<columns::RecordBatch> batches = {batch};
    return StreamCapsule(columns::ReadBatches(batch.schema, std::move(batches)));
  }
};

nb::dict Reconcile(SilverCall& self, std::int64_t bucket_rows, double sample,
                   const std::string& report_location, double capture_wait_seconds,
                   const std::optional<std::uint64_t>& seed) {
  if (seed) self.SetSeed(*seed);
  runtime::ReconcileOptions options;
  options.bucket_rows = bucket_rows;
  options.sample = sample;
  options.report_location = report_location;
  options.capture_wait_ms_max = static_cast<std::int64_t>(capture_wait_seconds * 1000);
  const runtime::ReconcileOutcome outcome =
      Free([&] { return self.Reconcile(options); });
  nb::dict told;
  told["run_id"] = outcome.run_id;
  told["silver_version"] = outcome.silver_version;
  told["silver_lsn"] = outcome.silver_lsn;
  told["source_lsn"] = outcome.source_lsn;
  told["buckets"] = outcome.buckets.size();
  told["match"] = outcome.match;
  told["in_flight"] = outcome.in_flight;
  told["mismatch"] = outcome.mismatch;
  told["hashed"] = outcome.hashed;
  told["failures"] = outcome.failures;
  told["may_pass"] = outcome.may_pass();
  told["scans_are_shown"] = outcome.scans_are_shown;
  told["open_snapshot_lsn"] = outcome.open_snapshot_lsn;
  told["report"] = Rows{outcome.report};
  return told;
}

nb::dict ReadControl(ControlCall& self, const std::string& table_name) {
  const pipeline::ControlRow row = Free([&] { return self.table().Read(table_name); });
  nb::dict told;
  told["finalized_until_us"] = row.finalized_until;
  told["updated_at_us"] = row.updated_at;
  told["open_snapshot_lsn"] = row.open_snapshot_lsn;
  return told;
}

std::optional<std::int64_t> AdvanceControl(ControlCall& self,
                                           const std::string& table_name,
                                           const Cell& end,
                                           const std::string& granularity) {
  const pipeline::Granularity period = Take(pipeline::ParseGranularity(granularity));
  std::optional<cdc::Offset> to;
  if (end) to = Take(cdc::Offset::Parse(*end));
  return Free([&] { return self.table().Advance(table_name, to, period); });
}

void DefineCalls(nb::module_& module) {
  module.def("backfill", &RunBackfill, nb::arg("options"), nb::arg("tokens").none(),
             nb::arg("places"), nb::arg("settings"));
  nb::class_<Rows>(module, "Rows")
      .def("__arrow_c_stream__", &Rows::Stream,
           nb::arg("requested_schema") = nb::none());
  nb::class_<SilverCall>(module, "Silver")
      .def_static("open", &OpenSilver, nb::arg("options").none(),
                  nb::arg("tokens").none(), nb::arg("places"), nb::arg("keys"))
      .def("apply", &Apply)
      .def("reconcile", &Reconcile, nb::arg("bucket_rows"), nb::arg("sample"),
           nb::arg("report_location"), nb::arg("capture_wait_seconds"),
           nb::arg("seed").none());
  nb::class_<ControlCall>(module, "Control")
      .def(nb::init<std::string>())
      .def("ensure",
           [](ControlCall& self) { Free([&] { return self.table().Ensure(); }); })
      .def("read", &ReadControl)
      .def("advance", &AdvanceControl, nb::arg("table_name"), nb::arg("end").none(),
           nb::arg("granularity"));
}

// From the tables that decide here.
void DefineLists(nb::module_& module) {
  module.def("source_options", [] {
    std::vector<std::string> names;
    for (const cdc::OptionRow& row : cdc::kOptionTable) {
      if (row.group == cdc::OptionGroup::kSource) names.emplace_back(row.name);
    }
    return names;
  });
  module.def("facts_definition", [] { return DefinitionOf(pipeline::FactsTable()); });
  module.def("control_definition",
             [] { return DefinitionOf(pipeline::ControlTable()); });
  module.def("report_definition", [] { return DefinitionOf(pipeline::ReportTable()); });
  module.def("bronze_definition", [](const std::string& columns, bool command_id) {
    return DefinitionOf(
        pipeline::BronzeTable(Take(cdc::ParseColumnsOption(columns)), command_id));
  });
  module.def("metadata_columns", [](bool command_id) {
    return cdc::ColumnsDdl(cdc::MetadataColumns(command_id));
  });
  module.def("plans_table_of",
             [](const std::string& target) { return pipeline::PlansTableOf(target); });
  module.def("truncate", [](std::int64_t utc_us, const std::string& granularity) {
    return pipeline::Truncate(utc_us, Take(pipeline::ParseGranularity(granularity)));
  });
  module.def("normalize_lsn", [](const std::string& text) {
    return Take(cdc::Lsn::Parse(text)).Text();
  });
  module.def("check_options", [](const Options& options) {
    return Take(cdc::ParseSourceOptions(options)).others;
  });
}

}  // namespace

void DefineTables(nb::module_& module) {
  DefineCalls(module);
  DefineLists(module);
}

}  // namespace mssql_cdc::extension
