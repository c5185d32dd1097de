// A Python exception as an object.

#pragma once

#include <nanobind/nanobind.h>

namespace mssql_cdc::extension {

// Requires the GIL. Takes the exception out of `raised`, which is not thrown again.
// Before Python 3.12 what C raised may be a class and a text, or a class alone, until
// somebody asks for it.
inline nanobind::object ExceptionOf(nanobind::python_error& raised) {
#if PY_VERSION_HEX >= 0x030C0000
  return nanobind::borrow(raised.value());
#else
  raised.restore();
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return nanobind::steal(value);
#endif
}

}  // namespace mssql_cdc::extension
