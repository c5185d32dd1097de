#include "edge.h"

#include <cstdint>

#include "driver_session.h"
#include "raised.h"

namespace mssql_cdc::extension {
namespace {

// What the Python function raised that C++ called last, perhaps from a thread of its
// own. Guarded by the GIL.
nb::object* pending = nullptr;

void KeepRaised(nb::python_error& raised) {
  delete std::exchange(pending, new nb::object(ExceptionOf(raised)));
}

// Errors that stand for a Python function's failure.
bool IsOfFunction(const Error& error) {
  return error.id() == ErrorId::kTokenRefused || error.id() == ErrorId::kLakeFailed;
}

}  // namespace

void ForgetRaised() { delete std::exchange(pending, nullptr); }

void RaiseObject(const nb::object& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())),
                  exception.ptr());
  throw nb::python_error();
}

void Raise(const Error& error) {
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

std::optional<nb::object> HeardInterrupt() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return std::nullopt;
  nb::python_error raised;
  return ExceptionOf(raised);
}

namespace {

// Kept for good, as the link that calls it is.
PyObject* KeepForever(const nb::object& object) {
  return nb::object(object).release().ptr();
}

}  // namespace

Access AccessBy(const nb::object& given) {
  Access access;
  if (given.is_none()) return access;
  if (nb::hasattr(given, "connect")) {
    PyObject* const kept = KeepForever(given.attr("connect"));
    access.connect = [kept] { return OpenDriverSession(nb::handle(kept)); };
    return access;
  }
  PyObject* const kept = KeepForever(given);
  access.token = [kept]() -> Result<Secret> {
    const nb::gil_scoped_acquire gil;
    try {
      return Secret(nb::cast<std::string>(nb::handle(kept)()));
    } catch (nb::python_error& raised) {
      KeepRaised(raised);
    } catch (const nb::cast_error&) {
    }
    return Error(ErrorId::kTokenRefused).With("provider", "tokenProvider");
  };
  return access;
}

ArrowArrayStream* StreamOf(const nb::object& rows, nb::object& keeps) {
  keeps = rows.attr("__arrow_c_stream__")();
  auto* stream = static_cast<ArrowArrayStream*>(
      PyCapsule_GetPointer(keeps.ptr(), "arrow_array_stream"));
  if (stream == nullptr) throw nb::python_error();
  return stream;
}

SparkLake::WriteSnapshot SnapshotsBy(const nb::callable& write) {
  // Copied and dropped while the GIL is free.
  const std::shared_ptr<nb::callable> kept(new nb::callable(write),
                                           [](nb::callable* last) {
                                             const nb::gil_scoped_acquire gil;
                                             delete last;
                                           });
  return [kept](const std::string& metadata,
                const std::optional<lake::Txn>& txn) -> Result<std::int64_t> {
    const nb::gil_scoped_acquire gil;
    try {
      nb::object app_id = txn ? nb::cast(txn->app_id) : nb::none();
      return nb::cast<std::int64_t>((*kept)(metadata, app_id, txn ? txn->version : 0));
    } catch (nb::python_error& raised) {
      KeepRaised(raised);
    } catch (const nb::cast_error&) {
    }
    return Error(ErrorId::kLakeFailed).With("reason", "Spark's write of the snapshot");
  };
}

nb::capsule StreamCapsule(std::unique_ptr<columns::BatchReader> rows) {
  auto* stream = new ArrowArrayStream;
  columns::ExportStream(std::move(rows), stream, nullptr);
  return nb::capsule(stream, "arrow_array_stream", [](void* held) noexcept {
    auto* made = static_cast<ArrowArrayStream*>(held);
    if (made->release != nullptr) made->release(made);
    delete made;
  });
}

}  // namespace mssql_cdc::extension
