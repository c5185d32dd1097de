// The extension mssql_cdc._core: handles of src/extension for Python.
//
// The edge between two languages: an Error becomes the exception that
// mssql_cdc._errors.make chooses, a Python exception on the way through C++ comes out
// again as it was. The GIL is free while C++ works.

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "cdc/option_table.h"
#include "cdc/output_columns.h"
#include "cdc/spark_ddl.h"
#include "extension/change_source.h"
#include "extension/scan.h"
#include "extension/snapshot_source.h"
#include "extension/stream_driver.h"
#include "pipeline/tables.h"

namespace nb = nanobind;

namespace mssql_cdc::extension {
namespace {

// What the Python function raised that C++ called last, perhaps from a thread of its
// own. Guarded by the GIL.
nb::object* pending = nullptr;

void KeepRaised(nb::python_error& raised) {
  delete std::exchange(pending, new nb::object(nb::borrow(raised.value())));
}

// Errors that stand for a Python function's failure.
bool IsOfFunction(const Error& error) {
  return error.id() == ErrorId::kTokenRefused || error.id() == ErrorId::kLakeFailed;
}

[[noreturn]] void RaiseObject(const nb::object& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())),
                  exception.ptr());
  throw nb::python_error();
}

[[noreturn]] void Raise(const Error& error) {
  if (pending != nullptr && IsOfFunction(error)) {
    const std::unique_ptr<nb::object> raised(std::exchange(pending, nullptr));
    RaiseObject(*raised);
  }
  nb::dict facts;
  for (const auto& [name, value] : error.facts()) {
    if (!facts.contains(name.c_str())) facts[name.c_str()] = value;
  }
  const std::string name(RuleOf(error.id()).name);
  RaiseObject(nb::module_::import_("mssql_cdc._errors")
                  .attr("make")(name, error.Code(), error.Text(), facts));
}

template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) Raise(result.error());
  return std::move(result).value();
}

// Runs `work` without the GIL.
template <typename F>
auto Free(F work) {
  delete std::exchange(pending, nullptr);
  auto result = [&work] {
    const nb::gil_scoped_release release;
    return work();
  }();
  return Take(std::move(result));
}

// A Python function that gives a token, called from any thread.
TokenCall TokensFrom(const nb::object& function) {
  if (function.is_none()) return {};
  // Kept for good, as the link that calls it is.
  PyObject* const kept = nb::object(function).release().ptr();
  return [kept]() -> Result<Secret> {
    const nb::gil_scoped_acquire gil;
    try {
      return Secret(nb::cast<std::string>(nb::handle(kept)()));
    } catch (nb::python_error& raised) {
      KeepRaised(raised);
    } catch (const nb::cast_error&) {
    }
    return Error(ErrorId::kTokenRefused).With("provider", "tokenProvider");
  };
}

SparkLake::WriteSnapshot SnapshotsBy(const nb::callable& write) {
  // Copied and dropped while the GIL is free.
  const std::shared_ptr<nb::callable> kept(new nb::callable(write),
                                           [](nb::callable* last) {
                                             const nb::gil_scoped_acquire gil;
                                             delete last;
                                           });
  return [kept](const std::string& metadata) -> Result<std::int64_t> {
    const nb::gil_scoped_acquire gil;
    try {
      return nb::cast<std::int64_t>((*kept)(metadata));
    } catch (nb::python_error& raised) {
      KeepRaised(raised);
    } catch (const nb::cast_error&) {
    }
    return Error(ErrorId::kLakeFailed).With("reason", "Spark's write of the snapshot");
  };
}

// What is left of a read that failed, for the exception.
struct Failure {
  std::optional<Error> error;
  std::optional<nb::object> interrupt;
};

// Pulls a scan from a thread of its own, so that Ctrl-C is heard meanwhile.
class Interruptible final : public columns::BatchReader {
 public:
  Interruptible(std::shared_ptr<Scan> scan, std::shared_ptr<Failure> failure)
      : scan_(std::move(scan)), failure_(std::move(failure)) {}

  columns::SchemaPtr schema() const override { return scan_->schema(); }

  Result<std::optional<columns::RecordBatch>> Next() override {
    auto next = std::async(std::launch::async, [this] { return scan_->Next(); });
    while (!IsReady(next)) Listen();
    auto batch = next.get();
    if (!batch.ok()) failure_->error = batch.error();
    return batch;
  }

