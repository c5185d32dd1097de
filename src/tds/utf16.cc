#include "tds/utf16.h"

#include "base/case_fold.h"

namespace mssql_cdc::tds {
namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;

struct Decoded {
  std::uint32_t point = kReplacement;
  std::size_t size_bytes = 1;
};

// The first code point of `text`, which is not empty. Overlong forms, surrogates and
// points past U+10FFFF are no UTF-8.
Decoded FirstPoint(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || size > text.size()) return {};
  std::uint32_t point = lead & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    point = (point << 6) | (byte(i) & 0x3F);
  }
  const std::uint32_t least = size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < least || point > 0x10FFFF || surrogate) return {};
  return {point, size};
}

}  // namespace

std::string Utf8FromUtf16(std::span<const std::uint8_t> utf16) {
  std::string out;
  out.reserve(utf16.size() / 2);
  const std::size_t count = utf16.size() / 2;
  const auto unit = [&](std::size_t i) {
    return static_cast<std::uint32_t>(utf16[2 * i] | (utf16[2 * i + 1] << 8));
  };
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t point = unit(i);
    if (point >= 0xD800 && point <= 0xDFFF) {
      const bool pair = point < 0xDC00 && i + 1 < count && unit(i + 1) >= 0xDC00 &&
                        unit(i + 1) <= 0xDFFF;
      point = pair ? 0x10000 + ((point - 0xD800) << 10) + (unit(i + 1) - 0xDC00)
                   : kReplacement;
      if (pair) ++i;
    }
    AppendUtf8(point, out);
  }
  if (utf16.size() % 2 != 0) AppendUtf8(kReplacement, out);
  return out;
}

void AppendUtf16(std::string_view utf8, std::vector<std::uint8_t>& out) {
  const auto unit = [&](std::uint32_t value) {
    out.push_back(static_cast<std::uint8_t>(value & 0xFF));
    out.push_back(static_cast<std::uint8_t>(value >> 8));
  };
  while (!utf8.empty()) {
    const Decoded next = FirstPoint(utf8);
    utf8.remove_prefix(next.size_bytes);
    if (next.point < 0x10000) {
      unit(next.point);
    } else {
      unit(0xD800 + ((next.point - 0x10000) >> 10));
      unit(0xDC00 + ((next.point - 0x10000) & 0x3FF));
    }
  }
}

}  // namespace mssql_cdc::tds
