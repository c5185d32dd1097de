#include "tds/row_fast.h"

#include <bit>

#include "tds/cell.h"

namespace mssql_cdc::tds {
namespace {

[[gnu::noinline, gnu::cold]] const std::uint8_t* StopCold(RowCursor& cursor,
                                                          RowStop stop) {
  cursor.stop = stop;
  return nullptr;
}

// A decimal whose length is not the one its precision has.
[[gnu::noinline, gnu::cold]] const std::uint8_t* OddDecimal(RowCursor& cursor,
                                                            PlannedColumn& column,
                                                            std::size_t row,
                                                            const std::uint8_t* at) {
  const std::uint8_t size = *at;
  bool good = size <= column.size;
  if (good && size == 5) {
    good = DecimalValue<5>(column, row, at + 1);
  } else if (good && size == 9) {
    good = DecimalValue<9>(column, row, at + 1);
  } else if (good && size == 13) {
    good = DecimalValue<13>(column, row, at + 1);
  } else {
    good = false;
  }
  return good ? at + 1 + size : StopCold(cursor, RowStop::kMalformed);
}

// A value that a length byte precedes, or none.
template <Op kOp>
MSSQL_CDC_INLINE const std::uint8_t* FixedCell(RowCursor& cursor, PlannedColumn& column,
                                               std::size_t row,
                                               const std::uint8_t* at) {
  const std::size_t size = SizeOf(kOp) == kSizeInPlan ? column.size : SizeOf(kOp);
  if constexpr (HasLengthByte(kOp)) {
    const std::uint8_t length = *at;
    if (length != size) [[unlikely]] {
      if (length == 0 && column.nullable) {
        NullOf<kOp>(column, row);
        return at + 1;
      }
      if constexpr (IsDecimal(kOp)) return OddDecimal(cursor, column, row, at);
      return StopCold(cursor, RowStop::kMalformed);
    }
    ++at;
  }
  if (!ValueOf<kOp>(column, row, at)) [[unlikely]] {
    return StopCold(cursor, RowStop::kMalformed);
  }
  return at + size;
}

// A value that a u16 length precedes.
template <Op kOp>
MSSQL_CDC_INLINE const std::uint8_t* ShortCell(RowCursor& cursor, PlannedColumn& column,
                                               std::size_t row,
                                               const std::uint8_t* at) {
  constexpr std::uint16_t kNull = 0xFFFF;
  const std::size_t size = Load<std::uint16_t>(at);
  if (size > column.size) [[unlikely]] {
    if (size != kNull || !column.nullable) return StopCold(cursor, RowStop::kMalformed);
    NullOf<kOp>(column, row);
    return at + 2;
  }
  if (size + 2 + column.need_after > RoomBehind(cursor, at)) [[unlikely]] {
    return StopCold(cursor, RowStop::kInsideRow);
  }
  if (!ShortValue<kOp>(column, row, at + 2, size)) [[unlikely]] {
    const bool odd = kOp == Op::kUtf16Short;
    return StopCold(cursor, odd ? RowStop::kMalformed : RowStop::kNotText);
  }
  return at + 2 + size;
}

// A PLP value: in place if it is NULL, empty, or one chunk that is all there.
[[gnu::noinline]] const std::uint8_t* PartialCell(RowCursor& cursor,
                                                  PlannedColumn& column,
                                                  std::size_t row,
                                                  const std::uint8_t* at) {
  constexpr std::uint64_t kNull = ~std::uint64_t{0};
  constexpr std::uint64_t kUnknown = kNull - 1;
  constexpr std::size_t kHeadSize = 8 + 4;
  const std::uint64_t total = Load<std::uint64_t>(at);
  if (total == kNull) {
    if (!column.nullable) return StopCold(cursor, RowStop::kMalformed);
    NullOf<Op::kPartial>(column, row);
    return at + 8;
  }
  const std::size_t room = RoomBehind(cursor, at);
  if (kHeadSize + column.need_after > room) return StopAt(cursor, RowStop::kInsideRow);
  const std::size_t chunk = Load<std::uint32_t>(at + 8);
  const std::uint8_t* bytes = at + kHeadSize;
  if (total != kUnknown && total != chunk) return StopAt(cursor, RowStop::kInsideRow);
  if (chunk == 0) {
    BytesWritten(column, row, 0);
    return bytes;
  }
  if (kHeadSize + chunk + 4 + column.need_after > room ||
      Load<std::uint32_t>(bytes + chunk) != 0 ||
      (chunk % 2 != 0 && column.codec.encoding == Encoding::kUtf16)) {
    return StopAt(cursor, RowStop::kInsideRow);
  }
  if (!TextValue(column, row, bytes, chunk)) return StopCold(cursor, RowStop::kNotText);
  return bytes + chunk + 4;
}

template <Op kOp>
MSSQL_CDC_INLINE const std::uint8_t* Cell(RowCursor& cursor, PlannedColumn& column,
                                          std::size_t row, const std::uint8_t* at) {
  if constexpr (kOp == Op::kTextPointer) {
    if (*at != 0 || !column.nullable) return StopAt(cursor, RowStop::kInsideRow);
    NullOf<kOp>(column, row);
    return at + 1;
  } else if constexpr (kOp == Op::kPartial) {
    return PartialCell(cursor, column, row, at);
  } else if constexpr (kOp >= Op::kBytesShort) {
    return ShortCell<kOp>(cursor, column, row, at);
  } else {
    return FixedCell<kOp>(cursor, column, row, at);
  }
}

// The bits of `bitmap` that are the run's.
MSSQL_CDC_INLINE std::uint64_t BitsOf(const std::uint8_t* bitmap, const Run& run) {
  // Reaches at most 9 bytes from the first one: the values' slack lies behind.
  const std::uint8_t* from = bitmap + run.first / 8;
  const std::size_t shift = run.first % 8;
  std::uint64_t bits = Load<std::uint64_t>(from) >> shift;
  if (shift != 0) bits |= std::uint64_t{from[8]} << (64 - shift);
  return bits & (~std::uint64_t{0} >> (Run::kCountMax - run.count));
}

// One run of a row without a bitmap.
template <Op kOp>
MSSQL_CDC_INLINE const std::uint8_t* RunAll(PlannedColumn* columns, RowCursor& cursor,
                                            const Run& run, std::size_t row,
                                            const std::uint8_t* at) {
  PlannedColumn* column = columns + run.first;
  PlannedColumn* const end = column + run.count;
  do {
    const std::uint8_t* next = Cell<kOp>(cursor, *column, row, at);
    if (next == nullptr) [[unlikely]] {
      cursor.column = static_cast<std::size_t>(column - columns);
      cursor.at = at;
      return nullptr;
    }
    at = next;
  } while (++column != end);
  return at;
}

// One run of a row with a bitmap, without a branch per column: a NULL is decoded like a
// value, from an image of zero. Null: not all of it is as it should be, and is to be
// taken the careful way.
template <Op kOp>
MSSQL_CDC_INLINE const std::uint8_t* RunOfImages(PlannedColumn* column, const Run& run,
                                                 std::uint64_t nulls, std::size_t row,
                                                 const std::uint8_t* at) {
  constexpr std::size_t kSize = SizeOf(kOp);
  auto zero = reinterpret_cast<std::uintptr_t>(kZeroImage<kOp>.data());
  // Hides what the image holds: the compiler would branch to make use of it.
  asm("" : "+r"(zero));
  auto address = reinterpret_cast<std::uintptr_t>(at);
  unsigned odd = 0;
  PlannedColumn* const end = column + run.count;
  do {
    const std::uintptr_t if_value = (nulls & 1) - 1;
    nulls >>= 1;
    const auto* const from = reinterpret_cast<const std::uint8_t*>(
        (address & if_value) + (zero & ~if_value));
    odd |= from[0] ^ unsigned { kSize };
    odd |= unsigned{!ValueOf<kOp>(*column, row, from + 1)};
    address += (1 + kSize) & if_value;
  } while (++column != end);
  return odd == 0 ? reinterpret_cast<const std::uint8_t*>(address) : nullptr;
}

// One run of a row with a bitmap: first its NULLs, then its values, so that what is
// predicted is two loop counts and not a branch per column.
template <Op kOp>
MSSQL_CDC_INLINE const std::uint8_t* RunPresent(PlannedColumn* columns,
                                                RowCursor& cursor, const Run& run,
                                                std::size_t row,
                                                const std::uint8_t* at) {
  PlannedColumn* const first = columns + run.first;
  const std::uint64_t nulls = BitsOf(cursor.bitmap, run);
  if ((nulls & run.not_null) != 0) [[unlikely]] {
    cursor.column =
        run.first + static_cast<std::size_t>(std::countr_zero(nulls & run.not_null));
    cursor.at = at;
    return StopCold(cursor, RowStop::kMalformed);
  }
  if constexpr (HasZeroImage(kOp)) {
    const std::uint8_t* next = RunOfImages<kOp>(first, run, nulls, row, at);
    if (next != nullptr) [[likely]]
      return next;
  }
  for (std::uint64_t left = nulls; left != 0; left &= left - 1) {
    ZeroOf<kOp>(first[std::countr_zero(left)], row);
  }
  std::uint64_t present = ~nulls & (~std::uint64_t{0} >> (Run::kCountMax - run.count));
  for (; present != 0; present &= present - 1) {
    PlannedColumn* const column = first + std::countr_zero(present);
    const std::uint8_t* next = Cell<kOp>(cursor, *column, row, at);
    if (next == nullptr) [[unlikely]] {
      cursor.column = static_cast<std::size_t>(column - columns);
      cursor.at = at;
      return nullptr;
    }
    at = next;
  }
  return at;
}

// The only place that lists every Op with its code: `body.template operator()<kOp>()`.
template <typename Body>
MSSQL_CDC_INLINE const std::uint8_t* WithOp(Op op, Body&& body) {
  switch (op) {
#define MSSQL_CDC_OP(name) \
  case Op::name:           \
    return body.template operator()<Op::name>();
    MSSQL_CDC_OP(kBit)
    MSSQL_CDC_OP(kInt1)
    MSSQL_CDC_OP(kCopy2)
    MSSQL_CDC_OP(kCopy4)
    MSSQL_CDC_OP(kCopy8)
    MSSQL_CDC_OP(kMoney4)
    MSSQL_CDC_OP(kMoney8)
    MSSQL_CDC_OP(kDateTime4)
    MSSQL_CDC_OP(kDateTime8)
    MSSQL_CDC_OP(kBitN)
    MSSQL_CDC_OP(kInt1N)
    MSSQL_CDC_OP(kCopy2N)
    MSSQL_CDC_OP(kCopy4N)
    MSSQL_CDC_OP(kCopy8N)
    MSSQL_CDC_OP(kMoney4N)
    MSSQL_CDC_OP(kMoney8N)
    MSSQL_CDC_OP(kDateTime4N)
    MSSQL_CDC_OP(kDateTime8N)
    MSSQL_CDC_OP(kDecimal5N)
    MSSQL_CDC_OP(kDecimal9N)
    MSSQL_CDC_OP(kDecimal13N)
    MSSQL_CDC_OP(kDecimal17N)
    MSSQL_CDC_OP(kGuidN)
    MSSQL_CDC_OP(kDateN)
    MSSQL_CDC_OP(kTimeN)
    MSSQL_CDC_OP(kDateTime2N)
    MSSQL_CDC_OP(kDateTime27N)
    MSSQL_CDC_OP(kDateTimeOffsetN)
    MSSQL_CDC_OP(kBytesShort)
    MSSQL_CDC_OP(kUtf16Short)
    MSSQL_CDC_OP(kSingleByteShort)
    MSSQL_CDC_OP(kOtherTextShort)
    MSSQL_CDC_OP(kPartial)
    MSSQL_CDC_OP(kTextPointer)
#undef MSSQL_CDC_OP
  }
  __builtin_unreachable();  // The plan holds listed Ops only.
}

// The values of one row from `at` on; null if it stopped inside.
template <bool kHasBitmap>
MSSQL_CDC_INLINE const std::uint8_t* Row(RowPlan& plan, RowCursor& cursor,
                                         std::size_t row, const std::uint8_t* at) {
  PlannedColumn* const columns = plan.columns.data();
  const Run* run = plan.runs.data();
  const Run* const end = run + plan.runs.size();
  for (; run != end; ++run) {
    at = WithOp(run->op, [&]<Op kOp>() MSSQL_CDC_INLINE_BODY {
      return kHasBitmap ? RunPresent<kOp>(columns, cursor, *run, row, at)
                        : RunAll<kOp>(columns, cursor, *run, row, at);
    });
    if (at == nullptr) [[unlikely]]
      return nullptr;
  }
  return at;
}

}  // namespace

void DecodeRows(RowPlan& plan, RowCursor& cursor) {
  cursor.stop = RowStop::kBetweenRows;
  const std::size_t row_need = 1 + plan.bitmap_size_bytes + plan.row_need;
  const std::uint8_t* at = cursor.at;
  std::size_t row = cursor.row;
  while (row < cursor.row_end && at < cursor.stop_at &&
         RoomBehind(cursor, at) >= row_need) {
    const std::uint8_t* next;
    if (*at == static_cast<std::uint8_t>(TokenId::kRow)) {
      cursor.bitmap = nullptr;
      next = Row<false>(plan, cursor, row, at + 1);
    } else if (*at == static_cast<std::uint8_t>(TokenId::kNbcRow)) {
      cursor.bitmap = at + 1;
      plan.nulls.Put(row, cursor.bitmap);
      next = Row<true>(plan, cursor, row, at + 1 + plan.bitmap_size_bytes);
    } else {
      break;
    }
    if (next == nullptr) [[unlikely]] {
      cursor.row = row;
      cursor.row_at = at;
      return;
    }
    at = next;
    ++row;
    if (row % NullBlock::kRowCount == 0) plan.nulls.Flush(plan.columns, row);
  }
  cursor.at = at;
  cursor.row_at = at;
  cursor.row = row;
}

void DecodeValue(RowPlan& plan, RowCursor& cursor) {
  cursor.stop = RowStop::kBetweenRows;
  PlannedColumn& column = plan.columns[cursor.column];
  const std::uint8_t* next = WithOp(column.op, [&]<Op kOp>() {
    return Cell<kOp>(cursor, column, cursor.row, cursor.at);
  });
  if (next != nullptr) cursor.at = next;
}

void WriteNull(PlannedColumn& column, std::size_t row) {
  WithOp(column.op, [&]<Op kOp>() -> const std::uint8_t* {
    NullOf<kOp>(column, row);
    return nullptr;
  });
}

void GrowBytes(PlannedColumn& column, std::size_t size_bytes) {
  constexpr std::size_t kSizeBytesMin = 4096;
  columns::ColumnAccess::ReserveBytes(
      *column.builder, size_bytes < kSizeBytesMin ? kSizeBytesMin : size_bytes,
      column.raw);
}

bool TextValue(PlannedColumn& column, std::size_t row, const std::uint8_t* at,
               std::size_t size) {
  std::uint8_t* out = BytesRoom(column, ConvertedSizeMax(size));
  const std::optional<Converted> piece = ConvertPiece(column.codec, at, size, out);
  if (!piece) return false;
  const std::optional<std::size_t> end = ConvertEnd(
      column.codec, at + piece->used, size - piece->used, out + piece->written);
  if (!end) return false;
  BytesWritten(column, row, piece->written + *end);
  return true;
}

}  // namespace mssql_cdc::tds
