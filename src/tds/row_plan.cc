#include "tds/row_plan.h"

#include <algorithm>
#include <string>

#include "base/limits.h"
#include "columns/value_text.h"
#include "tds/utf16.h"

namespace mssql_cdc::tds {
namespace {

constexpr std::uint16_t kNoMetadata = 0xFFFF;
// Column flags (MS-TDS COLMETADATA): fNullable, fNullableUnknown.
constexpr std::uint16_t kFlagsMaybeNull = 0x0001 | 0x8000;

// The wire's part of one column.
struct WireColumn {
  std::uint16_t flags = 0;
  TypeInfo type;
  std::string name;
};

bool IsNational(DataType type) {
  return type == DataType::kNVarChar || type == DataType::kNChar ||
         type == DataType::kNText || type == DataType::kXml;
}

bool IsCollatedText(DataType type) {
  return type == DataType::kBigVarChar || type == DataType::kBigChar ||
         type == DataType::kText;
}

Result<TextCodec> CodecFor(const TypeInfo& type, const std::string& name) {
  if (IsNational(type.type)) return TextCodec{Encoding::kUtf16, nullptr, nullptr};
  if (!IsCollatedText(type.type)) return TextCodec{};
  const std::optional<int> code_page = CodePageOf(type.collation);
  std::optional<TextCodec> codec;
  if (code_page) codec = CodecOf(*code_page);
  if (codec) return *codec;
  return Error(ErrorId::kTdsUnsupportedType)
      .With("column", name)
      .With("type", SqlTypeName(type))
      .With("code_page", code_page ? std::to_string(*code_page) : "unknown")
      .With("sort_id", std::to_string(type.collation[4]));
}

Op SizedOp(const TypeInfo& type, Op op1, Op op2, Op op4, Op op8) {
  switch (type.size_max) {
    case 1:
      return op1;
    case 2:
      return op2;
    case 4:
      return op4;
    default:
      return op8;
  }
}

Op DecimalOp(std::uint32_t size) {
  switch (size) {
    case 5:
      return Op::kDecimal5N;
    case 9:
      return Op::kDecimal9N;
    case 13:
      return Op::kDecimal13N;
    default:
      return Op::kDecimal17N;
  }
}

Op ShortOp(Encoding encoding) {
  switch (encoding) {
    case Encoding::kBytes:
      return Op::kBytesShort;
    case Encoding::kUtf16:
      return Op::kUtf16Short;
    case Encoding::kSingleByte:
      return Op::kSingleByteShort;
    case Encoding::kUtf8:
    case Encoding::kMultiByte:
      return Op::kOtherTextShort;
  }
  return Op::kBytesShort;
}

// Only for types that ColumnTypeOf reads.
Op OpOf(const TypeInfo& type, Encoding encoding) {
  switch (type.type) {
    case DataType::kBit:
      return Op::kBit;
    case DataType::kInt1:
      return Op::kInt1;
    case DataType::kInt2:
      return Op::kCopy2;
    case DataType::kInt4:
    case DataType::kFloat4:
      return Op::kCopy4;
    case DataType::kInt8:
    case DataType::kFloat8:
      return Op::kCopy8;
    case DataType::kMoney4:
      return Op::kMoney4;
    case DataType::kMoney:
      return Op::kMoney8;
    case DataType::kDateTime4:
      return Op::kDateTime4;
    case DataType::kDateTime:
      return Op::kDateTime8;
    case DataType::kBitN:
      return Op::kBitN;
    case DataType::kIntN:
      return SizedOp(type, Op::kInt1N, Op::kCopy2N, Op::kCopy4N, Op::kCopy8N);
    case DataType::kFloatN:
      return type.size_max == 4 ? Op::kCopy4N : Op::kCopy8N;
    case DataType::kMoneyN:
      return type.size_max == 4 ? Op::kMoney4N : Op::kMoney8N;
    case DataType::kDateTimeN:
      return type.size_max == 4 ? Op::kDateTime4N : Op::kDateTime8N;
    case DataType::kDecimalN:
    case DataType::kNumericN:
      return DecimalOp(type.size_max);
    case DataType::kGuid:
      return Op::kGuidN;
    case DataType::kDate:
      return Op::kDateN;
    case DataType::kTime:
      return Op::kTimeN;
    case DataType::kDateTime2:
      return type.scale == 7 ? Op::kDateTime27N : Op::kDateTime2N;
    case DataType::kDateTimeOffset:
      return Op::kDateTimeOffsetN;
    default:
      break;
  }
  if (type.framing == Framing::kPartial) return Op::kPartial;
  return type.framing == Framing::kTextPointer ? Op::kTextPointer : ShortOp(encoding);
}

// Bytes of a value that are there whatever its length says.
std::size_t FixedNeed(const TypeInfo& type) {
  switch (type.framing) {
    case Framing::kFixed:
      return type.size_max;
    case Framing::kByteLength:
      return 1 + std::size_t{type.size_max};
    case Framing::kShortLength:
      return 2;
    case Framing::kPartial:
      return 8;
    case Framing::kTextPointer:
      return 1;
    case Framing::kLongLength:
      return 4;
  }
  return 0;
}

std::size_t WidthBytes(columns::Kind kind) {
  const std::size_t width = columns::ValueWidthBytes(kind);
  if (width != 0) return width;
  return kind == columns::Kind::kBool ? 1 : sizeof(std::int32_t);
}

Status AddColumn(const WireColumn& wire, columns::Schema& schema, RowPlan& plan) {
  const std::optional<columns::Type> type = ColumnTypeOf(wire.type);
  if (!type) {
    return Error(ErrorId::kTdsUnsupportedType)
        .With("column", wire.name)
        .With("type", SqlTypeName(wire.type));
  }
  PlannedColumn column;
  TRY_ASSIGN(column.codec, CodecFor(wire.type, wire.name));
  column.size = wire.type.size_max;
  column.scale = wire.type.scale;
  column.nullable = (wire.flags & kFlagsMaybeNull) != 0;
  column.op = OpOf(wire.type, column.codec.encoding);
  column.kind = type->kind;
  column.magnitude_max =
      static_cast<unsigned __int128>(columns::PowerOfTen(wire.type.precision)) - 1;
  column.magnitude_max_low = static_cast<std::uint64_t>(
      std::min<unsigned __int128>(column.magnitude_max, UINT64_MAX));
  column.type = wire.type;
  plan.columns.push_back(std::move(column));
  plan.row_width_bytes += WidthBytes(type->kind) + 1;
  schema.fields.push_back({wire.name, *type, plan.columns.back().nullable, {}});
  return Unit{};
}

// What can be said only once all columns are known.
void CompletePlan(const columns::Schema& schema, RowPlan& plan) {
  plan.builders.reserve(plan.columns.size());
  for (std::size_t i = 0; i < plan.columns.size(); ++i) {
    plan.builders.emplace_back(schema.fields[i].type, 0);
    plan.columns[i].builder = &plan.builders.back();
  }
  std::size_t need = kReadSlackBytes;
  for (std::size_t i = plan.columns.size(); i-- > 0;) {
    plan.columns[i].need_after = need;
    need += FixedNeed(plan.columns[i].type);
  }
  plan.row_need = need;
  plan.bitmap_size_bytes = (plan.columns.size() + 7) / 8;
  plan.nulls = NullBlock(plan.columns.size());
  for (std::uint32_t i = 0; i < plan.columns.size(); ++i) {
    const Op op = plan.columns[i].op;
    const bool goes_on = !plan.runs.empty() && plan.runs.back().op == op &&
                         plan.runs.back().count < Run::kCountMax;
    if (!goes_on) plan.runs.push_back({op, i, 0, 0});
    Run& run = plan.runs.back();
    if (!plan.columns[i].nullable) run.not_null |= std::uint64_t{1} << run.count;
    ++run.count;
  }
}

Result<WireColumn> ReadWireColumn(Reader& in) {
  WireColumn wire;
  in.Le<std::uint32_t>();  // UserType.
  wire.flags = in.Le<std::uint16_t>();
  TRY_ASSIGN(wire.type, ReadTypeInfo(in));
  // The table's name stands before the column's, in parts, only for these types.
  if (wire.type.framing == Framing::kTextPointer) {
    for (auto parts = in.Le<std::uint8_t>(); parts != 0 && in.ok(); --parts) {
      in.ShortVarChar();
    }
  }
  const auto name = in.ByteVarChar();
  if (in.ok()) wire.name = Utf8FromUtf16(name);
  return wire;
}

}  // namespace

Result<std::optional<RowPlan>> ReadColMetadata(Reader& in) {
  Reader ahead = in;
  ahead.Le<std::uint8_t>();  // The token's id.
  const auto count = ahead.Le<std::uint16_t>();
  if (!ahead.ok()) return std::optional<RowPlan>();
  RowPlan plan;
  auto schema = std::make_shared<columns::Schema>();
  if (count != kNoMetadata) {
    if (count == 0) {
      return Error(ErrorId::kTdsMalformed)
          .With("token", "COLMETADATA")
          .With("column_count", "0");
    }
    if (count > kTdsColumnCountMax) {
      return Error(ErrorId::kTdsLimitExceeded)
          .With("token", "COLMETADATA")
          .With("column_count", std::to_string(count));
    }
    std::vector<WireColumn> wires;
    for (std::uint16_t i = 0; i < count; ++i) {
      auto wire = ReadWireColumn(ahead);
      if (!wire.ok()) {
        wire.error().Add("token", "COLMETADATA");
        wire.error().Add("column_index", std::to_string(i));
        return std::move(wire).error();
      }
      if (!ahead.ok()) return std::optional<RowPlan>();
      wires.push_back(std::move(wire).value());
    }
    for (const WireColumn& wire : wires) TRY(AddColumn(wire, *schema, plan));
    CompletePlan(*schema, plan);
  }
  plan.schema = std::move(schema);
  in = ahead;
  return std::optional<RowPlan>(std::move(plan));
}

}  // namespace mssql_cdc::tds
