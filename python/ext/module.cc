// The extension mssql_cdc._core: handles of src/extension for Python.

#include "edge.h"

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // Links outlive the module on purpose.
  mssql_cdc::extension::DefineSource(module);
  mssql_cdc::extension::DefineDriver(module);
  mssql_cdc::extension::DefineTables(module);
}
