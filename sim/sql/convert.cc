#include "sim/sql/convert.h"

#include "sim/sql/converter.h"
#include "sim/sql/environment.h"
#include "sim/sql/types.h"
#include "sim/wire/collation.h"

namespace mssql_cdc::sim {
namespace {

template <typename T>
Value Held(T held) {
  Value value;
  value.held = std::move(held);
  return value;
}

Value FromVariant(const Value& value, const SqlType& to,
                  const ConvertOptions& options) {
  Value inner = value;
  inner.variant_type.reset();
  return ConvertValue(inner, *value.variant_type, to, options);
}

}  // namespace

Value Converter::Run(const Value& value) const {
  if (IsInteger(to_.id)) return Held(ToInteger(value));
  switch (to_.id) {
    case TypeId::kReal:
    case TypeId::kFloat:
      return Held(ToDouble(value));
    case TypeId::kDecimal:
      return Held(ToDecimal(value));
    case TypeId::kMoney:
    case TypeId::kSmallMoney:
      return Held(ToMoney(value));
    case TypeId::kUniqueIdentifier:
      return Held(ToGuid(value));
    default:
      break;
  }
  if (IsDateTime(to_.id)) return Held(ToDateTime(value));
  if (IsBinary(to_.id)) return Held(Sized(ToBytes(value)));
  return Held(SizedText(ToText(value)));
}

std::string Converter::Utf8Of(const Value& value) const {
  return Utf8(std::get<Text>(value.held));
}

void Converter::RaiseText(const std::string& text) const {
  RaiseSql(245, 16, 1,
           "Conversion failed when converting the " + TypeWord(from_) + " value '" +
               text + "' to data type " + TypeWord(to_) + ".");
}

void Converter::RaiseConversion() const {
  RaiseSql(
      8114, 16, 5,
      "Error converting data type " + TypeWord(from_) + " to " + TypeWord(to_) + ".");
}

void Converter::RaiseOverflow() const {
  const std::string source = IsText(from_.id) || from_.id == TypeId::kDecimal ||
                                     IsDateTime(from_.id) || IsMoney(from_.id)
                                 ? TypeWord(from_)
                                 : "expression";
  RaiseSql(8115, 16, 2,
           "Arithmetic overflow error converting " + source + " to data type " +
               TypeWord(to_) + ".");
}

std::uint16_t Converter::CodePage(const SqlType& type) const {
  const auto collation =
      wire::FindCollation(type.collation.empty() ? options_.collation : type.collation);
  return collation ? wire::CodePageOf(collation->bytes) : std::uint16_t{1252};
}

Value ConvertValue(const Value& value, const SqlType& from, const SqlType& to,
                   const ConvertOptions& options) {
  if (value.IsNull()) return Value();
  if (to.id == TypeId::kSqlVariant) {
    if (from.id == TypeId::kSqlVariant) return value;
    Value variant = value;
    variant.variant_type = from;
    return variant;
  }
  if (from.id == TypeId::kSqlVariant) {
    return value.variant_type ? FromVariant(value, to, options) : Value();
  }
  const bool same =
      from.id == to.id && from.precision == to.precision && from.scale == to.scale;
  if (same &&
      (IsNumber(to.id) || IsDateTime(to.id) || to.id == TypeId::kUniqueIdentifier)) {
    return value;
  }
  return Converter(from, to, options).Run(value);
}

bool WouldTruncate(const Value& value, const SqlType& from, const SqlType& to) {
  if (value.IsNull() || to.length == kMax) return false;
  const auto length = static_cast<std::size_t>(to.length);
  if (IsText(to.id) && (IsText(from.id) || from.id == TypeId::kXml)) {
    const Text& text = std::get<Text>(value.held);
    // Blanks at the end may go without an error.
    const std::size_t last = text.find_last_not_of(u' ');
    const std::size_t size = last == Text::npos ? 0 : last + 1;
    if (IsNationalText(to.id) || !RuleOfCollation(to.collation).utf8) {
      return size > length;
    }
    return Utf8(std::u16string_view(text).substr(0, size)).size() > length;
  }
  if (IsBinary(to.id) && IsBinary(from.id) && to.id != TypeId::kRowVersion) {
    const Bytes& bytes = std::get<Bytes>(value.held);
    std::size_t size = bytes.size();
    while (size > 0 && bytes[size - 1] == 0) --size;
    return size > length;
  }
  return false;
}

}  // namespace mssql_cdc::sim