 private:
  template <typename T>
  static bool IsReady(const std::future<T>& next) {
    std::optional<nb::gil_scoped_release> release;
    if (PyGILState_Check() != 0) release.emplace();
    return next.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready;
  }

  void Listen() {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() == 0) return;
    nb::python_error raised;
    if (!failure_->interrupt) failure_->interrupt = nb::borrow(raised.value());
    scan_->Cancel();
  }

  std::shared_ptr<Scan> scan_;
  std::shared_ptr<Failure> failure_;
};

struct ScanHandle {
  std::shared_ptr<Scan> scan;
  std::shared_ptr<Failure> failure = std::make_shared<Failure>();

  nb::capsule Stream(const nb::object&) const {
    auto* stream = new ArrowArrayStream;
    columns::ExportStream(std::make_unique<Interruptible>(scan, failure), stream,
                          nullptr);
    return nb::capsule(stream, "arrow_array_stream", [](void* held) noexcept {
      auto* made = static_cast<ArrowArrayStream*>(held);
      if (made->release != nullptr) made->release(made);
      delete made;
    });
  }
  void RaiseFailure() const {
    if (failure->interrupt) RaiseObject(*failure->interrupt);
    if (failure->error) Raise(*failure->error);
  }
};

ScanHandle ScanChanges(const Options& options, const nb::object& tokens,
                       const std::string& task) {
  const TokenCall call = TokensFrom(tokens);
  return {Free([&] { return Scan::OfChanges(options, call, task); })};
}
ScanHandle ScanSnapshot(const Options& options, const nb::object& tokens,
                        const std::string& task) {
  const TokenCall call = TokensFrom(tokens);
  return {Free([&] { return Scan::OfSnapshot(options, call, task); })};
}

cdc::Offset ParseOffset(const std::string& json) {
  return Take(cdc::Offset::Parse(json));
}

std::string ColumnsText(const columns::Schema& schema) {
  return cdc::ColumnsDdl(schema.fields);
}

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

// Takes over what an object of another library exports.
ArrowArrayStream* StreamOf(const nb::object& rows, nb::object& keeps) {
  keeps = rows.attr("__arrow_c_stream__")();
  auto* stream = static_cast<ArrowArrayStream*>(
      PyCapsule_GetPointer(keeps.ptr(), "arrow_array_stream"));
  if (stream == nullptr) throw nb::python_error();
  return stream;
}

// For a catalog's CREATE TABLE: columns as (name, type, comment), comment, properties.
auto DefinitionOf(const pipeline::TableDefinition& definition) {
  std::vector<std::tuple<std::string, std::string, std::string>> columns;
  for (const columns::Field& field : definition.schema.fields) {
    columns.emplace_back(field.name, cdc::SparkTypeName(field.type), field.comment);
  }
  return std::make_tuple(std::move(columns), definition.description,
                         definition.properties);
}

void DefineSource(nb::module_& module) {
  nb::class_<ChangeSource>(module, "ChangeSource")
      .def_static(
          "open",
          [](const Options& options, const nb::object& tokens,
             const std::string& notes) {
            const TokenCall call = TokensFrom(tokens);
            return Free([&] { return ChangeSource::Open(options, call, notes); });
          },
          nb::arg("options"), nb::arg("tokens").none(), nb::arg("notes"))
      .def("schema",
           [](ChangeSource& self) {
             return ColumnsText(Free([&] { return self.Schema(); }));
           })
      .def("initial_offset",
           [](ChangeSource& self) {
             return Free([&] { return self.InitialOffset(); }).Json();
           })
      .def("freeze_end",
           [](ChangeSource& self) { Free([&] { return self.FreezeEnd(); }); })
      .def("newest_offset",
           [](ChangeSource& self) -> std::optional<std::string> {
             const auto newest = Free([&] { return self.NewestOffset(); });
             if (!newest) return std::nullopt;
             return newest->Json();
           })
      .def("latest_offset",
           [](ChangeSource& self, const std::string& start) {
             const cdc::Offset from = ParseOffset(start);
             return Free([&] { return self.LatestOffset(from); }).Json();
           })
      .def("plan",
           [](ChangeSource& self, const std::string& start, const std::string& end) {
             const cdc::Offset from = ParseOffset(start);
             const cdc::Offset to = ParseOffset(end);
             PlannedReads reads = Free([&] { return self.Plan(from, to); });
             return std::make_pair(std::move(reads.summary), std::move(reads.tasks));
           })
      .def("commit",
           [](ChangeSource& self, const std::string& end) {
             const cdc::Offset to = ParseOffset(end);
             Free([&] { return self.Commit(to); });
           })
      .def("take_warnings", &ChangeSource::TakeWarnings);
}

