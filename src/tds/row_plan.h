// What COLMETADATA is turned into, once per result set: for every column the decoder of
// its values, and the columns' order cut into runs that share one decoder.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "columns/batch.h"
#include "columns/column_access.h"
#include "tds/null_block.h"
#include "tds/reader.h"
#include "tds/text_codec.h"
#include "tds/type_info.h"

namespace mssql_cdc::tds {

// The closed set of value decoders. Fixed: the value alone. N: a length byte first (0
// is NULL). Short: a u16 length first (0xFFFF is NULL).
enum class Op : std::uint8_t {
  kBit,
  kInt1,
  kCopy2,
  kCopy4,
  kCopy8,
  kMoney4,
  kMoney8,
  kDateTime4,
  kDateTime8,
  kBitN,
  kInt1N,
  kCopy2N,
  kCopy4N,
  kCopy8N,
  kMoney4N,
  kMoney8N,
  kDateTime4N,
  kDateTime8N,
  kDecimal5N,  // Sign byte and 4 bytes of magnitude.
  kDecimal9N,
  kDecimal13N,
  kDecimal17N,
  kGuidN,
  kDateN,
  kTimeN,
  kDateTime2N,   // Scales 0 to 6.
  kDateTime27N,  // Scale 7, what datetime2 is without one.
  kDateTimeOffsetN,
  kBytesShort,
  kUtf16Short,
  kSingleByteShort,
  kOtherTextShort,  // UTF-8 and multi-byte pages.
  kPartial,         // PLP of any encoding.
  kTextPointer,     // text, ntext, image.
};

// A row is decoded in place only while so many bytes are left behind it, so that vector
// loads may reach past a value.
inline constexpr std::size_t kReadSlackBytes = 64;

struct alignas(64) PlannedColumn {
  // Hot, and together in one line of the cache: what decoding a value touches.
  columns::ColumnAccess::Raw raw;
  // Bytes that must be there behind this value so that the rest of the row can be
  // decoded without asking: fixed parts of the columns that follow, and the slack.
  std::size_t need_after = 0;
  std::uint32_t size = 0;  // Bytes of a value on the wire: exactly, or (Short) at most.
  std::uint8_t scale = 0;
  bool nullable = true;
  Op op = Op::kCopy4;
  columns::Kind kind = columns::Kind::kInt32;
  std::uint64_t magnitude_max_low = 0;  // The next, or the largest 64-bit number.
  // Cold.
  unsigned __int128 magnitude_max = 0;  // Of decimals: 10^precision - 1.
  TextCodec codec;
  columns::ColumnBuilder* builder = nullptr;
  TypeInfo type;
};

// Neighbouring columns of one Op, no more than a word has bits.
struct Run {
  static constexpr std::uint32_t kCountMax = 64;

  Op op;
  std::uint32_t first;
  std::uint32_t count;
  std::uint64_t not_null;  // A bit for every column that may not be NULL.
};

struct RowPlan {
  columns::SchemaPtr schema;
  std::vector<PlannedColumn> columns;
  std::vector<columns::ColumnBuilder> builders;  // Pointed to by columns.
  std::vector<Run> runs;
  NullBlock nulls;                    // Of the batch at hand.
  std::size_t bitmap_size_bytes = 0;  // Of NBCROW.
  std::size_t row_need = 0;           // Fixed parts of a row's values and the slack.
  std::size_t row_width_bytes = 0;    // Of a row in memory, without text and bytes.
};

// Decodes a COLMETADATA token, id included, at the front of `in`. nullopt, `in`
// untouched: the bytes end inside it. A plan without columns: the server sent no
// metadata. Errors: TdsMalformed, TdsLimitExceeded, TdsUnsupportedType (fact column).
Result<std::optional<RowPlan>> ReadColMetadata(Reader& in);

}  // namespace mssql_cdc::tds
