// The edge between two languages: an Error becomes the exception that
// mssql_cdc._errors.make chooses, a Python exception on the way through C++ comes out
// again as it was. The GIL is free while C++ works.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "columns/arrow_abi.h"
#include "columns/batch.h"
#include "extension/links.h"
#include "extension/spark_lake.h"

namespace nb = nanobind;

namespace mssql_cdc::extension {

// What a stage of the module defines.
void DefineSource(nb::module_& module);
void DefineDriver(nb::module_& module);
void DefineTables(nb::module_& module);

// Forgets an exception that nobody came for.
void ForgetRaised();
[[noreturn]] void RaiseObject(const nb::object& exception);
[[noreturn]] void Raise(const Error& error);

template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) Raise(result.error());
  return std::move(result).value();
}

// Runs `work` without the GIL.
template <typename F>
auto Free(F work) {
  ForgetRaised();
  auto result = [&work] {
    const nb::gil_scoped_release release;
    return work();
  }();
  return Take(std::move(result));
}

// Whether `work` is done, after waiting for it a moment without the GIL.
template <typename T>
bool IsReady(const std::future<T>& work) {
  std::optional<nb::gil_scoped_release> release;
  if (PyGILState_Check() != 0) release.emplace();
  return work.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready;
}

// What Ctrl-C raised, if it was pressed.
std::optional<nb::object> HeardInterrupt();

// Runs `work` on a thread of its own, so that Ctrl-C is heard meanwhile: then `stop`
// ends it soon.
template <typename F, typename S>
auto FreeUntilInterrupted(F work, S stop) {
  ForgetRaised();
  auto running = std::async(std::launch::async, std::move(work));
  std::optional<nb::object> interrupt;
  while (!IsReady(running)) {
    if (interrupt) continue;
    interrupt = HeardInterrupt();
    if (interrupt) stop();
  }
  auto result = running.get();
  if (interrupt) RaiseObject(*interrupt);
  return Take(std::move(result));
}

// A Python function that gives a token, or an object whose connect() gives a driver's
// connection; called from any thread.
Access AccessBy(const nb::object& given);
// A Python function that writes a snapshot, called from any thread.
SparkLake::WriteSnapshot SnapshotsBy(const nb::callable& write);

// For another library's hand, by Arrow's C stream interface.
nb::capsule StreamCapsule(std::unique_ptr<columns::BatchReader> rows);

// What an object of another library exports; the stream is `keeps`' until it is taken
// over.
ArrowArrayStream* StreamOf(const nb::object& rows, nb::object& keeps);

using Cell = std::optional<std::string>;

}  // namespace mssql_cdc::extension
