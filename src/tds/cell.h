// Decoders of single values, one per Op, inlined into the row loop.
//
// Each takes the bytes of one value, which start at `at` and of which need_after and
// the fixed part are known to be there, and writes row `row` of its column. Writing a
// row again overwrites it, so a row that stops in the middle can be taken up by the
// resumable path. Only row_fast.cc includes this file.

#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "tds/row_fast.h"
#include "tds/row_plan.h"
#include "tds/temporal.h"

// Everything here is meant to end up in one loop. With a sanitizer in it that loop
// takes minutes to compile, so there the compiler may choose.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MSSQL_CDC_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(MSSQL_CDC_SANITIZED)
#define MSSQL_CDC_INLINE inline
#define MSSQL_CDC_INLINE_BODY
#else
#define MSSQL_CDC_INLINE [[gnu::always_inline]] inline
#define MSSQL_CDC_INLINE_BODY __attribute__((always_inline))
#endif

namespace mssql_cdc::tds {

template <typename T>
MSSQL_CDC_INLINE T Load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
MSSQL_CDC_INLINE void Store(PlannedColumn& column, std::size_t row, T value) {
  std::memcpy(column.raw.values + row * sizeof(T), &value, sizeof(T));
}

MSSQL_CDC_INLINE void ClearValid(PlannedColumn& column, std::size_t row) {
  column.raw.validity[row / 8] &= static_cast<std::uint8_t>(~(1u << (row % 8)));
}

template <std::size_t kWidth>
MSSQL_CDC_INLINE void ZeroOfWidth(PlannedColumn& column, std::size_t row) {
  std::memset(column.raw.values + row * kWidth, 0, kWidth);
}

// Bytes from `at` to the end of what may be read.
MSSQL_CDC_INLINE std::size_t RoomBehind(const RowCursor& cursor,
                                        const std::uint8_t* at) {
  return cursor.end_address - reinterpret_cast<std::uintptr_t>(at);
}

MSSQL_CDC_INLINE const std::uint8_t* StopAt(RowCursor& cursor, RowStop stop) {
  cursor.stop = stop;
  return nullptr;
}

// Room for `count` more bytes and the slack of vector stores.
MSSQL_CDC_INLINE std::uint8_t* BytesRoom(PlannedColumn& column, std::size_t count) {
  const std::size_t needed = column.raw.bytes_size + count + kTextSlackBytes;
  if (needed > column.raw.bytes_capacity) [[unlikely]] {
    GrowBytes(column, needed);
  }
  return column.raw.values + column.raw.bytes_size;
}

MSSQL_CDC_INLINE void BytesWritten(PlannedColumn& column, std::size_t row,
                                   std::size_t count) {
  column.raw.bytes_size += count;
  column.raw.offsets[row + 1] = static_cast<std::int32_t>(column.raw.bytes_size);
}

// ---- values of known size; false: the bytes are no such value ----

constexpr std::size_t kSizeInPlan = 0;

// The wire size of an Op's value, kSizeInPlan if the column has it.
constexpr std::size_t SizeOf(Op op) {
  switch (op) {
    case Op::kBit:
    case Op::kBitN:
    case Op::kInt1:
    case Op::kInt1N:
      return 1;
    case Op::kCopy2:
    case Op::kCopy2N:
      return 2;
    case Op::kDateN:
      return 3;
    case Op::kCopy4:
    case Op::kCopy4N:
    case Op::kMoney4:
    case Op::kMoney4N:
    case Op::kDateTime4:
    case Op::kDateTime4N:
      return 4;
    case Op::kDecimal5N:
      return 5;
    case Op::kCopy8:
    case Op::kCopy8N:
    case Op::kMoney8:
    case Op::kMoney8N:
    case Op::kDateTime8:
    case Op::kDateTime8N:
    case Op::kDateTime27N:
      return 8;
    case Op::kDecimal9N:
      return 9;
    case Op::kDecimal13N:
      return 13;
    case Op::kGuidN:
      return 16;
    case Op::kDecimal17N:
      return 17;
    default:
      return kSizeInPlan;
  }
}

constexpr bool HasLengthByte(Op op) {
  return op >= Op::kBitN && op <= Op::kDateTimeOffsetN;
}

constexpr bool IsDecimal(Op op) {
  return op >= Op::kDecimal5N && op <= Op::kDecimal17N;
}

// Negates a magnitude where the sign byte is 0; anything but 0 and 1 is malformed.
MSSQL_CDC_INLINE __int128 Signed(unsigned __int128 magnitude, std::uint8_t sign) {
  const auto flip = static_cast<__int128>(sign) - 1;  // 0, or all ones.
  return (static_cast<__int128>(magnitude) ^ flip) - flip;
}

template <std::size_t kSize>
MSSQL_CDC_INLINE bool DecimalValue(PlannedColumn& column, std::size_t row,
                                   const std::uint8_t* at) {
  const std::uint8_t sign = at[0];
  if constexpr (kSize <= 9) {
    const std::uint64_t magnitude =
        kSize == 5 ? Load<std::uint32_t>(at + 1) : Load<std::uint64_t>(at + 1);
    // As Signed, in two halves: of 0 and above, the high one is 0.
    const std::uint64_t flip = std::uint64_t{sign} - 1;
    const std::uint64_t high = magnitude != 0 ? flip : 0;
    const std::uint64_t halves[2] = {(magnitude ^ flip) - flip, high};
    std::memcpy(column.raw.values + row * sizeof(halves), halves, sizeof(halves));
    return (sign <= 1) & (magnitude <= column.magnitude_max_low);
  } else {
    const std::uint64_t low = Load<std::uint64_t>(at + 1);
    const std::uint64_t high =
        kSize == 13 ? Load<std::uint32_t>(at + 9) : Load<std::uint64_t>(at + 9);
    const unsigned __int128 magnitude =
        static_cast<unsigned __int128>(high) << 64 | low;
    Store(column, row, Signed(magnitude, sign));
    return sign <= 1 && magnitude <= column.magnitude_max;
  }
}

MSSQL_CDC_INLINE bool BitValue(PlannedColumn& column, std::size_t row,
                               const std::uint8_t* at) {
  std::uint8_t& bits = column.raw.values[row / 8];
  const unsigned others = bits & ~(1u << (row % 8));
  bits = static_cast<std::uint8_t>(others | unsigned{*at != 0} << (row % 8));
  return true;
}

MSSQL_CDC_INLINE bool Timestamp(PlannedColumn& column, std::size_t row,
                                std::int64_t utc_us) {
  Store(column, row, utc_us);
  return utc_us != kNoTimestamp;
}

template <Op kOp>
MSSQL_CDC_INLINE bool ValueOf(PlannedColumn& column, std::size_t row,
                              const std::uint8_t* at) {
  if constexpr (kOp == Op::kBit || kOp == Op::kBitN) {
    return BitValue(column, row, at);
  } else if constexpr (kOp == Op::kInt1 || kOp == Op::kInt1N) {
    Store(column, row, static_cast<std::int16_t>(*at));  // tinyint has no sign.
    return true;
  } else if constexpr (kOp == Op::kCopy2 || kOp == Op::kCopy2N) {
    Store(column, row, Load<std::uint16_t>(at));
    return true;
  } else if constexpr (kOp == Op::kCopy4 || kOp == Op::kCopy4N) {
    Store(column, row, Load<std::uint32_t>(at));
    return true;
  } else if constexpr (kOp == Op::kCopy8 || kOp == Op::kCopy8N) {
    Store(column, row, Load<std::uint64_t>(at));
    return true;
  } else if constexpr (kOp == Op::kMoney4 || kOp == Op::kMoney4N) {
    Store(column, row, static_cast<__int128>(Load<std::int32_t>(at)));
    return true;
  } else if constexpr (kOp == Op::kMoney8 || kOp == Op::kMoney8N) {
    // The high half comes first.
    const std::uint64_t value = std::rotl(Load<std::uint64_t>(at), 32);
    Store(column, row, static_cast<__int128>(static_cast<std::int64_t>(value)));
    return true;
  } else if constexpr (kOp == Op::kDateTime4 || kOp == Op::kDateTime4N) {
    return Timestamp(column, row, UsOfSmallDateTime(Load<std::uint32_t>(at)));
  } else if constexpr (kOp == Op::kDateTime8 || kOp == Op::kDateTime8N) {
    return Timestamp(column, row, UsOfDateTime(Load<std::uint64_t>(at)));
  } else if constexpr (kOp == Op::kDateTime27N) {
    const std::uint64_t value = Load<std::uint64_t>(at);
    const std::uint64_t ticks = value & 0xFF'FFFF'FFFF;
    const std::uint64_t days = value >> 40;
    Store(column, row, UsOfDays(days) + static_cast<std::int64_t>(ticks / 10));
    return ticks < kTicksPerDay && days <= kDaysMax;
  } else if constexpr (kOp == Op::kDateTime2N) {
    return Timestamp(column, row, UsOfDateTime2(at, column.size, column.scale));
  } else if constexpr (kOp == Op::kDateTimeOffsetN) {
    return Timestamp(column, row, UsOfDateTimeOffset(at, column.size, column.scale));
  } else if constexpr (kOp == Op::kDateN) {
    const std::uint32_t days = Load<std::uint32_t>(at) & 0xFFFFFF;
    Store(column, row, static_cast<std::int32_t>(days) - kDaysTo1970);
    return days <= kDaysMax;
  } else if constexpr (kOp == Op::kTimeN) {
    char* out = reinterpret_cast<char*>(BytesRoom(column, kTimeTextSize));
    const bool is_time = WriteTime(at, column.size, column.scale, out);
    BytesWritten(column, row, kTimeTextSize);
    return is_time;
  } else if constexpr (kOp == Op::kGuidN) {
    WriteGuid(at, reinterpret_cast<char*>(BytesRoom(column, kGuidTextSize)));
    BytesWritten(column, row, kGuidTextSize);
    return true;
  } else {
    static_assert(IsDecimal(kOp));
    return DecimalValue<SizeOf(kOp)>(column, row, at);
  }
}

// What stands in the place of a NULL: zero, or no bytes.
template <Op kOp>
MSSQL_CDC_INLINE void ZeroOf(PlannedColumn& column, std::size_t row) {
  if constexpr (kOp == Op::kBit || kOp == Op::kBitN) {
    constexpr std::uint8_t kFalse = 0;
    BitValue(column, row, &kFalse);
  } else if constexpr (kOp >= Op::kBytesShort || kOp == Op::kGuidN ||
                       kOp == Op::kTimeN) {
    BytesWritten(column, row, 0);
  } else if constexpr (IsDecimal(kOp) || kOp == Op::kMoney4 || kOp == Op::kMoney4N ||
                       kOp == Op::kMoney8 || kOp == Op::kMoney8N) {
    ZeroOfWidth<16>(column, row);
  } else if constexpr (SizeOf(kOp) <= 2 && SizeOf(kOp) != kSizeInPlan) {
    ZeroOfWidth<2>(column, row);
  } else if constexpr (kOp == Op::kCopy4 || kOp == Op::kCopy4N || kOp == Op::kDateN) {
    ZeroOfWidth<4>(column, row);
  } else {
    ZeroOfWidth<8>(column, row);  // 8-byte numbers and all timestamps.
  }
}

template <Op kOp>
MSSQL_CDC_INLINE void NullOf(PlannedColumn& column, std::size_t row) {
  ClearValid(column, row);
  ZeroOf<kOp>(column, row);
}

// ---- what a NULL is decoded from where that is faster than to branch ----

constexpr bool HasZeroImage(Op op) {
  return HasLengthByte(op) && SizeOf(op) != kSizeInPlan && op != Op::kDateTime4N &&
         op != Op::kDateTime8N && op != Op::kGuidN;
}

// The wire's bytes, from the length on, of the value that ZeroOf writes.
template <Op kOp>
inline constexpr auto kZeroImage = [] {
  std::array<std::uint8_t, 32> image{};
  image[0] = SizeOf(kOp);
  if constexpr (kOp == Op::kDateN || kOp == Op::kDateTime27N) {
    // The day is the last three bytes.
    for (std::size_t i = 0; i < 3; ++i) {
      image[SizeOf(kOp) - 2 + i] = static_cast<std::uint8_t>(kDaysTo1970 >> 8 * i);
    }
  }
  return image;
}();

// ---- short text and bytes ----

#if defined(__SSE2__)

MSSQL_CDC_INLINE __m128i LoadVector(const std::uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
MSSQL_CDC_INLINE void StoreVector(std::uint8_t* at, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at), value);
}

