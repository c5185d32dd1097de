#include "tds/requests.h"

#include "base/check.h"
#include "tds/writer.h"

namespace mssql_cdc::tds {
namespace {

constexpr std::size_t kShortSizeBytesMax = 8000;  // Beyond it a type is a (max) type.
constexpr std::size_t kLsnSizeBytes = 10;
constexpr std::uint16_t kNullLength = 0xFFFF;
constexpr std::uint16_t kMaxType = 0xFFFF;

// ALL_HEADERS with the one header that every request needs: the transaction descriptor.
void WriteHeaders(const RequestContext& context, Writer& out) {
  constexpr std::uint32_t kHeaderSizeBytes = 0x12;
  constexpr std::uint16_t kTransactionDescriptor = 2;
  out.Le(static_cast<std::uint32_t>(kHeaderSizeBytes + sizeof(std::uint32_t)));
  out.Le(kHeaderSizeBytes);
  out.Le(kTransactionDescriptor);
  out.Le(context.transaction_descriptor);
  out.Le(std::uint32_t{1});  // Outstanding requests.
}

// The value of a type with a u16 length, or of its (max) form.
void WriteVariable(DataType type, const RequestContext* with_collation,
                   const std::vector<std::uint8_t>* value, Writer& out) {
  const bool is_max = value != nullptr && value->size() > kShortSizeBytesMax;
  out.Le(static_cast<std::uint8_t>(type));
  out.Le(is_max ? kMaxType : static_cast<std::uint16_t>(kShortSizeBytesMax));
  if (with_collation != nullptr) out.Bytes(with_collation->collation);
  if (value == nullptr) {
    out.Le(kNullLength);
  } else if (is_max) {
    // PLP: the total, one chunk, the end.
    out.Le(static_cast<std::uint64_t>(value->size()));
    out.Le(static_cast<std::uint32_t>(value->size()));
    out.Bytes(*value);
    out.Le(std::uint32_t{0});
  } else {
    out.Le(static_cast<std::uint16_t>(value->size()));
    out.Bytes(*value);
  }
}

void WriteName(std::string_view name, Writer& out) {
  std::vector<std::uint8_t> utf16;
  AppendUtf16(name, utf16);
  CHECK(utf16.size() / 2 <= 0xFF);
  out.Le(static_cast<std::uint8_t>(utf16.size() / 2));
  out.Bytes(utf16);
  out.Le(std::uint8_t{0});  // Status: by value, not defaulted.
}

void WriteText(std::string_view text, const RequestContext& context, Writer& out) {
  std::vector<std::uint8_t> utf16;
  AppendUtf16(text, utf16);
  WriteVariable(DataType::kNVarChar, &context, &utf16, out);
}

std::string Declaration(const Parameter& parameter) {
  const std::size_t size = parameter.bytes ? parameter.bytes->size() : 0;
  switch (parameter.kind) {
    case Parameter::Kind::kNVarChar: {
      std::vector<std::uint8_t> utf16;
      if (parameter.bytes) AppendUtf16(*parameter.bytes, utf16);
      return parameter.name +
             (utf16.size() > kShortSizeBytesMax ? " nvarchar(max)" : " nvarchar(4000)");
    }
    case Parameter::Kind::kVarBinary:
      return parameter.name +
             (size > kShortSizeBytesMax ? " varbinary(max)" : " varbinary(8000)");
    case Parameter::Kind::kBinary10:
      return parameter.name + " binary(10)";
    case Parameter::Kind::kBigInt:
      return parameter.name + " bigint";
  }
  return {};
}

void WriteParameter(const Parameter& parameter, const RequestContext& context,
                    Writer& out) {
  WriteName(parameter.name, out);
  switch (parameter.kind) {
    case Parameter::Kind::kNVarChar:
      if (parameter.bytes) {
        WriteText(*parameter.bytes, context, out);
      } else {
        WriteVariable(DataType::kNVarChar, &context, nullptr, out);
      }
      break;
    case Parameter::Kind::kVarBinary: {
      std::vector<std::uint8_t> bytes;
      if (parameter.bytes)
        bytes.assign(parameter.bytes->begin(), parameter.bytes->end());
      WriteVariable(DataType::kBigVarBinary, nullptr,
                    parameter.bytes ? &bytes : nullptr, out);
      break;
    }
    case Parameter::Kind::kBinary10:
      CHECK(!parameter.bytes || parameter.bytes->size() == kLsnSizeBytes);
      out.Le(static_cast<std::uint8_t>(DataType::kBigBinary));
      out.Le(static_cast<std::uint16_t>(kLsnSizeBytes));
      out.Le(parameter.bytes ? static_cast<std::uint16_t>(kLsnSizeBytes) : kNullLength);
      if (parameter.bytes) out.Bytes(*parameter.bytes);
      break;
    case Parameter::Kind::kBigInt:
      out.Le(static_cast<std::uint8_t>(DataType::kIntN));
      out.Le(std::uint8_t{sizeof(std::int64_t)});
      out.Le(std::uint8_t{sizeof(std::int64_t)});
      out.Le(static_cast<std::uint64_t>(parameter.integer));
      break;
  }
}

}  // namespace

std::vector<std::uint8_t> EncodeBatch(std::string_view sql,
                                      const RequestContext& context) {
  Writer out;
  WriteHeaders(context, out);
  out.Utf16(sql);
  return out.Take();
}

std::vector<std::uint8_t> EncodeExecuteSql(std::string_view sql,
                                           const std::vector<Parameter>& parameters,
                                           const RequestContext& context) {
  CHECK(!parameters.empty());
  std::string declarations;
  for (const Parameter& parameter : parameters) {
    if (!declarations.empty()) declarations += ", ";
    declarations += Declaration(parameter);
  }
  Writer out;
  WriteHeaders(context, out);
  out.Le(std::uint16_t{0xFFFF});  // A procedure by number follows.
  out.Le(static_cast<std::uint16_t>(ProcId::kExecuteSql));
  out.Le(std::uint16_t{0});  // Option flags.
  WriteName("", out);
  WriteText(sql, context, out);
  WriteName("", out);
  WriteText(declarations, context, out);
  for (const Parameter& parameter : parameters) WriteParameter(parameter, context, out);
  return out.Take();
}

}  // namespace mssql_cdc::tds
