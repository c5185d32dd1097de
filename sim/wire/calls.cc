// Procedure calls: those the wire carries out (sp_executesql, sp_prepare and its kin),
// with their handles, and the way to the engine for all others.

#include <algorithm>

#include "base/text.h"
#include "sim/wire/connection.h"
#include "sim/wire/declaration.h"

namespace mssql_cdc::sim::wire {
namespace {

struct KnownProcedure {
  std::string_view name;
  tds::ProcId id;
};

constexpr KnownProcedure kKnownProcedures[] = {
    {"sp_cursor", tds::ProcId::kCursor},
    {"sp_cursoropen", tds::ProcId::kCursorOpen},
    {"sp_cursorprepare", tds::ProcId::kCursorPrepare},
    {"sp_cursorexecute", tds::ProcId::kCursorExecute},
    {"sp_cursorprepexec", tds::ProcId::kCursorPrepExec},
    {"sp_cursorunprepare", tds::ProcId::kCursorUnprepare},
    {"sp_cursorfetch", tds::ProcId::kCursorFetch},
    {"sp_cursoroption", tds::ProcId::kCursorOption},
    {"sp_cursorclose", tds::ProcId::kCursorClose},
    {"sp_executesql", tds::ProcId::kExecuteSql},
    {"sp_prepare", tds::ProcId::kPrepare},
    {"sp_execute", tds::ProcId::kExecute},
    {"sp_prepexec", tds::ProcId::kPrepExec},
    {"sp_prepexecrpc", tds::ProcId::kPrepExecRpc},
    {"sp_unprepare", tds::ProcId::kUnprepare},
};

// "master..[sp_executesql]" as "sp_executesql"; the schemas these procedures are found
// in are sys and dbo.
std::string BareProcedureName(std::string_view name) {
  std::string bare;
  for (const char c : name) {
    if (c == '[' || c == ']' || c == '"') continue;
    bare += c;
  }
  bare = LowerAscii(bare);
  for (const std::string_view prefix :
       {"master.sys.", "master.dbo.", "master..", "sys.", "dbo."}) {
    if (bare.starts_with(prefix)) return bare.substr(prefix.size());
  }
  return bare;
}

std::optional<tds::ProcId> KnownId(const RpcCall& call) {
  if (call.id) {
    for (const KnownProcedure& known : kKnownProcedures) {
      if (static_cast<std::uint16_t>(known.id) == *call.id) return known.id;
    }
    return std::nullopt;
  }
  const std::string bare = BareProcedureName(call.name);
  for (const KnownProcedure& known : kKnownProcedures) {
    if (known.name == bare) return known.id;
  }
  return std::nullopt;
}

std::string_view NameOf(tds::ProcId id) {
  for (const KnownProcedure& known : kKnownProcedures) {
    if (known.id == id) return known.name;
  }
  return "";
}

std::string TextOf(const RpcParameter& parameter) {
  const Text* text = std::get_if<Text>(&parameter.value.held);
  return text == nullptr ? std::string() : Utf8(*text);
}

std::int32_t IntOf(const RpcParameter& parameter) {
  const std::int64_t* value = std::get_if<std::int64_t>(&parameter.value.held);
  return value == nullptr ? 0 : static_cast<std::int32_t>(*value);
}

bool IsText(const RpcParameter& parameter) {
  return std::holds_alternative<Text>(parameter.value.held);
}

std::vector<RpcParameter> From(std::vector<RpcParameter>& parameters,
                               std::size_t first) {
  if (first >= parameters.size()) return {};
  return {
      std::make_move_iterator(parameters.begin() + static_cast<std::ptrdiff_t>(first)),
      std::make_move_iterator(parameters.end())};
}

}  // namespace

void Connection::Call(RpcCall& call) {
  const std::optional<tds::ProcId> id = KnownId(call);
  reply_->StartCall(id ? Reply::Status::kOfErrors : Reply::Status::kOfEngine);
  if (!id) {
    CallOther(call);
    return;
  }
  switch (*id) {
    case tds::ProcId::kExecuteSql:
      return CallExecuteSql(call);
    case tds::ProcId::kPrepare:
      return CallPrepare(call);
    case tds::ProcId::kExecute:
      return CallExecute(call);
    case tds::ProcId::kPrepExec:
      return CallPrepExec(call, false);
    case tds::ProcId::kPrepExecRpc:
      return CallPrepExec(call, true);
    case tds::ProcId::kUnprepare:
      return CallUnprepare(call);
    case tds::ProcId::kCursor:
    case tds::ProcId::kCursorOpen:
    case tds::ProcId::kCursorPrepare:
    case tds::ProcId::kCursorExecute:
    case tds::ProcId::kCursorPrepExec:
    case tds::ProcId::kCursorUnprepare:
    case tds::ProcId::kCursorFetch:
    case tds::ProcId::kCursorOption:
    case tds::ProcId::kCursorClose:
      break;  // Server-side cursors are not simulated.
  }
  SendError(2812,
            "Could not find stored procedure '" + std::string(NameOf(*id)) + "'.");
}

// sp_executesql @statement [, @params, values].
void Connection::CallExecuteSql(RpcCall& call) {
  std::vector<RpcParameter>& parameters = call.parameters;
  if (parameters.empty() || !IsText(parameters[0])) {
    SendError(
        214,
        "Procedure expects parameter '@statement' of type 'ntext/nchar/nvarchar'.");
    return;
  }
  const std::string declarations =
      parameters.size() > 1 ? TextOf(parameters[1]) : std::string();
  const std::string sql = TextOf(parameters[0]);
  RunStatement(sql, declarations, From(parameters, 2), 2);
}

// sp_prepare @handle OUT, @params, @statement [, @options].
void Connection::CallPrepare(RpcCall& call) {
  if (call.parameters.size() < 3 || !IsText(call.parameters[2])) {
    SendError(214,
              "Procedure expects parameter '@stmt' of type 'ntext/nchar/nvarchar'.");
    return;
  }
  const std::int32_t handle = ++last_handle_;
  prepared_[handle] = {false, TextOf(call.parameters[2]), TextOf(call.parameters[1])};
  reply_->ReturnHandle(call.parameters[0].name, handle);
}

// sp_execute @handle [, values].
void Connection::CallExecute(RpcCall& call) {
  const std::int32_t handle =
      call.parameters.empty() ? 0 : IntOf(call.parameters.front());
  const auto found = prepared_.find(handle);
  if (found == prepared_.end()) {
    SendError(8179, "Could not find prepared statement with handle " +
                        std::to_string(handle) + ".");
    return;
  }
  const Prepared prepared = found->second;
  RunPrepared(prepared, From(call.parameters, 1), 1);
}

// sp_prepexec @handle OUT, @params, @statement [, values], and sp_prepexecrpc @handle
// OUT, @procedure [, values]. A handle that is passed in is freed.
void Connection::CallPrepExec(RpcCall& call, bool is_procedure) {
  std::vector<RpcParameter>& parameters = call.parameters;
  const std::size_t text_index = is_procedure ? 1 : 2;
  if (parameters.size() <= text_index || !IsText(parameters[text_index])) {
    SendError(214,
              "Procedure expects parameter '@stmt' of type 'ntext/nchar/nvarchar'.");
    return;
  }
  prepared_.erase(IntOf(parameters[0]));
  const std::int32_t handle = ++last_handle_;
  const std::string handle_name = parameters[0].name;
  const Prepared prepared{is_procedure, TextOf(parameters[text_index]),
                          is_procedure ? "" : TextOf(parameters[1])};
  prepared_[handle] = prepared;
  RunPrepared(prepared, From(parameters, text_index + 1), text_index + 1);
  reply_->ReturnHandle(handle_name, handle);
}

void Connection::CallUnprepare(RpcCall& call) {
  const std::int32_t handle =
      call.parameters.empty() ? 0 : IntOf(call.parameters.front());
  if (prepared_.erase(handle) == 0) {
    SendError(8179, "Could not find prepared statement with handle " +
                        std::to_string(handle) + ".");
  }
}

void Connection::CallOther(RpcCall& call) {
  if (call.id) {
    SendError(2812,
              "Could not find stored procedure '" + std::to_string(*call.id) + "'.");
    return;
  }
  // "..name" leaves out database and schema: FreeTDS writes it.
  const bool starts_empty = call.name.starts_with("..");
  RunProcedure(call.name.substr(starts_empty ? 2 : 0), std::move(call.parameters), 0);
}

void Connection::RunPrepared(const Prepared& prepared,
                             std::vector<RpcParameter> parameters,
                             std::size_t first_index) {
  if (prepared.is_procedure) {
    RunProcedure(prepared.text, std::move(parameters), first_index);
  } else {
    RunStatement(prepared.text, prepared.declarations, std::move(parameters),
                 first_index);
  }
}

// Values go to their declarations by name, or by place where they have none. A value
// takes the declared type where that changes nothing of it.
void Connection::RunStatement(const std::string& sql, const std::string& declared_text,
                              std::vector<RpcParameter> parameters,
                              std::size_t first_index) {
  const std::vector<Declaration> declarations = ParseDeclarations(declared_text);
  std::vector<BoundParameter> bound;
  std::vector<Reply::Parameter> places;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    RpcParameter& parameter = parameters[i];
    const Declaration* declaration = nullptr;
    if (parameter.name.empty()) {
      if (i < declarations.size()) declaration = &declarations[i];
    } else {
      for (const Declaration& candidate : declarations) {
        if (EqualsIgnoringAsciiCase(candidate.name, parameter.name)) {
          declaration = &candidate;
        }
      }
    }
    BoundParameter one;
    one.name = declaration != nullptr ? declaration->name : parameter.name;
    one.type = parameter.type;
    one.output = parameter.by_reference;
    if (declaration != nullptr && declaration->type &&
        TakesAs(*declaration->type, parameter.type, parameter.value)) {
      one.type = *declaration->type;
    }
    one.value = std::move(parameter.value);
    places.push_back({one.name, one.output});
    bound.push_back(std::move(one));
  }
  reply_->SetParameters(first_index, std::move(places));
  session_->ExecuteSql(sql, std::move(bound), *reply_);
}

void Connection::RunProcedure(const std::string& name,
                              std::vector<RpcParameter> parameters,
                              std::size_t first_index) {
  std::vector<BoundParameter> bound;
  std::vector<Reply::Parameter> places;
  for (RpcParameter& parameter : parameters) {
    places.push_back({parameter.name, parameter.by_reference});
    if (parameter.uses_default) continue;  // As if it had not been given.
    bound.push_back({parameter.name, parameter.type, std::move(parameter.value),
                     parameter.by_reference});
  }
  reply_->SetParameters(first_index, std::move(places));
  session_->Procedure(name, std::move(bound), *reply_);
}

}  // namespace mssql_cdc::sim::wire
