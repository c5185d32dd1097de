#include "extension/batch_text.h"

#include <string_view>

namespace mssql_cdc::extension {
namespace {

using sqlserver::Parameter;

std::string Quoted(std::string_view text) {
  std::string quoted = "N'";
  for (const char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c;
  }
  return quoted + '\'';
}

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text = "0x";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xF];
  }
  return text;
}

const char* TypeOf(const Parameter& parameter) {
  switch (parameter.kind) {
    case Parameter::Kind::kNVarChar:
      return "nvarchar(max)";
    case Parameter::Kind::kVarBinary:
      return "varbinary(max)";
    case Parameter::Kind::kBinary10:
      return "binary(10)";
    case Parameter::Kind::kBigInt:
      return "bigint";
  }
  return "";
}

std::string Literal(const Parameter& parameter) {
  if (parameter.kind == Parameter::Kind::kBigInt) {
    return std::to_string(parameter.integer);
  }
  if (!parameter.bytes) return "NULL";
  return parameter.kind == Parameter::Kind::kNVarChar ? Quoted(*parameter.bytes)
                                                      : Hex(*parameter.bytes);
}

}  // namespace

std::string BatchText(const sqlserver::Request& request) {
  if (request.parameters.empty()) return request.sql;
  std::string declared;
  std::string values;
  for (const Parameter& parameter : request.parameters) {
    declared += (declared.empty() ? "" : ", ") + parameter.name + ' ';
    declared += TypeOf(parameter);
    values += ", " + parameter.name + " = " + Literal(parameter);
  }
  return "EXEC sp_executesql " + Quoted(request.sql) + ", " + Quoted(declared) + values;
}

}  // namespace mssql_cdc::extension
