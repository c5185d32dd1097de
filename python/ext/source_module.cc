// Planner and tasks: what Spark's data source calls.

#include <future>

#include "cdc/output_columns.h"
#include "cdc/spark_ddl.h"
#include "edge.h"
#include "extension/change_source.h"
#include "extension/scan.h"
#include "extension/snapshot_source.h"

namespace mssql_cdc::extension {
namespace {

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
  void Listen() {
    std::optional<nb::object> interrupt = HeardInterrupt();
    if (!interrupt) return;
    const nb::gil_scoped_acquire gil;
    if (!failure_->interrupt) failure_->interrupt = std::move(*interrupt);
    scan_->Cancel();
  }

  std::shared_ptr<Scan> scan_;
  std::shared_ptr<Failure> failure_;
};

struct ScanHandle {
  std::shared_ptr<Scan> scan;
  std::shared_ptr<Failure> failure = std::make_shared<Failure>();

  nb::capsule Stream(const nb::object&) const {
    return StreamCapsule(std::make_unique<Interruptible>(scan, failure));
  }
  void RaiseFailure() const {
    if (failure->interrupt) RaiseObject(*failure->interrupt);
    if (failure->error) Raise(*failure->error);
  }
};

ScanHandle ScanChanges(const Options& options, const nb::object& tokens,
                       const std::string& task) {
  const Access call = AccessBy(tokens);
  return {Free([&] { return Scan::OfChanges(options, call, task); })};
}
ScanHandle ScanSnapshot(const Options& options, const nb::object& tokens,
                        const std::string& task) {
  const Access call = AccessBy(tokens);
  return {Free([&] { return Scan::OfSnapshot(options, call, task); })};
}

cdc::Offset ParseOffset(const std::string& json) {
  return Take(cdc::Offset::Parse(json));
}

void DefineChanges(nb::module_& module) {
  nb::class_<ChangeSource>(module, "ChangeSource")
      .def_static(
          "open",
          [](const Options& options, const nb::object& tokens,
             const std::string& notes) {
            const Access call = AccessBy(tokens);
            return Free([&] { return ChangeSource::Open(options, call, notes); });
          },
          nb::arg("options"), nb::arg("tokens").none(), nb::arg("notes"))
      .def("schema",
           [](ChangeSource& self) {
             return cdc::ColumnsDdl(Free([&] { return self.Schema(); }).fields);
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
        const Access call = AccessBy(tokens);
        PlannedSnapshot planned = Free([&] { return PlanSnapshot(options, call); });
        return std::make_pair(planned.stamp.Json(), std::move(planned.tasks));
      },
      nb::arg("options"), nb::arg("tokens").none());
}

}  // namespace

void DefineSource(nb::module_& module) {
  DefineChanges(module);
  DefineScan(module);
}

}  // namespace mssql_cdc::extension
