#include "sim/wire/collation.h"

#include <iconv.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/text.h"
#include "sim/value.h"

namespace mssql_cdc::sim::wire {
namespace {

struct Family {
  std::string_view name;  // Lower case.
  std::uint32_t lcid;
  std::uint16_t code_page;
};

// Windows collation families: LCID and ANSI code page are Windows' own locale table.
constexpr Family kFamilies[] = {
    {"albanian", 0x041C, 1250},
    {"arabic", 0x0401, 1256},
    {"chinese_hong_kong_stroke", 0x0C04, 950},
    {"chinese_prc", 0x0804, 936},
    {"chinese_prc_stroke", 0x20804, 936},
    {"chinese_simplified_pinyin", 0x0804, 936},
    {"chinese_simplified_stroke_order", 0x20804, 936},
    {"chinese_taiwan_bopomofo", 0x30404, 950},
    {"chinese_taiwan_stroke", 0x0404, 950},
    {"chinese_traditional_bopomofo", 0x30404, 950},
    {"chinese_traditional_stroke_count", 0x0404, 950},
    {"croatian", 0x041A, 1250},
    {"cyrillic_general", 0x0419, 1251},
    {"czech", 0x0405, 1250},
    {"danish_greenlandic", 0x0406, 1252},
    {"danish_norwegian", 0x0406, 1252},
    {"estonian", 0x0425, 1257},
    {"finnish_swedish", 0x040B, 1252},
    {"french", 0x040C, 1252},
    {"german_phonebook", 0x10407, 1252},
    {"greek", 0x0408, 1253},
    {"hebrew", 0x040D, 1255},
    {"hungarian", 0x040E, 1250},
    {"icelandic", 0x040F, 1252},
    {"japanese", 0x0411, 932},
    {"japanese_bushu_kakusu", 0x40411, 932},
    {"japanese_unicode", 0x10411, 932},
    {"japanese_xjis", 0x0411, 932},
    {"kazakh", 0x043F, 1251},
    {"korean", 0x0412, 949},
    {"korean_wansung", 0x0412, 949},
    {"latin1_general", 0x0409, 1252},
    {"latvian", 0x0426, 1257},
    {"lithuanian", 0x0427, 1257},
    {"macedonian_fyrom", 0x042F, 1251},
    {"modern_spanish", 0x0C0A, 1252},
    {"norwegian", 0x0414, 1252},
    {"persian", 0x0429, 1256},
    {"polish", 0x0415, 1250},
    {"romanian", 0x0418, 1250},
    {"serbian_cyrillic", 0x0C1A, 1251},
    {"serbian_latin", 0x081A, 1250},
    {"slovak", 0x041B, 1250},
    {"slovenian", 0x0424, 1250},
    {"thai", 0x041E, 874},
    {"traditional_spanish", 0x040A, 1252},
    {"turkish", 0x041F, 1254},
    {"ukrainian", 0x0422, 1251},
    {"urdu", 0x0420, 1256},
    {"vietnamese", 0x042A, 1258},
};

// Flag bits of the second to fourth byte (MS-TDS 2.2.5.1.2), from bit 20 of the first
// four bytes on.
constexpr std::uint32_t kIgnoreCase = 1u << 20;
constexpr std::uint32_t kIgnoreAccent = 1u << 21;
constexpr std::uint32_t kIgnoreKana = 1u << 22;
constexpr std::uint32_t kIgnoreWidth = 1u << 23;
constexpr std::uint32_t kBinary = 1u << 24;
constexpr std::uint32_t kBinary2 = 1u << 25;
constexpr std::uint32_t kUtf8 = 1u << 26;

struct SqlCollation {
  std::string_view name;  // Lower case.
  std::uint8_t sort_id;
  std::uint16_t code_page;
};

constexpr SqlCollation kSqlCollations[] = {
    {"sql_latin1_general_cp437_bin", 30, 437},
    {"sql_latin1_general_cp437_cs_as", 31, 437},
    {"sql_latin1_general_cp437_ci_as", 32, 437},
    {"sql_latin1_general_pref_cp437_ci_as", 33, 437},
    {"sql_latin1_general_cp437_ci_ai", 34, 437},
    {"sql_latin1_general_cp850_bin", 40, 850},
    {"sql_latin1_general_cp850_cs_as", 41, 850},
    {"sql_latin1_general_cp850_ci_as", 42, 850},
    {"sql_latin1_general_pref_cp850_ci_as", 43, 850},
    {"sql_latin1_general_cp850_ci_ai", 44, 850},
    {"sql_1xcompat_cp850_ci_as", 49, 850},
    {"sql_latin1_general_cp1_cs_as", 51, 1252},
    {"sql_latin1_general_cp1_ci_as", 52, 1252},
    {"sql_latin1_general_pref_cp1_ci_as", 53, 1252},
    {"sql_latin1_general_cp1_ci_ai", 54, 1252},
    {"sql_latin1_general_cp1250_cs_as", 81, 1250},
    {"sql_latin1_general_cp1250_ci_as", 82, 1250},
    {"sql_latin1_general_cp1251_cs_as", 105, 1251},
    {"sql_latin1_general_cp1251_ci_as", 106, 1251},
    {"sql_latin1_general_cp1253_cs_as", 113, 1253},
    {"sql_latin1_general_cp1253_ci_as", 114, 1253},
    {"sql_latin1_general_cp1254_cs_as", 129, 1254},
    {"sql_latin1_general_cp1254_ci_as", 130, 1254},
    {"sql_latin1_general_cp1255_cs_as", 137, 1255},
    {"sql_latin1_general_cp1255_ci_as", 138, 1255},
    {"sql_latin1_general_cp1256_cs_as", 145, 1256},
    {"sql_latin1_general_cp1256_ci_as", 146, 1256},
    {"sql_latin1_general_cp1257_cs_as", 153, 1257},
    {"sql_latin1_general_cp1257_ci_as", 154, 1257},
};

Collation Pack(std::uint32_t bits, std::uint8_t sort_id, std::uint16_t code_page) {
  Collation collation;
  for (std::size_t i = 0; i < 4; ++i) {
    collation.bytes[i] = static_cast<std::uint8_t>(bits >> (8 * i));
  }
  collation.bytes[4] = sort_id;
  collation.code_page = (bits & kUtf8) != 0 ? kCodePageUtf8 : code_page;
  return collation;
}

// The flags of what follows the family's name: "ci_as", "100_ci_as_sc_utf8", "bin2".
std::optional<std::uint32_t> SuffixBits(std::string_view suffix) {
  std::uint32_t bits = kIgnoreKana | kIgnoreWidth;
  bool sorted = false;
  while (!suffix.empty()) {
    const std::size_t end = suffix.find('_');
    const std::string_view part = suffix.substr(0, end);
    suffix = end == std::string_view::npos ? "" : suffix.substr(end + 1);
    if (part == "ci" || part == "cs") {
      if (part == "ci") bits |= kIgnoreCase;
      sorted = true;
    } else if (part == "ai") {
      bits |= kIgnoreAccent;
    } else if (part == "ks") {
      bits &= ~kIgnoreKana;
    } else if (part == "ws") {
      bits &= ~kIgnoreWidth;
    } else if (part == "bin" || part == "bin2") {
      bits &= ~(kIgnoreKana | kIgnoreWidth);
      bits |= part == "bin" ? kBinary : kBinary2;
      sorted = true;
    } else if (part == "utf8") {
      bits |= kUtf8;
    } else if (part == "90" || part == "100" || part == "140") {
      bits |= (part == "90" ? 1u : part == "100" ? 2u : 3u) << 28;
    } else if (part != "as" && part != "sc" && part != "vss") {
      return std::nullopt;
    }
  }
  if (!sorted) return std::nullopt;
  return bits;
}

// The code page that iconv knows under this name has a table for each of its bytes.
bool IsSingleByte(std::uint16_t code_page) {
  return code_page != 932 && code_page != 936 && code_page != 949 && code_page != 950;
}

struct IconvClose {
  void operator()(void* handle) const { iconv_close(handle); }
};
using Iconv = std::unique_ptr<void, IconvClose>;

Iconv OpenIconv(const std::string& into, const std::string& from) {
  iconv_t handle = iconv_open(into.c_str(), from.c_str());
  return Iconv(handle == reinterpret_cast<iconv_t>(-1) ? nullptr : handle);
}

// Converts all of `bytes`; `on_bad` says how many bytes to skip at an input that has no
// equivalent, and appends what stands for it.
template <typename OnBad>
std::string Convert(const Iconv& handle, std::string_view bytes, OnBad on_bad) {
  std::string result;
  char* in = const_cast<char*>(bytes.data());
  std::size_t in_size = bytes.size();
  char buffer[4096];
  iconv(handle.get(), nullptr, nullptr, nullptr, nullptr);
  while (in_size > 0) {
    char* out = buffer;
    std::size_t out_size = sizeof buffer;
    const std::size_t done = iconv(handle.get(), &in, &in_size, &out, &out_size);
    result.append(buffer, sizeof buffer - out_size);
    if (done != static_cast<std::size_t>(-1) || errno == E2BIG) continue;
    const std::size_t skip = std::min(in_size, on_bad({in, in_size}, result));
    in += skip;
    in_size -= skip;
  }
  char* out = buffer;  // What was held back, waiting for an accent (Vietnamese).
  std::size_t out_size = sizeof buffer;
  iconv(handle.get(), nullptr, nullptr, &out, &out_size);
  result.append(buffer, sizeof buffer - out_size);
  return result;
}

struct ByteTable {
  std::array<char16_t, 256> text{};
  std::map<char16_t, std::uint8_t> bytes;
};

// Bytes that a Windows code page leaves undefined are the control character of the same
// number there; iconv refuses them.
ByteTable MakeByteTable(std::uint16_t code_page) {
  ByteTable table;
  const Iconv handle = OpenIconv("UTF-16LE", "CP" + std::to_string(code_page));
  for (std::size_t i = 0; i < 256; ++i) {
    const char byte = static_cast<char>(i);
    char16_t unit = static_cast<char16_t>(i);
    if (handle != nullptr && i >= 0x80) {
      const std::string text =
          Convert(handle, {&byte, 1}, [&](std::string_view, std::string& out) {
            out.assign({byte, '\0'});
            return std::size_t{1};
          });
      if (text.size() >= 2) {
        unit = static_cast<char16_t>(static_cast<std::uint8_t>(text[0]) |
                                     static_cast<std::uint8_t>(text[1]) << 8);
      }
    }
    table.text[i] = unit;
    table.bytes.emplace(unit, static_cast<std::uint8_t>(i));
  }
  return table;
}

const ByteTable& ByteTableOf(std::uint16_t code_page) {
  static std::mutex mutex;
  static std::map<std::uint16_t, ByteTable> tables;
  const std::lock_guard<std::mutex> lock(mutex);
  auto found = tables.find(code_page);
  if (found == tables.end()) {
    found = tables.emplace(code_page, MakeByteTable(code_page)).first;
  }
  return found->second;
}

}  // namespace

std::optional<Collation> FindCollation(std::string_view given) {
  const std::string name = LowerAscii(given);
  for (const SqlCollation& sql : kSqlCollations) {
    if (sql.name != name) continue;
    const std::string_view suffix = std::string_view(name).substr(name.rfind("_c") + 1);
    const bool binary = name.ends_with("_bin");
    const std::optional<std::uint32_t> bits = SuffixBits(binary ? "bin" : suffix);
    return Pack(0x0409 | bits.value_or(0), sql.sort_id, sql.code_page);
  }
  const Family* best = nullptr;  // The longest family that the name begins with.
  for (const Family& family : kFamilies) {
    if (name.starts_with(family.name) && name.size() > family.name.size() &&
        name[family.name.size()] == '_' &&
        (best == nullptr || family.name.size() > best->name.size())) {
      best = &family;
    }
  }
  if (best == nullptr) return std::nullopt;
  const std::optional<std::uint32_t> bits =
      SuffixBits(std::string_view(name).substr(best->name.size() + 1));
  if (!bits) return std::nullopt;
  return Pack(best->lcid | *bits, 0, best->code_page);
}

std::uint16_t CodePageOf(const CollationBytes& bytes) {
  const std::uint32_t bits = bytes[0] | static_cast<std::uint32_t>(bytes[1]) << 8 |
                             static_cast<std::uint32_t>(bytes[2]) << 16 |
                             static_cast<std::uint32_t>(bytes[3]) << 24;
  if ((bits & kUtf8) != 0) return kCodePageUtf8;
  if (bytes[4] != 0) {
    for (const SqlCollation& sql : kSqlCollations) {
      if (sql.sort_id == bytes[4]) return sql.code_page;
    }
  }
  const std::uint32_t lcid = bits & 0xFFFFF;
  for (const Family& family : kFamilies) {
    if (family.lcid == lcid) return family.code_page;
  }
  return kDefaultCollation.code_page;
}

std::string EncodeText(std::u16string_view text, std::uint16_t code_page) {
  std::string bytes;
  if (std::all_of(text.begin(), text.end(),
                  [](char16_t unit) { return unit < 0x80; })) {
    bytes.resize(text.size());
    std::transform(text.begin(), text.end(), bytes.begin(),
                   [](char16_t unit) { return static_cast<char>(unit); });
    return bytes;
  }
  if (code_page == kCodePageUtf8) return Utf8(text);
  if (IsSingleByte(code_page)) {
    const ByteTable& table = ByteTableOf(code_page);
    bytes.reserve(text.size());
    for (const char16_t unit : text) {
      if (unit < 0x80) {
        bytes += static_cast<char>(unit);
        continue;
      }
      const auto found = table.bytes.find(unit);
      bytes += found == table.bytes.end() ? '?' : static_cast<char>(found->second);
    }
    return bytes;
  }
  const Iconv handle = OpenIconv("CP" + std::to_string(code_page), "UTF-16LE");
  if (handle == nullptr) return std::string(text.size(), '?');
  const std::string_view raw(reinterpret_cast<const char*>(text.data()),
                             text.size() * 2);
  return Convert(handle, raw, [](std::string_view bad, std::string& out) {
    out += '?';
    // A surrogate pair is one character, so one question mark.
    const bool pair = bad.size() >= 4 &&
                      (static_cast<std::uint8_t>(bad[1]) & 0xFC) == 0xD8 &&
                      (static_cast<std::uint8_t>(bad[3]) & 0xFC) == 0xDC;
    return std::size_t{pair ? 4u : 2u};
  });
}

std::u16string DecodeText(std::span<const std::uint8_t> bytes,
                          std::uint16_t code_page) {
  const std::string_view raw(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (code_page == kCodePageUtf8) return Utf16(raw);
  std::u16string text;
  if (IsSingleByte(code_page)) {
    const ByteTable& table = ByteTableOf(code_page);
    text.reserve(bytes.size());
    for (const std::uint8_t byte : bytes) text += table.text[byte];
    return text;
  }
  const Iconv handle = OpenIconv("UTF-16LE", "CP" + std::to_string(code_page));
  if (handle == nullptr) return std::u16string(bytes.size(), u'\xFFFD');
  const std::string wide = Convert(handle, raw, [](std::string_view, std::string& out) {
    out += "\xFD\xFF";
    return std::size_t{1};
  });
  text.resize(wide.size() / 2);
  std::copy(wide.begin(), wide.begin() + static_cast<std::ptrdiff_t>(text.size() * 2),
            reinterpret_cast<char*>(text.data()));
  return text;
}

}  // namespace mssql_cdc::sim::wire