// 16 units to bytes; gives a bit for every unit that is not ASCII.
MSSQL_CDC_INLINE unsigned Narrow16(const std::uint8_t* in, std::uint8_t* out) {
  const __m128i a = LoadVector(in);
  const __m128i b = LoadVector(in + 16);
  StoreVector(out, _mm_packus_epi16(a, b));
  // Saturating: a unit from 0x80 on gets its top bit set.
  const __m128i bump = _mm_set1_epi16(0x7F80);
  return static_cast<unsigned>(_mm_movemask_epi8(
      _mm_packs_epi16(_mm_adds_epu16(a, bump), _mm_adds_epu16(b, bump))));
}

// Narrows up to 32 units that may all be ASCII. True: they were.
MSSQL_CDC_INLINE bool NarrowShort(const std::uint8_t* in, std::size_t unit_count,
                                  std::uint8_t* out) {
  // Both halves, always: whether there is a second one could not be predicted.
  const std::uint64_t wide =
      Narrow16(in, out) | std::uint64_t{Narrow16(in + 32, out + 16)} << 16;
  return (wide & ((std::uint64_t{1} << unit_count) - 1)) == 0;
}

// Copies up to 32 bytes. True: all of them are ASCII.
MSSQL_CDC_INLINE bool CopyShortAscii(const std::uint8_t* in, std::size_t size,
                                     std::uint8_t* out) {
  const __m128i a = LoadVector(in);
  const __m128i b = LoadVector(in + 16);
  StoreVector(out, a);
  StoreVector(out + 16, b);
  const auto wide =
      static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(a))) |
      static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(b))) << 16;
  return (wide & ((std::uint64_t{1} << size) - 1)) == 0;
}

