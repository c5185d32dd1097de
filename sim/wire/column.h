// Writes result columns and their values: TYPE_INFO once, then one value a row.
//
// How a column goes out is decided once, from its type and from what the client can
// take: older TDS versions get text for dates and TEXT for (max), and clients without
// UTF-8 support get UTF-16 for columns of a UTF-8 collation, as a real server does.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/value.h"
#include "sim/wire/bytes.h"
#include "sim/wire/collation.h"
#include "sim/wire/login.h"
#include "tds/spec.h"

namespace mssql_cdc::sim::wire {

// What one client takes.
struct Dialect {
  TdsVersion version = TdsVersion::k74;
  bool utf8_support = true;
  Collation collation = kDefaultCollation;  // Of columns that name none.

  bool takes_null_bitmaps() const { return version >= TdsVersion::k73b; }
  bool takes_modern_dates() const { return version >= TdsVersion::k73a; }
  bool takes_max() const { return version >= TdsVersion::k72; }
};

class ColumnEncoder {
 public:
  // Not nullable: where the type has a fixed length, the token without one is used.
  ColumnEncoder(const SqlType& type, bool nullable, const Dialect& dialect);

  // Columns of one form put a value into the same bytes.
  std::string Form() const;
  // UserType, flags and TYPE_INFO. `flags` are the column's; nullable is added here.
  void WriteTypeInfo(ByteBuffer& out, std::uint16_t flags) const;
  // Whether TYPE_INFO is followed by a table name in COLMETADATA.
  bool has_table_name() const { return layout_ == Layout::kTextPointer; }
  // Bytes that a NULL takes in a ROW; 0: it cannot be NULL there.
  std::size_t null_size_bytes() const;
  void WriteNull(ByteBuffer& out) const;
  // Whether `value`, not NULL, is of this column's type and range.
  bool Fits(const Value& value) const;
  // Requires: Fits. Returns false if text came out longer than the column is.
  bool WriteValue(const Value& value, ByteBuffer& out) const;

 private:
  // What stands before the bytes of a value.
  enum class Layout : std::uint8_t {
    kBare,
    kByteCount,
    kShortCount,
    kChunked,
    kTextPointer,
    kVariant,
  };

  void Choose(bool nullable);
  void ChooseText();
  void ChooseFixed(tds::DataType bare, tds::DataType counted, std::uint8_t size,
                   bool nullable);
  bool WriteText(const Value& value, ByteBuffer& out) const;
  bool WriteBytes(std::string_view bytes, ByteBuffer& out) const;

  SqlType type_;
  Dialect dialect_;
  bool nullable_;
  Layout layout_ = Layout::kByteCount;
  tds::DataType token_ = tds::DataType::kIntN;
  // In TYPE_INFO: of kByteCount the largest size, of the long types as well.
  std::uint32_t size_bytes_max_ = 0;
  Collation collation_;
  bool unicode_ = false;  // Text that goes out as UTF-16.
  bool dates_as_text_ = false;
};

// Scalars as their bytes alone, without length. Also what sql_variant holds.
void WriteScalar(const SqlType& type, const Value& value, ByteBuffer& out);
// A value of sql_variant that is not NULL, with its length.
bool WriteVariant(const Value& value, const Dialect& dialect, ByteBuffer& out);
// The number of bytes of a decimal of that precision, with its sign.
std::uint8_t DecimalSizeBytes(std::uint8_t precision);
std::uint8_t TimeSizeBytes(std::uint8_t scale);
// "2026-01-31 23:59:59.1234567 +01:00", as far as the type has those parts.
std::u16string DateText(const SqlType& type, const DateTimeValue& value);
std::size_t DateTextUnits(const SqlType& type);

}  // namespace mssql_cdc::sim::wire