void DefineScan(nb::module_& module) {
  nb::class_<ScanHandle>(module, "Scan")
      .def("__arrow_c_stream__", &ScanHandle::Stream,
           nb::arg("requested_schema") = nb::none())
      .def("report", [](const ScanHandle& self) { return self.scan->Report(); })
      .def("cancel", [](const ScanHandle& self) { self.scan->Cancel(); })
      .def("raise_failure", &ScanHandle::RaiseFailure);
  module.def("scan_changes", &ScanChanges, nb::arg("options"), nb::arg("tokens").none(),
             nb::arg("task"));
  module.def("scan_snapshot", &ScanSnapshot, nb::arg("options"),
             nb::arg("tokens").none(), nb::arg("task"));
  module.def(
      "plan_snapshot",
      [](const Options& options, const nb::object& tokens) {
        const TokenCall call = TokensFrom(tokens);
        PlannedSnapshot planned = Free([&] { return PlanSnapshot(options, call); });
        return std::make_pair(planned.stamp.Json(), std::move(planned.tasks));
      },
      nb::arg("options"), nb::arg("tokens").none());
}

using Cell = std::optional<std::string>;

std::unique_ptr<StreamDriver> OpenDriver(
    const std::optional<Options>& options, const nb::object& tokens,
    const std::map<std::string, std::string>& place, bool bootstrap) {
  const auto text = [&place](const char* name) {
    const auto found = place.find(name);
    return found == place.end() ? std::string() : found->second;
  };
  const StreamPlace at{
      text("target"),      text("target_location"), text("app_id"), text("checkpoint"),
      text("facts_table"), text("facts_location"),  bootstrap};
  const TokenCall call = TokensFrom(tokens);
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

std::string TakeSnapshot(StreamDriver& self, const nb::callable& write, bool again) {
  const SparkLake::WriteSnapshot writes = SnapshotsBy(write);
  return Free([&] { return self.Snapshot(writes, again); }).Json();
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

void DefineDriver(nb::module_& module) {
  nb::class_<StreamDriver>(module, "StreamDriver")
      .def_static("open", &OpenDriver, nb::arg("options").none(),
                  nb::arg("tokens").none(), nb::arg("place"), nb::arg("bootstrap"))
      .def("target_definition",
           [](StreamDriver& self) {
             return DefinitionOf(Free([&] { return self.TargetDefinition(); }));
           })
      .def("prepare", &PrepareStream)
      .def("snapshot", &TakeSnapshot)
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
      .def("stop", &StreamDriver::Stop)
      .def("take_warnings", &StreamDriver::TakeWarnings);
}

// What Python lists for its callers, from the tables that decide here.
void DefineTables(nb::module_& module) {
  module.def("source_options", [] {
    std::vector<std::string> names;
    for (const cdc::OptionRow& row : cdc::kOptionTable) {
      if (row.group == cdc::OptionGroup::kSource) names.emplace_back(row.name);
    }
    return names;
  });
  module.def("facts_definition", [] { return DefinitionOf(pipeline::FactsTable()); });
  module.def("bronze_definition", [](const std::string& columns, bool command_id) {
    return DefinitionOf(
        pipeline::BronzeTable(Take(cdc::ParseColumnsOption(columns)), command_id));
  });
  module.def("metadata_columns", [](bool command_id) {
    return ColumnsText({cdc::MetadataColumns(command_id)});
  });
  module.def("normalize_lsn", [](const std::string& text) {
    return Take(cdc::Lsn::Parse(text)).Text();
  });
  module.def("check_options", [](const Options& options) {
    return Take(cdc::ParseSourceOptions(options)).others;
  });
}

}  // namespace
}  // namespace mssql_cdc::extension

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // Links outlive the module on purpose.
  mssql_cdc::extension::DefineSource(module);
  mssql_cdc::extension::DefineScan(module);
  mssql_cdc::extension::DefineDriver(module);
  mssql_cdc::extension::DefineTables(module);
}