#else

MSSQL_CDC_INLINE bool NarrowShort(const std::uint8_t* in, std::size_t unit_count,
                                  std::uint8_t* out) {
  unsigned wide = 0;
  for (std::size_t i = 0; i < unit_count; ++i) {
    const unsigned unit = in[2 * i] | unsigned{in[2 * i + 1]} << 8;
    wide |= unit & 0xFF80u;
    out[i] = static_cast<std::uint8_t>(unit);
  }
  return wide == 0;
}

MSSQL_CDC_INLINE bool CopyShortAscii(const std::uint8_t* in, std::size_t size,
                                     std::uint8_t* out) {
  unsigned wide = 0;
  for (std::size_t i = 0; i < size; ++i) {
    wide |= in[i];
    out[i] = in[i];
  }
  return wide < 0x80;
}

#endif

// What the inlined code above does not take: long values, other encodings, and text
// that is not ASCII. False: not text in this encoding.
bool TextValue(PlannedColumn& column, std::size_t row, const std::uint8_t* at,
               std::size_t size);

template <Op kOp>
MSSQL_CDC_INLINE bool ShortValue(PlannedColumn& column, std::size_t row,
                                 const std::uint8_t* at, std::size_t size) {
  constexpr std::size_t kInlineMax = 32;
  if constexpr (kOp == Op::kUtf16Short) {
    const std::size_t unit_count = size / 2;
    if (unit_count <= kInlineMax) [[likely]] {
      std::uint8_t* out = BytesRoom(column, 3 * kInlineMax);
      if (NarrowShort(at, unit_count, out)) [[likely]] {
        BytesWritten(column, row, unit_count);
      } else {
        BytesWritten(column, row, Utf8OfShortUtf16(at, unit_count, out));
      }
      return size % 2 == 0;
    }
    return TextValue(column, row, at, size);
  } else if constexpr (kOp == Op::kSingleByteShort) {
    if (size <= kInlineMax) [[likely]] {
      std::uint8_t* out = BytesRoom(column, kInlineMax);
      if (CopyShortAscii(at, size, out)) [[likely]] {
        BytesWritten(column, row, size);
        return true;
      }
    }
    return TextValue(column, row, at, size);
  } else if constexpr (kOp == Op::kBytesShort) {
    if (size <= kInlineMax) [[likely]] {
      (void)CopyShortAscii(at, size, BytesRoom(column, kInlineMax));
    } else {
      std::memcpy(BytesRoom(column, size), at, size);
    }
    BytesWritten(column, row, size);
    return true;
  } else {
    return TextValue(column, row, at, size);
  }
}

}  // namespace mssql_cdc::tds
