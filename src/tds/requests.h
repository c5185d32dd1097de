// Requests as a client sends them after the login: SQL batch, sp_executesql, attention.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tds/spec.h"

namespace mssql_cdc::tds {

// A value bound to a parameter of a request.
struct Parameter {
  enum class Kind : std::uint8_t {
    kNVarChar,   // text (UTF-8 here, UTF-16 on the wire)
    kVarBinary,  // bytes
    kBinary10,   // an LSN: exactly ten bytes
    kBigInt,
  };
  std::string name;  // With its @.
  Kind kind = Kind::kNVarChar;
  // nullopt: NULL, of every kind but kBigInt.
  std::optional<std::string> bytes = std::nullopt;
  std::int64_t integer = 0;  // Of kBigInt.
};

// What a request says about the session it is sent in.
struct RequestContext {
  std::uint64_t transaction_descriptor = 0;
  std::array<std::uint8_t, 5> collation{};  // The server's, for text parameters.
};

// The payload of a kSqlBatch message.
std::vector<std::uint8_t> EncodeBatch(std::string_view sql,
                                      const RequestContext& context);

// The payload of a kRpc message that calls sp_executesql. Requires at least one
// parameter, and ten bytes (or NULL) in each kBinary10.
std::vector<std::uint8_t> EncodeExecuteSql(std::string_view sql,
                                           const std::vector<Parameter>& parameters,
                                           const RequestContext& context);

}  // namespace mssql_cdc::tds
