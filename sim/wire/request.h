// What a logged-in client asks for: SQL batches, procedure calls, transaction manager
// requests. Pure: the body of a message in, values out; nullopt for whatever breaks the
// layout.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/session.h"
#include "sim/value.h"
#include "sim/wire/login.h"

namespace mssql_cdc::sim::wire {

// The text of an SQL batch (MS-TDS 2.2.6.7), as UTF-8.
std::optional<std::string> ParseBatch(std::span<const std::uint8_t> body,
                                      TdsVersion version);

struct RpcParameter {
  std::string name;
  bool by_reference = false;
  bool uses_default = false;
  SqlType type;
  Value value;
};

struct RpcCall {
  std::optional<std::uint16_t> id;
  std::string name;  // As written; empty with an id.
  std::vector<RpcParameter> parameters;
};

// The calls of one RPC message (2.2.6.6). A parameter of a type this server does not
// take (table-valued, CLR) ends the list: nothing behind it can be found.
struct RpcRequest {
  std::vector<RpcCall> calls;
  struct RefusedType {
    std::uint8_t type = 0;
    std::size_t index = 0;  // Of the parameter in its call, from 0.
    std::string name;
  };
  std::optional<RefusedType> refused;
};
std::optional<RpcRequest> ParseRpc(std::span<const std::uint8_t> body,
                                   TdsVersion version);

// MS-TDS 2.2.6.9.
struct TransactionRequest {
  enum class Kind : std::uint8_t { kBegin, kCommit, kRollback, kSave, kOther };
  Kind kind = Kind::kOther;
  std::optional<IsolationLevel> level;  // Of the transaction that begins.
  std::string name;
  bool begins_next = false;  // kCommit and kRollback.
};
std::optional<TransactionRequest> ParseTransactionRequest(
    std::span<const std::uint8_t> body, TdsVersion version);

}  // namespace mssql_cdc::sim::wire
