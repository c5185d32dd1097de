#include "bench/shapes.h"

#include <functional>
#include <optional>
#include <utility>

#include "base/dice.h"

namespace mssql_cdc::bench {
namespace {

enum class Kind : std::uint8_t {
  kInt,
  kBigInt,
  kBit,
  kDecimal,
  kDate,
  kDateTime,
  kDateTime2,
  kNVarChar,
  kVarChar,
  kChar,
  kBinary,
};

// A value before it is encoded, a binary's bytes as text; absent is NULL. Dates are
// days since 0001-01-01, date and time is 100 ns ticks since then.
struct Cell {
  std::int64_t number = 0;
  std::u16string text;
};

struct ColumnSpec {
  std::u16string name;
  Kind kind;
  unsigned size = 0;  // Characters, or a decimal's precision.
  unsigned scale = 0;
  bool nullable = true;
  std::function<Cell(std::uint64_t row, Dice& dice)> value;
};

constexpr std::int64_t kTicksPerDay = 864'000'000'000;
constexpr std::int64_t kDaysTo2020 = 737'424;  // 2020-01-01.
constexpr std::int64_t kDaysTo1900 = 693'595;
// SQL_Latin1_General_CP1_CI_AS.
const Bytes kCollation = {0x09, 0x04, 0xD0, 0x00, 0x34};

void PutType(Bytes& out, const ColumnSpec& column) {
  switch (column.kind) {
    case Kind::kInt:
      if (!column.nullable) return PutByte(out, 0x38);
      return PutBytes(out, {0x26, 4});
    case Kind::kBigInt:
      if (!column.nullable) return PutByte(out, 0x7F);
      return PutBytes(out, {0x26, 8});
    case Kind::kBit:
      return PutBytes(out, {0x68, 1});
    case Kind::kDecimal:
      PutBytes(out, {0x6A, 9});
      PutByte(out, column.size);
      return PutByte(out, column.scale);
    case Kind::kDate:
      return PutByte(out, 0x28);
    case Kind::kDateTime:
      return PutBytes(out, {0x6F, 8});
    case Kind::kDateTime2:
      return PutBytes(out, {0x2A, 7});
    case Kind::kNVarChar:
    case Kind::kVarChar:
    case Kind::kChar: {
      const bool wide = column.kind == Kind::kNVarChar;
      PutByte(out, wide ? 0xE7 : column.kind == Kind::kVarChar ? 0xA7 : 0xAF);
      PutShort(out, column.size * (wide ? 2 : 1));
      return PutBytes(out, kCollation);
    }
    case Kind::kBinary:
      PutByte(out, 0xAD);
      return PutShort(out, column.size);
  }
}

Bytes MakeMetadata(const std::vector<ColumnSpec>& columns) {
  Bytes out;
  PutByte(out, 0x81);
  PutShort(out, columns.size());
  for (const ColumnSpec& column : columns) {
    PutLittle(out, 0, 4);                          // UserType
    PutShort(out, column.nullable ? 0x09 : 0x08);  // fNullable, usUpdateable
    PutType(out, column);
    PutName(out, column.name);
  }
  return out;
}

void PutValue(Bytes& out, const ColumnSpec& column, const Cell& cell) {
  const auto number = static_cast<std::uint64_t>(cell.number);
  const auto fixed = [&](unsigned size) {
    if (column.nullable) PutByte(out, size);
    PutLittle(out, number, static_cast<int>(size));
  };
  switch (column.kind) {
    case Kind::kInt:
      return fixed(4);
    case Kind::kBigInt:
      return fixed(8);
    case Kind::kBit:
      PutByte(out, 1);
      return PutByte(out, static_cast<unsigned>(number));
    case Kind::kDecimal:
      PutByte(out, 9);
      PutByte(out, cell.number < 0 ? 0 : 1);
      return PutLittle(out, cell.number < 0 ? 0 - number : number, 8);
    case Kind::kDate:
      PutByte(out, 3);
      return PutLittle(out, number, 3);
    case Kind::kDateTime: {
      const std::int64_t in_day = cell.number % kTicksPerDay;
      PutByte(out, 8);
      PutLittle(
          out, static_cast<std::uint64_t>(cell.number / kTicksPerDay - kDaysTo1900), 4);
      return PutLittle(out, static_cast<std::uint64_t>(in_day * 3 / 100'000), 4);
    }
    case Kind::kDateTime2:
      PutByte(out, 8);
      PutLittle(out, static_cast<std::uint64_t>(cell.number % kTicksPerDay), 5);
      return PutLittle(out, static_cast<std::uint64_t>(cell.number / kTicksPerDay), 3);
    case Kind::kNVarChar:
      PutShort(out, cell.text.size() * 2);
      return PutUtf16(out, cell.text);
    case Kind::kVarChar:
    case Kind::kChar:
    case Kind::kBinary:
      PutShort(out, cell.text.size());
      for (const char16_t unit : cell.text) PutByte(out, unit);
      return;
  }
}

// `null_percent` of the nullable cells are NULL; above 0 the rows are NBCROW.
Shape MakeShape(std::u16string name, const std::vector<ColumnSpec>& columns,
                std::size_t row_count, std::uint32_t null_percent) {
  Shape shape;
  shape.name = std::move(name);
  shape.column_count = columns.size();
  shape.metadata = MakeMetadata(columns);
  Dice dice(20'260'101);
  for (std::size_t row = 0; row < row_count; ++row) {
    PutByte(shape.rows, null_percent > 0 ? 0xD2 : 0xD1);
    const std::size_t bitmap = shape.rows.size();
    if (null_percent > 0) shape.rows.resize(bitmap + (columns.size() + 7) / 8, 0);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Cell cell = columns[i].value(row, dice);
      if (columns[i].nullable && dice.Chance(null_percent, 100)) {
        shape.rows[bitmap + i / 8] |= static_cast<std::uint8_t>(1u << (i % 8));
      } else {
        PutValue(shape.rows, columns[i], cell);
      }
    }
    shape.row_ends.push_back(shape.rows.size());
  }
  return shape;
}

std::u16string Decimal(std::uint64_t value) {
  std::u16string text;
  for (const char digit : std::to_string(value)) {
    text.push_back(static_cast<char16_t>(digit));
  }
  return text;
}

// Words of letters, `average` characters long give or take a half; with
// `foreign_percent` a text has some letters outside ASCII.
std::u16string Letters(Dice& dice, std::uint64_t average,
                       std::uint32_t foreign_percent) {
  static constexpr char16_t kForeign[] = u"éüñßŁжλ中文字";
  std::u16string text;
  const std::uint64_t length = average / 2 + dice.Below(average + 1);
  const bool foreign = dice.Chance(foreign_percent, 100);
  for (std::uint64_t i = 0; i < length; ++i) {
    text.push_back(foreign && i % 3 == 1
                       ? kForeign[dice.Below(std::size(kForeign) - 1)]
                       : static_cast<char16_t>(u'a' + dice.Below(26)));
  }
  return text;
}

std::u16string Padded(std::u16string text, std::size_t length) {
  text.resize(length, u' ');
  return text;
}

auto Below(std::uint64_t count) {
  return [count](std::uint64_t, Dice& dice) {
    return Cell{static_cast<std::int64_t>(dice.Below(count)), {}};
  };
}

auto RowNumber() {
  return [](std::uint64_t row, Dice&) {
    return Cell{static_cast<std::int64_t>(row) + 1, {}};
  };
}

// Both signs, up to and excluding `count`.
auto Signed(std::uint64_t count) {
  return [count](std::uint64_t, Dice& dice) {
    const auto size = static_cast<std::int64_t>(dice.Below(count));
    return Cell{dice.Chance(1, 4) ? -size : size, {}};
  };
}

auto Text(std::uint64_t average, std::uint32_t foreign_percent = 0) {
  return [=](std::uint64_t, Dice& dice) {
    return Cell{0, Letters(dice, average, foreign_percent)};
  };
}

auto Day() {
  return [](std::uint64_t, Dice& dice) {
    return Cell{kDaysTo2020 + static_cast<std::int64_t>(dice.Below(2000)), {}};
  };
}

auto Moment() {
  return [](std::uint64_t, Dice& dice) {
    return Cell{kDaysTo2020 * kTicksPerDay +
                    static_cast<std::int64_t>(dice.Below(2000ull * kTicksPerDay)),
                {}};
  };
}

auto Choice(std::vector<std::u16string> texts, std::size_t length) {
  return [texts = std::move(texts), length](std::uint64_t, Dice& dice) {
    return Cell{0, Padded(texts[dice.Below(texts.size())], length)};
  };
}

std::vector<ColumnSpec> Narrow8() {
  return {
      {u"id", Kind::kBigInt, 0, 0, false, RowNumber()},
      {u"customer_id", Kind::kInt, 0, 0, true, Below(1'000'000)},
      {u"status_id", Kind::kInt, 0, 0, true, Below(12)},
      {u"amount", Kind::kDecimal, 18, 4, true, Signed(100'000'000)},
      {u"name", Kind::kNVarChar, 50, 0, true, Text(16)},
      {u"updated_at", Kind::kDateTime2, 0, 7, true, Moment()},
      {u"is_active", Kind::kBit, 0, 0, true, Below(2)},
      {u"region", Kind::kNVarChar, 32, 0, true, Text(10)},
  };
}

// An LSN: some bytes that stay, and the row's number.
auto Lsn(std::uint64_t rows_each) {
  return [rows_each](std::uint64_t row, Dice&) {
    Cell cell{0, std::u16string(10, u'\0')};
    cell.text[3] = 0x2A;
    for (std::size_t i = 0; i < 4; ++i) {
      cell.text[9 - i] = static_cast<char16_t>((row / rows_each) >> (8 * i) & 0xFF);
    }
    return cell;
  };
}

// Rows of a change table of W1, as bench/serve.py asks for them.
std::vector<ColumnSpec> Changes13() {
  std::vector<ColumnSpec> columns = {
      {u"__$start_lsn", Kind::kBinary, 10, 0, false, Lsn(1000)},
      {u"__$seqval", Kind::kBinary, 10, 0, false, Lsn(1)},
      {u"__$operation", Kind::kInt, 0, 0, false,
       [](std::uint64_t, Dice&) { return Cell{2, {}}; }},
      {u"__$command_id", Kind::kInt, 0, 0, false, RowNumber()},
      {u"commit_time", Kind::kDateTime, 0, 0, true, Moment()},
  };
  for (ColumnSpec& column : Narrow8()) {
    column.nullable = true;
    columns.push_back(std::move(column));
  }
  return columns;
}

std::vector<ColumnSpec> LineItem16() {
  return {
      {u"l_orderkey", Kind::kBigInt, 0, 0, false, Below(60'000'000)},
      {u"l_partkey", Kind::kInt, 0, 0, false, Below(2'000'000)},
      {u"l_suppkey", Kind::kInt, 0, 0, false, Below(100'000)},
      {u"l_linenumber", Kind::kInt, 0, 0, false, Below(7)},
      {u"l_quantity", Kind::kDecimal, 15, 2, false, Below(5'000)},
      {u"l_extendedprice", Kind::kDecimal, 15, 2, false, Below(10'000'000)},
      {u"l_discount", Kind::kDecimal, 15, 2, false, Below(11)},
      {u"l_tax", Kind::kDecimal, 15, 2, false, Below(9)},
      {u"l_returnflag", Kind::kChar, 1, 0, false, Choice({u"A", u"N", u"R"}, 1)},
      {u"l_linestatus", Kind::kChar, 1, 0, false, Choice({u"O", u"F"}, 1)},
      {u"l_shipdate", Kind::kDate, 0, 0, false, Day()},
      {u"l_commitdate", Kind::kDate, 0, 0, false, Day()},
      {u"l_receiptdate", Kind::kDate, 0, 0, false, Day()},
      {u"l_shipinstruct", Kind::kChar, 25, 0, false,
       Choice({u"DELIVER IN PERSON", u"COLLECT COD", u"NONE", u"TAKE BACK RETURN"},
              25)},
      {u"l_shipmode", Kind::kChar, 10, 0, false,
       Choice({u"REG AIR", u"AIR", u"RAIL", u"SHIP", u"TRUCK", u"MAIL", u"FOB"}, 10)},
      {u"l_comment", Kind::kVarChar, 44, 0, false, Text(27)},
  };
}

// The existing package's bench table: dN = n % (97+N) + 0.25, sN = 'value-' and
// n % (1000+N).
std::vector<ColumnSpec> Wide89() {
  std::vector<ColumnSpec> columns = {{u"id", Kind::kInt, 0, 0, false, RowNumber()}};
  for (std::uint64_t i = 1; i <= 40; ++i) {
    columns.push_back(
        {u"d" + Decimal(i), Kind::kDecimal, 15, 4, true, [i](std::uint64_t row, Dice&) {
           return Cell{static_cast<std::int64_t>(row % (97 + i)) * 10'000 + 2'500, {}};
         }});
  }
  for (std::uint64_t i = 1; i <= 40; ++i) {
    columns.push_back(
        {u"s" + Decimal(i), Kind::kVarChar, 40, 0, true, [i](std::uint64_t row, Dice&) {
           return Cell{0, u"value-" + Decimal(row % (1000 + i))};
         }});
  }
  for (std::uint64_t i = 1; i <= 8; ++i) {
    columns.push_back({u"i" + Decimal(i), Kind::kInt, 0, 0, true, Below(1'000 * i)});
  }
  return columns;
}

std::vector<ColumnSpec> Wide90Unicode() {
  std::vector<ColumnSpec> columns;
  const auto add = [&](char16_t letter, int count, const ColumnSpec& like) {
    for (int i = 1; i <= count; ++i) {
      columns.push_back(like);
      columns.back().name = letter + Decimal(static_cast<std::uint64_t>(i));
    }
  };
  add(u'i', 20, {{}, Kind::kInt, 0, 0, true, Signed(1'000'000'000)});
  add(u'd', 25, {{}, Kind::kDecimal, 18, 4, true, Signed(10'000'000'000)});
  add(u'n', 30, {{}, Kind::kNVarChar, 40, 0, true, Text(12, 5)});
  add(u't', 12, {{}, Kind::kDateTime2, 0, 7, true, Moment()});
  add(u'b', 3, {{}, Kind::kBit, 0, 0, true, Below(2)});
  return columns;
}

}  // namespace

std::vector<Shape> MakeShapes(std::size_t distinct_row_count) {
  std::vector<Shape> shapes;
  shapes.push_back(MakeShape(u"W1", Narrow8(), distinct_row_count, 0));
  shapes.push_back(MakeShape(u"C1", Changes13(), distinct_row_count, 0));
  shapes.push_back(MakeShape(u"W2", LineItem16(), distinct_row_count, 0));
  shapes.push_back(MakeShape(u"W3", Wide89(), distinct_row_count, 0));
  shapes.push_back(MakeShape(u"W3u", Wide90Unicode(), distinct_row_count, 30));
  return shapes;
}

}  // namespace mssql_cdc::bench
