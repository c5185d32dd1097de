#include "sim/engine/rows_table.h"

namespace mssql_cdc::sim {

Value IntValue(std::int64_t value) { return Value{value, {}}; }
Value IntOrNull(const std::optional<std::int32_t>& value) {
  return value ? IntValue(*value) : Value{};
}
Value BoolValue(bool value) { return Value{std::int64_t{value}, {}}; }
Value TextValue(const std::string& utf8) { return Value{Utf16(utf8), {}}; }
Value BytesValue(const std::uint8_t* bytes, std::size_t size) {
  return Value{Bytes(bytes, bytes + size), {}};
}
Value TimeValue(const DateTimeValue& at) { return Value{at, {}}; }

std::string TextOf(const Value& value) {
  const auto* text = std::get_if<Text>(&value.held);
  return text == nullptr ? std::string() : Utf8(*text);
}

SqlType TypeOf(TypeId id, std::int32_t length) {
  SqlType type;
  type.id = id;
  type.length = length;
  return type;
}
SqlType NVarChar(std::int32_t length) { return TypeOf(TypeId::kNVarChar, length); }
SqlType SysName() { return NVarChar(128); }

ColumnInfo Info(std::string name, SqlType type, bool nullable) {
  ColumnInfo info;
  info.name = std::move(name);
  info.type = std::move(type);
  info.nullable = nullable;
  return info;
}

}  // namespace mssql_cdc::sim
