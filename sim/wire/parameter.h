// Reads the typed values that RPC parameters carry (MS-TDS 2.2.5.4 to 2.2.5.6).

#pragma once

#include <cstdint>
#include <optional>

#include "sim/value.h"
#include "sim/wire/bytes.h"
#include "sim/wire/collation.h"
#include "sim/wire/login.h"
#include "tds/spec.h"

namespace mssql_cdc::sim::wire {

// TYPE_INFO, and what of it the value's bytes depend on.
struct WireType {
  tds::DataType token = tds::DataType::kNull;
  SqlType type;
  std::uint32_t size_bytes_max = 0;
  bool is_max = false;  // The value comes in chunks.
  std::uint16_t code_page = 1252;
};

// nullopt: a type that parameters cannot have here, or broken bytes; `reader` is failed
// in the second case only.
std::optional<WireType> ReadTypeInfo(ByteReader& reader, TdsVersion version);
// Fails `reader` if the bytes are no such value.
Value ReadValue(ByteReader& reader, const WireType& type);

}  // namespace mssql_cdc::sim::wire
