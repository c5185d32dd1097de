// The driver's side of one stream: what comes before the query, and its sink.

#include <algorithm>

#include "cdc/spark_ddl.h"
#include "definition.h"
#include "edge.h"
#include "extension/stream_driver.h"
#include "pipeline/facts.h"

namespace mssql_cdc::extension {
namespace {

std::optional<BatchSummary> ParseSummary(const std::optional<std::string>& json) {
  if (!json) return std::nullopt;
  return Take(BatchSummary::Parse(*json));
}

std::vector<ReadReport> ParseReports(const std::vector<std::string>& texts) {
  std::vector<ReadReport> reports;
  for (const std::string& text : texts)
    reports.push_back(Take(ReadReport::Parse(text)));
  std::sort(
      reports.begin(), reports.end(),
      [](const ReadReport& a, const ReadReport& b) { return a.window < b.window; });
  return reports;
}

// Counts that Spark made, as a dictionary; None: what the reads' reports add up to.
pipeline::BatchCounts CountsFrom(const nb::object& given,
                                 const std::vector<ReadReport>& reads) {
  if (given.is_none()) return SumCounts(reads);
  const nb::dict counts = nb::cast<nb::dict>(given);
  const auto number = [&](const char* name) {
    return nb::cast<std::optional<std::int64_t>>(counts[name]);
  };
  const auto lsn = [&](const char* name) -> std::optional<cdc::Lsn> {
    const auto text = nb::cast<std::optional<std::string>>(counts[name]);
    if (!text) return std::nullopt;
    return Take(cdc::Lsn::Parse(*text));
  };
  pipeline::BatchCounts made;
  made.rows = number("rows").value_or(0);
  made.deletes = number("deletes").value_or(0);
  made.inserts = number("inserts").value_or(0);
  made.updates = number("updates").value_or(0);
  made.min_lsn = lsn("min_lsn");
  made.max_lsn = lsn("max_lsn");
  made.min_commit_us = number("min_commit_us");
  made.max_commit_us = number("max_commit_us");
  return made;
}

const char* NameOf(pipeline::SinkWork work) {
  switch (work) {
    case pipeline::SinkWork::kEverything:
      return "everything";
    case pipeline::SinkWork::kFacts:
      return "facts";
    case pipeline::SinkWork::kNothing:
      return "nothing";
  }
  return "everything";
}

// Reads what Python tells of a stream: texts by name.
StreamPlace PlaceFrom(const std::map<std::string, std::string>& place, bool bootstrap) {
  const auto text = [&place](const char* name) {
    const auto found = place.find(name);
    return found == place.end() ? std::string() : found->second;
  };
  StreamPlace at{text("target"),     text("target_location"), text("app_id"),
                 text("checkpoint"), text("facts_table"),     text("facts_location"),
                 bootstrap};
  if (text("on_data_loss") == "resnapshot") {
    at.on_data_loss = runtime::OnDataLoss::kResnapshot;
  }
  if (text("snapshot") == "chunked") at.snapshot = pipeline::SnapshotMode::kChunked;
  at.snapshot_on_switch = text("snapshot_on_switch") == "true";
  return at;
}

std::unique_ptr<StreamDriver> OpenDriver(
    const std::optional<Options>& options, const nb::object& tokens,
    const std::map<std::string, std::string>& place, bool bootstrap,
    double resnapshot_interval_days) {
  StreamPlace at = PlaceFrom(place, bootstrap);
  at.resnapshot_interval_days = resnapshot_interval_days;
  const Access call = AccessBy(tokens);
  return Free([&] {
    return options ? StreamDriver::Open(*options, call, at)
                   : StreamDriver::OpenSink(at);
  });
}

auto PrepareStream(StreamDriver& self, const nb::callable& write) {
  const SparkLake::WriteSnapshot writes = SnapshotsBy(write);
  const PreparedStream made = Free([&] { return self.Prepare(writes); });
  return std::make_tuple(made.sink_id, made.directory,
                         made.initial ? Cell(made.initial->Json()) : Cell());
}

// Where a snapshot stands, as an offset; and its rows, where it was taken now.
std::pair<std::string, std::optional<std::int64_t>> Told(
    const runtime::SnapshotSummary& summary) {
  return {Take(cdc::Offset::Parse("{\"lsn\":\"" + summary.lsn + "\",\"commit_ts\":\"" +
                                  summary.commit_ts + "\"}"))
              .Json(),
          summary.row_count};
}

auto TakeSnapshot(StreamDriver& self, const nb::callable& write, bool again) {
  const SparkLake::WriteSnapshot writes = SnapshotsBy(write);
  return Told(Free([&] { return self.Snapshot(writes, again); }));
}

// `copy`: the columns as Spark DDL.
auto SeedTarget(StreamDriver& self, const nb::callable& write, const std::string& copy,
                const std::string& as_of, bool allow_missing_columns, bool reseed) {
  const SparkLake::WriteSnapshot writes = SnapshotsBy(write);
  columns::Schema schema{Take(cdc::ParseColumnsOption(copy))};
  return Told(Free([&] {
    return self.Seed(writes, std::move(schema),
                     {"", as_of, allow_missing_columns, reseed});
  }));
}

std::string LookAt(StreamDriver& self, std::int64_t batch_id, const Cell& summary) {
  const auto parsed = ParseSummary(summary);
  return NameOf(Free([&] { return self.Look(batch_id, parsed); }));
}

// Whether the rows were not there yet.
bool AppendRows(StreamDriver& self, std::int64_t batch_id, const nb::object& rows,
                const std::optional<std::vector<std::string>>& reads) {
  nb::object keeps;
  ArrowArrayStream* const stream = StreamOf(rows, keeps);
  std::optional<pipeline::BatchCounts> counts;
  if (reads) counts = SumCounts(ParseReports(*reads));
  return Free([&] { return self.Append(batch_id, stream, counts); }) ==
         lake::AppendOutcome::kCommitted;
}

nb::object CountsInLog(StreamDriver& self, std::int64_t batch_id) {
  const auto counts = Free([&] { return self.CountsInLog(batch_id); });
  if (!counts) return nb::none();
  const auto text = [](const std::optional<cdc::Lsn>& lsn) {
    return lsn ? Cell(lsn->Text()) : Cell();
  };
  nb::dict made;
  made["rows"] = counts->rows;
  made["deletes"] = counts->deletes;
  made["inserts"] = counts->inserts;
  made["updates"] = counts->updates;
  made["min_lsn"] = text(counts->min_lsn);
  made["max_lsn"] = text(counts->max_lsn);
  made["min_commit_us"] = counts->min_commit_us;
  made["max_commit_us"] = counts->max_commit_us;
  return made;
}

void RecordBatchFacts(StreamDriver& self, std::int64_t batch_id,
                      std::int64_t started_at_us, std::int64_t duration_ms,
                      const nb::object& counts, const Cell& summary,
                      const std::vector<std::string>& reads) {
  StreamDriver::BatchRecord record{
      batch_id, started_at_us,         duration_ms,
      {},       ParseSummary(summary), ParseReports(reads)};
  record.counts = CountsFrom(counts, record.reads);
  Free([&] { return self.Record(record); });
}

void FinishBatch(StreamDriver& self, std::int64_t batch_id, const Cell& summary) {
  const auto parsed = ParseSummary(summary);
  if (parsed) Free([&] { return self.FinishBatch(batch_id, *parsed); });
}

}  // namespace

void DefineDriver(nb::module_& module) {
  nb::class_<StreamDriver>(module, "StreamDriver")
      .def_static("open", &OpenDriver, nb::arg("options").none(),
                  nb::arg("tokens").none(), nb::arg("place"), nb::arg("bootstrap"),
                  nb::arg("resnapshot_interval_days") = 7.0)
      .def("target_definition",
           [](StreamDriver& self) {
             return DefinitionOf(Free([&] { return self.TargetDefinition(); }));
           })
      .def("prepare", &PrepareStream)
      .def("snapshot", &TakeSnapshot)
      .def("seed", &SeedTarget)
      .def("look", &LookAt, nb::arg("batch_id"), nb::arg("summary").none())
      .def("append", &AppendRows, nb::arg("batch_id"), nb::arg("rows"),
           nb::arg("reads").none())
      .def("metadata",
           [](StreamDriver& self, std::int64_t batch_id) {
             return pipeline::BatchMetadata(std::nullopt, batch_id, self.sink_id());
           })
      .def("counts_in_log", &CountsInLog)
      .def("record", &RecordBatchFacts, nb::arg("batch_id"), nb::arg("started_at_us"),
           nb::arg("duration_ms"), nb::arg("counts").none(), nb::arg("summary").none(),
           nb::arg("reads"))
      .def("finish_batch", &FinishBatch, nb::arg("batch_id"), nb::arg("summary").none())
      .def("stop", &StreamDriver::Stop)
      .def("take_warnings", &StreamDriver::TakeWarnings);
}

}  // namespace mssql_cdc::extension
