#include "sim/value.h"

namespace mssql_cdc::sim {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool IsHighSurrogate(char16_t unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool IsLowSurrogate(char16_t unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

void AppendUtf16(char32_t code, std::u16string& text) {
  if (code < 0x10000) {
    text += static_cast<char16_t>(code);
    return;
  }
  code -= 0x10000;
  text += static_cast<char16_t>(0xD800 + (code >> 10));
  text += static_cast<char16_t>(0xDC00 + (code & 0x3FF));
}

void AppendUtf8(char32_t code, std::string& text) {
  const auto tail = [&](unsigned shift) {
    text += static_cast<char>(0x80 | ((code >> shift) & 0x3F));
  };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// The code point that starts at `at`, which is moved past it. An ill-formed sequence
// gives one replacement per maximal valid prefix, as Unicode recommends.
char32_t NextCode(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<std::uint8_t>(text[at++]);
  if (lead < 0x80) return lead;
  int tail_count = 0;
  char32_t code = 0;
  std::uint8_t lowest = 0x80;
  std::uint8_t highest = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    tail_count = 1;
    code = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    tail_count = 2;
    code = lead & 0x0F;
    if (lead == 0xE0) lowest = 0xA0;   // No overlong forms,
    if (lead == 0xED) highest = 0x9F;  // no surrogates.
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    tail_count = 3;
    code = lead & 0x07;
    if (lead == 0xF0) lowest = 0x90;
    if (lead == 0xF4) highest = 0x8F;  // Nothing above U+10FFFF.
  } else {
    return kReplacement;
  }
  for (int i = 0; i < tail_count; ++i) {
    if (at >= text.size()) return kReplacement;
    const auto byte = static_cast<std::uint8_t>(text[at]);
    if (byte < lowest || byte > highest) return kReplacement;
    lowest = 0x80;
    highest = 0xBF;
    code = code << 6 | (byte & 0x3Fu);
    ++at;
  }
  return code;
}

}  // namespace

std::u16string Utf16(std::string_view utf8) {
  std::u16string text;
  text.reserve(utf8.size());
  for (std::size_t at = 0; at < utf8.size();) AppendUtf16(NextCode(utf8, at), text);
  return text;
}

std::string Utf8(std::u16string_view utf16) {
  std::string text;
  text.reserve(utf16.size());
  for (std::size_t at = 0; at < utf16.size(); ++at) {
    const char16_t unit = utf16[at];
    if (IsHighSurrogate(unit) && at + 1 < utf16.size() &&
        IsLowSurrogate(utf16[at + 1])) {
      ++at;
      AppendUtf8(0x10000u + ((unit - 0xD800u) << 10) + (utf16[at] - 0xDC00u), text);
    } else if (IsHighSurrogate(unit) || IsLowSurrogate(unit)) {
      AppendUtf8(kReplacement, text);
    } else {
      AppendUtf8(unit, text);
    }
  }
  return text;
}

}  // namespace mssql_cdc::sim
