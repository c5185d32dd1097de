#include "pipeline/key_value.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "columns/cell_access.h"
#include "columns/value_text.h"

namespace mssql_cdc::pipeline {
namespace {

using columns::Kind;
using Json = nlohmann::ordered_json;

std::optional<Int128> IntegerAt(const columns::Column& column, std::size_t row) {
  switch (column.type.kind) {
    case Kind::kInt16:
      return columns::ValueAt<std::int16_t>(column, row);
    case Kind::kInt32:
      return columns::ValueAt<std::int32_t>(column, row);
    case Kind::kInt64:
      return columns::ValueAt<std::int64_t>(column, row);
    default:
      return std::nullopt;
  }
}

std::string LowerHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "0x";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// "-0.0150": every digit of the scale, never an exponent.
std::string PlainDecimal(Int128 unscaled, int scale) {
  std::string digits = IntegerText(unscaled < 0 ? -unscaled : unscaled);
  const auto places = static_cast<std::size_t>(scale);
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  if (scale > 0) digits.insert(digits.size() - places, ".");
  return unscaled < 0 ? "-" + digits : digits;
}

// "2026-01-31T10:20:30" and so many digits of `us`.
std::string IsoText(std::int64_t us, int digit_count) {
  std::string text = columns::TimestampText(us);  // Six digits.
  text[10] = 'T';
  text.resize(text.size() - static_cast<std::size_t>(6 - digit_count));
  return text;
}

std::int64_t RoundToMillis(std::int64_t us) {
  const std::int64_t up = us + 500;
  const std::int64_t rest = (up % 1000 + 1000) % 1000;
  return up - rest;
}

std::optional<KeyValue> KeyValueAt(const columns::Column& column, std::size_t row,
                                   cdc::KeyForm form) {
  const Kind kind = column.type.kind;
  const auto text = [](std::string value) { return KeyValue(std::move(value)); };
  switch (form) {
    case cdc::KeyForm::kInteger:
      if (const auto value = IntegerAt(column, row)) return KeyValue(*value);
      return std::nullopt;
    case cdc::KeyForm::kBool:
      if (kind != Kind::kBool) return std::nullopt;
      return KeyValue(columns::BitAt(column.values.data(), row));
    case cdc::KeyForm::kReal:
      if (kind == Kind::kFloat64)
        return KeyValue(columns::ValueAt<double>(column, row));
      if (kind != Kind::kFloat32) return std::nullopt;
      return KeyValue(static_cast<double>(columns::ValueAt<float>(column, row)));
    case cdc::KeyForm::kText:
      if (kind != Kind::kUtf8) return std::nullopt;
      return text(std::string(columns::BytesAt(column, row)));
    case cdc::KeyForm::kDecimal:
      if (kind != Kind::kDecimal128) return std::nullopt;
      return text(
          PlainDecimal(columns::ValueAt<Int128>(column, row), column.type.scale));
    case cdc::KeyForm::kBinary:
      if (kind != Kind::kBinary) return std::nullopt;
      return text(LowerHex(columns::BytesAt(column, row)));
    case cdc::KeyForm::kDate:
      if (kind != Kind::kDate32) return std::nullopt;
      return text(columns::DateText(columns::ValueAt<std::int32_t>(column, row)));
    case cdc::KeyForm::kMillis:
      if (kind != Kind::kTimestampNtz) return std::nullopt;
      return text(
          IsoText(RoundToMillis(columns::ValueAt<std::int64_t>(column, row)), 3));
    case cdc::KeyForm::kMicros:
      if (kind != Kind::kTimestampNtz) return std::nullopt;
      return text(IsoText(columns::ValueAt<std::int64_t>(column, row), 6));
    case cdc::KeyForm::kInstant:
      if (kind != Kind::kTimestampUtc) return std::nullopt;
      return text(IsoText(columns::ValueAt<std::int64_t>(column, row), 6) + "+00:00");
  }
  return std::nullopt;
}

Json ValueJson(const KeyValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return Json();
  if (const auto* truth = std::get_if<bool>(&value)) return Json(*truth);
  if (const auto* real = std::get_if<double>(&value)) return Json(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return Json(*text);
  const Int128 integer = std::get<Int128>(value);
  if (integer > std::numeric_limits<std::int64_t>::max()) {
    return Json(static_cast<std::uint64_t>(integer));
  }
  return Json(static_cast<std::int64_t>(integer));
}

Error Unreadable(std::string reason) {
  return Error(ErrorId::kCheckpointUnreadable).With("reason", std::move(reason));
}

Result<KeyValue> ParseValue(const Json& json) {
  if (json.is_null()) return KeyValue();
  if (json.is_boolean()) return KeyValue(json.get<bool>());
  if (json.is_number_unsigned()) return KeyValue(Int128{json.get<std::uint64_t>()});
  if (json.is_number_integer()) return KeyValue(Int128{json.get<std::int64_t>()});
  if (json.is_number()) return KeyValue(json.get<double>());
  if (json.is_string()) return KeyValue(json.get<std::string>());
  return Unreadable("a key's value is neither number, text nor null");
}

}  // namespace

std::string IntegerText(Int128 value) {
  if (value == 0) return "0";
  std::string text;
  for (Int128 rest = value; rest != 0; rest /= 10) {
    const int digit = static_cast<int>(rest % 10);
    text += static_cast<char>('0' + (digit < 0 ? -digit : digit));
  }
  if (value < 0) text += '-';
  std::reverse(text.begin(), text.end());
  return text;
}

std::optional<std::string> BoundText(const KeyValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "1" : "0";
  if (const auto* real = std::get_if<double>(&value)) return columns::FloatText(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return IntegerText(std::get<Int128>(value));
}

Json KeyJson(const std::optional<Key>& key) {
  if (!key) return Json();
  if (key->size() == 1) return ValueJson(key->front());
  Json list = Json::array();
  for (const KeyValue& value : *key) list.push_back(ValueJson(value));
  return list;
}

Result<std::optional<Key>> ParseKey(const Json& json, std::size_t column_count) {
  if (json.is_null()) return std::optional<Key>();
  Key key;
  if (!json.is_array()) {
    TRY_ASSIGN(KeyValue value, ParseValue(json));
    key.push_back(std::move(value));
  } else {
    for (const Json& each : json) {
      TRY_ASSIGN(KeyValue value, ParseValue(each));
      key.push_back(std::move(value));
    }
  }
  if (key.size() != column_count) {
    return Unreadable("a bound has " + std::to_string(key.size()) + " values for " +
                      std::to_string(column_count) + " key columns");
  }
  return std::optional<Key>(std::move(key));
}

bool IsOfTypes(const Key& key, const std::vector<cdc::KeyType>& types) {
  if (key.size() != types.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (types[i].form != cdc::KeyForm::kInteger) continue;
    if (std::holds_alternative<std::monostate>(key[i])) continue;
    const auto* integer = std::get_if<Int128>(&key[i]);
    if (integer == nullptr) return false;
    constexpr Int128 kLargest = std::numeric_limits<std::int64_t>::max();
    if (*integer < -kLargest - 1 || *integer > kLargest + 1) return false;
  }
  return true;
}

Result<Key> ReadKey(const columns::RecordBatch& batch, std::int64_t row,
                    const std::vector<cdc::KeyType>& types) {
  Key key;
  const auto at = static_cast<std::size_t>(row);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i >= batch.columns.size()) break;
    const columns::Column& column = *batch.columns[i];
    if (columns::IsNull(column, at)) {
      key.emplace_back();
      continue;
    }
    std::optional<KeyValue> value = KeyValueAt(column, at, types[i].form);
    if (!value) break;
    key.push_back(*std::move(value));
  }
  if (key.size() == types.size()) return key;
  return Error(ErrorId::kInternalError)
      .With("reason", "a key column is not of the type that was planned")
      .With("column", types[key.size()].column);
}

}  // namespace mssql_cdc::pipeline
