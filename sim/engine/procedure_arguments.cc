#include "sim/engine/procedure_arguments.h"

#include "base/text.h"
#include "sim/engine/cdc.h"
#include "sim/engine/server.h"

namespace mssql_cdc::sim {

Arguments::Arguments(std::string procedure, std::vector<std::string> parameters,
                     std::vector<ProcedureArgument>& given)
    : procedure_(std::move(procedure)),
      parameters_(std::move(parameters)),
      found_(parameters_.size(), nullptr) {
  if (given.size() > parameters_.size()) {
    RaiseSql(
        8144, 16, 2,
        "Procedure or function " + procedure_ + " has too many arguments specified.");
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].name.empty()) {
      found_[i] = &given[i];
      continue;
    }
    bool known = false;
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      if (!EqualsIgnoringAsciiCase(parameters_[k], given[i].name)) continue;
      found_[k] = &given[i];
      known = true;
    }
    if (!known) {
      RaiseSql(8145, 16, 1,
               given[i].name + " is not a parameter for procedure " + procedure_ + ".");
    }
  }
}

const Value* Arguments::ValueOf(std::size_t index) const {
  const ProcedureArgument* argument = found_[index];
  if (argument == nullptr || argument->is_default || argument->value.IsNull()) {
    return nullptr;
  }
  return &argument->value;
}

std::optional<std::string> Arguments::Text(std::size_t index) const {
  const Value* value = ValueOf(index);
  if (value == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(&value->held)) {
    return std::to_string(*integer);
  }
  return TextOf(*value);
}

std::optional<std::int64_t> Arguments::Int(std::size_t index) const {
  const Value* value = ValueOf(index);
  if (value == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(&value->held)) return *integer;
  if (const auto* decimal = std::get_if<Decimal>(&value->held)) {
    Decimal whole = *decimal;
    for (; whole.scale > 0; --whole.scale) whole.unscaled /= 10;
    return static_cast<std::int64_t>(whole.unscaled);
  }
  const std::optional<std::int64_t> parsed = ParseInt64(Trim(TextOf(*value)));
  if (!parsed) {
    RaiseSql(8114, 16, 5,
             "Error converting data type " +
                 std::string(SystemTypeName(found_[index]->type.id)) + " to int.");
  }
  return parsed;
}

std::optional<Lsn> Arguments::BinaryLsn(std::size_t index) const {
  const Value* value = ValueOf(index);
  if (value == nullptr) return std::nullopt;
  const auto* bytes = std::get_if<Bytes>(&value->held);
  if (bytes == nullptr) {
    RaiseSql(
        257, 16, 3,
        "Implicit conversion from data type " +
            std::string(SystemTypeName(found_[index]->type.id)) +
            " to binary is not allowed. Use the CONVERT function to run this query.");
  }
  return LsnFrom({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
}

std::optional<DateTimeValue> Arguments::Time(std::size_t index) const {
  const Value* value = ValueOf(index);
  if (value == nullptr) return std::nullopt;
  if (const auto* at = std::get_if<DateTimeValue>(&value->held)) return *at;
  const std::string text = TextOf(*value);
  if (!ParseIsoUs(text)) {
    RaiseSql(
        241, 16, 1,
        "Conversion failed when converting date and/or time from character string.");
  }
  return FromIsoText(text);
}

void Arguments::Require(std::size_t index) const {
  if (Given(index)) return;
  RaiseSql(201, 16, 4,
           "Procedure or function '" + procedure_ + "' expects parameter '" +
               parameters_[index] + "', which was not supplied.");
}

std::string Arguments::RequiredText(std::size_t index) const {
  Require(index);
  return Text(index).value_or(std::string());
}

void Arguments::SetOutput(std::size_t index, const SqlType& type, const Value& value) {
  if (found_[index] == nullptr || !found_[index]->output) return;
  found_[index]->type = type;
  found_[index]->value = value;
}

void SendRows(ReplySink& sink, const std::vector<ColumnInfo>& columns,
              const std::vector<Row>& rows) {
  std::vector<ResultColumn> described;
  for (const ColumnInfo& column : columns) {
    described.push_back({column.name, column.type, column.nullable, false, false});
  }
  if (!sink.Columns(described)) return;
  for (const Row& row : rows) {
    if (!sink.Row(row)) return;
  }
  sink.StatementDone(rows.size(), 0xC1);
}

}  // namespace mssql_cdc::sim
