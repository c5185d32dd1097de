#include "tds/collation.h"

#include <iterator>

#include "tds/code_page_tables.h"

namespace mssql_cdc::tds {
namespace {

struct SortIdRange {
  int first;
  int last;
  int code_page;
};

// Sort ids of the SQL collations (the table "SQL Server Collation Name" of the T-SQL
// reference, and sys.fn_helpcollations).
constexpr SortIdRange kSortIdRanges[] = {
    {30, 34, 437},    {40, 44, 850},    {49, 49, 850},    {50, 54, 1252},
    {55, 61, 850},    {71, 75, 1252},   {80, 98, 1250},   {104, 108, 1251},
    {112, 114, 1253}, {120, 122, 1253}, {124, 124, 1253}, {128, 130, 1254},
    {136, 138, 1255}, {144, 146, 1256}, {152, 160, 1257}, {183, 186, 1252},
    {192, 193, 932},  {194, 195, 949},  {196, 197, 950},  {198, 199, 936},
    {200, 200, 932},  {201, 201, 949},  {202, 202, 950},  {203, 203, 936},
    {204, 206, 874},  {210, 217, 1252},
};

struct Language {
  std::uint16_t id;  // The low 16 bits of the LCID.
  int code_page;
};

// Windows' ANSI code page per language, as far as it is not 1252 (MS-LCID, "NLS API
// reference"). Languages of Unicode only have none; text under them needs UTF-8.
constexpr Language kLanguages[] = {
    {0x0401, 1256}, {0x0402, 1251}, {0x0404, 950},  {0x0405, 1250}, {0x0408, 1253},
    {0x040D, 1255}, {0x040E, 1250}, {0x0411, 932},  {0x0412, 949},  {0x0415, 1250},
    {0x0418, 1250}, {0x0419, 1251}, {0x041A, 1250}, {0x041B, 1250}, {0x041C, 1250},
    {0x041E, 874},  {0x041F, 1254}, {0x0420, 1256}, {0x0422, 1251}, {0x0423, 1251},
    {0x0424, 1250}, {0x0425, 1257}, {0x0426, 1257}, {0x0427, 1257}, {0x0428, 1251},
    {0x0429, 1256}, {0x042A, 1258}, {0x042C, 1254}, {0x042F, 1251}, {0x043F, 1251},
    {0x0440, 1251}, {0x0442, 1250}, {0x0443, 1254}, {0x0444, 1251}, {0x0450, 1251},
    {0x0463, 1256}, {0x046D, 1251}, {0x0480, 1256}, {0x0485, 1251}, {0x048C, 1256},
    {0x0801, 1256}, {0x0804, 936},  {0x081A, 1250}, {0x0827, 1257}, {0x082C, 1251},
    {0x0843, 1251}, {0x0C01, 1256}, {0x0C04, 950},  {0x0C1A, 1251}, {0x1001, 1256},
    {0x1004, 936},  {0x101A, 1250}, {0x1401, 1256}, {0x1404, 950},  {0x141A, 1250},
    {0x1801, 1256}, {0x181A, 1250}, {0x1C01, 1256}, {0x1C1A, 1251}, {0x2001, 1256},
    {0x201A, 1251}, {0x2401, 1256}, {0x2801, 1256}, {0x2C01, 1256}, {0x3001, 1256},
    {0x3401, 1256}, {0x3801, 1256}, {0x3C01, 1256}, {0x4001, 1256},
};

constexpr std::uint32_t kUtf8Flag = 0x04000000;  // fUTF8, bit 26.

SingleByteTable::Entry EntryOf(std::uint16_t unicode) {
  if (unicode < 0x80) return {1, {static_cast<std::uint8_t>(unicode), 0, 0}};
  const auto tail = [unicode](int shift) {
    return static_cast<std::uint8_t>(0x80 | (unicode >> shift & 0x3F));
  };
  if (unicode < 0x800) {
    return {2, {static_cast<std::uint8_t>(0xC0 | unicode >> 6), tail(0), 0}};
  }
  return {3, {static_cast<std::uint8_t>(0xE0 | unicode >> 12), tail(6), tail(0)}};
}

struct AllTables {
  SingleByteTable tables[std::size(kSingleBytePages)];

  AllTables() {
    for (std::size_t page = 0; page < std::size(kSingleBytePages); ++page) {
      for (std::uint16_t byte = 0; byte < 256; ++byte) {
        const std::uint16_t unicode =
            byte < 0x80 ? byte : kSingleBytePages[page].upper[byte - 0x80];
        const bool missing = unicode == 0 && byte != 0;
        tables[page].entries[byte] =
            missing ? SingleByteTable::Entry{0, {0, 0, 0}} : EntryOf(unicode);
      }
    }
  }
};

}  // namespace

std::optional<int> CodePageOf(const Collation& collation) {
  const std::uint32_t bits = collation[0] | std::uint32_t{collation[1]} << 8 |
                             std::uint32_t{collation[2]} << 16 |
                             std::uint32_t{collation[3]} << 24;
  if ((bits & kUtf8Flag) != 0) return kCodePageUtf8;
  if (const int sort_id = collation[4]; sort_id != 0) {
    for (const SortIdRange& range : kSortIdRanges) {
      if (range.first <= sort_id && sort_id <= range.last) return range.code_page;
    }
    return std::nullopt;
  }
  for (const Language& language : kLanguages) {
    if (language.id == (bits & 0xFFFF)) return language.code_page;
  }
  return 1252;
}

const SingleByteTable* SingleByteTableOf(int code_page) {
  static const AllTables all;
  for (std::size_t page = 0; page < std::size(kSingleBytePages); ++page) {
    if (kSingleBytePages[page].code_page == code_page) return &all.tables[page];
  }
  return nullptr;
}

const char* MultiByteNameOf(int code_page) {
  switch (code_page) {
    case 932:
      return "CP932";
    case 936:
      return "CP936";
    case 949:
      return "CP949";
    case 950:
      return "CP950";
    default:
      return nullptr;
  }
}

}  // namespace mssql_cdc::tds
