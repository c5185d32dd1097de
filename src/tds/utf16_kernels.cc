#include "tds/utf16_kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mssql_cdc::tds {
namespace {

std::uint16_t UnitAt(const std::uint8_t* in, std::size_t index) {
  return static_cast<std::uint16_t>(in[2 * index] | in[2 * index + 1] << 8);
}

Utf16Progress AsciiScalar(const std::uint8_t* in, std::size_t unit_count,
                          std::uint8_t* out) {
  std::size_t i = 0;
  for (; i < unit_count; ++i) {
    const std::uint16_t unit = UnitAt(in, i);
    if (unit >= 0x80) break;
    out[i] = static_cast<std::uint8_t>(unit);
  }
  return {i, i};
}

Utf16Progress NoneScalar(const std::uint8_t*, std::size_t, std::uint8_t*) {
  return {};  // The caller's per-unit code does as well.
}

constexpr Utf16Kernels kScalar = {"scalar", AsciiScalar, NoneScalar, NoneScalar};

#if defined(__x86_64__)

// Picks, per unit, one byte where the mask has 0 and two where it has 1.
constexpr auto kTwoByteShuffles = [] {
  std::array<std::array<std::uint8_t, 16>, 256> shuffles{};
  for (unsigned mask = 0; mask < 256; ++mask) {
    unsigned at = 0;
    for (unsigned unit = 0; unit < 8; ++unit) {
      shuffles[mask][at++] = static_cast<std::uint8_t>(2 * unit);
      if ((mask >> unit & 1) != 0) {
        shuffles[mask][at++] = static_cast<std::uint8_t>(2 * unit + 1);
      }
    }
    while (at < 16) shuffles[mask][at++] = 0x80;
  }
  return shuffles;
}();

__attribute__((target("ssse3"))) Utf16Progress TwoByteSsse3(const std::uint8_t* in,
                                                            std::size_t unit_count,
                                                            std::uint8_t* out) {
  std::size_t i = 0;
  std::size_t written = 0;
  for (; i + 8 <= unit_count; i += 8) {
    const __m128i units = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 2 * i));
    const __m128i high =
        _mm_and_si128(units, _mm_set1_epi16(static_cast<short>(0xF800)));
    if (_mm_movemask_epi8(_mm_cmpeq_epi16(high, _mm_setzero_si128())) != 0xFFFF) break;
    // 110xxxxx 10xxxxxx, lead byte first in memory.
    const __m128i lead = _mm_or_si128(_mm_srli_epi16(units, 6), _mm_set1_epi16(0x00C0));
    const __m128i tail =
        _mm_or_si128(_mm_slli_epi16(_mm_and_si128(units, _mm_set1_epi16(0x3F)), 8),
                     _mm_set1_epi16(static_cast<short>(0x8000)));
    const __m128i wide = _mm_cmpgt_epi16(units, _mm_set1_epi16(0x7F));
    const __m128i bytes = _mm_or_si128(_mm_and_si128(wide, _mm_or_si128(lead, tail)),
                                       _mm_andnot_si128(wide, units));
    const auto mask = static_cast<unsigned>(
        _mm_movemask_epi8(_mm_packs_epi16(wide, _mm_setzero_si128())));
    const __m128i shuffle = _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(kTwoByteShuffles[mask].data()));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + written),
                     _mm_shuffle_epi8(bytes, shuffle));
    written += 8 + static_cast<std::size_t>(std::popcount(mask));
  }
  return {i, written};
}

// Of four units, each with its four candidate bytes: what is picked if the bits 0 to 3
// of the index say which units are 0x80 or more, and the bits 4 to 7 which 0x800.
struct UnitBytes {
  std::array<std::uint8_t, 16> shuffle;
  std::uint8_t size;
};
constexpr auto kUnitBytes = [] {
  std::array<UnitBytes, 256> all{};
  for (unsigned index = 0; index < all.size(); ++index) {
    UnitBytes& bytes = all[index];
    bytes.shuffle.fill(0x80);
    for (unsigned unit = 0; unit < 4; ++unit) {
      const bool two = (index >> unit & 1) != 0;
      const bool three = (index >> (unit + 4) & 1) != 0;
      // The candidates, first to last: ASCII, the last byte, the one before it, the
      // lead of three.
      for (unsigned from = three ? 4
                           : two ? 3
                                 : 1;
           from-- > (two || three ? 1u : 0u);) {
        bytes.shuffle[bytes.size++] = static_cast<std::uint8_t>(4 * unit + from);
      }
    }
  }
  return all;
}();

// Four units as candidate bytes; gives the bytes written.
__attribute__((target("ssse3"))) inline std::size_t PickBytes(__m128i candidates,
                                                              unsigned index,
                                                              std::uint8_t* out) {
  const UnitBytes& bytes = kUnitBytes[index];
  const __m128i shuffle =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.shuffle.data()));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm_shuffle_epi8(candidates, shuffle));
  return bytes.size;
}

__attribute__((target("ssse3"))) Utf16Progress BasicPlaneSsse3(const std::uint8_t* in,
                                                               std::size_t unit_count,
                                                               std::uint8_t* out) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i top_five = _mm_set1_epi16(static_cast<short>(0xF800));
  const __m128i six_bits = _mm_set1_epi16(0x3F);
  std::size_t i = 0;
  std::size_t written = 0;
  for (; i + 8 <= unit_count; i += 8) {
    const __m128i units = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 2 * i));
    const __m128i top = _mm_and_si128(units, top_five);
    const __m128i surrogate =
        _mm_cmpeq_epi16(top, _mm_set1_epi16(static_cast<short>(0xD800)));
    if (_mm_movemask_epi8(surrogate) != 0) break;
    const __m128i below_800 = _mm_cmpeq_epi16(top, zero);
    const __m128i below_80 = _mm_cmpeq_epi16(
        _mm_and_si128(units, _mm_set1_epi16(static_cast<short>(0xFF80))), zero);
    // The unit itself, and 10xxxxxx of its low six bits.
    const __m128i low =
        _mm_or_si128(_mm_and_si128(units, _mm_set1_epi16(0x7F)),
                     _mm_or_si128(_mm_slli_epi16(_mm_and_si128(units, six_bits), 8),
                                  _mm_set1_epi16(static_cast<short>(0x8000))));
    // 10xxxxxx, or 110xxxxx if it leads, of the bits above; then 1110xxxx of the rest.
    const __m128i middle =
        _mm_or_si128(_mm_and_si128(_mm_srli_epi16(units, 6), six_bits),
                     _mm_and_si128(_mm_srli_epi16(units, 4), _mm_set1_epi16(0x0F00)));
    const __m128i high =
        _mm_or_si128(_mm_or_si128(middle, _mm_set1_epi16(static_cast<short>(0xE080))),
                     _mm_and_si128(below_800, _mm_set1_epi16(0x40)));
    // A bit a unit: 0 to 7 those of 0x80 or more, 8 to 15 those of 0x800 or more.
    const auto wide =
        ~static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(below_80, below_800)));
    const unsigned first = (wide & 0x0F) | (wide >> 4 & 0xF0);
    const unsigned second = (wide >> 4 & 0x0F) | (wide >> 8 & 0xF0);
    written += PickBytes(_mm_unpacklo_epi16(low, high), first, out + written);
    written += PickBytes(_mm_unpackhi_epi16(low, high), second, out + written);
  }
  return {i, written};
}

__attribute__((target("avx2"))) Utf16Progress AsciiAvx2(const std::uint8_t* in,
                                                        std::size_t unit_count,
                                                        std::uint8_t* out) {
  std::size_t i = 0;
  const __m256i high = _mm256_set1_epi16(static_cast<short>(0xFF80));
  for (; i + 32 <= unit_count; i += 32) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + 2 * i));
    const __m256i b =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + 2 * i + 32));
    if (_mm256_testz_si256(_mm256_or_si256(a, b), high) == 0) break;
    const __m256i bytes =
        _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0b11'01'10'00);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), bytes);
  }
  return {i, i};
}

// SSE2 is part of every x86-64.
Utf16Progress AsciiSse2(const std::uint8_t* in, std::size_t unit_count,
                        std::uint8_t* out) {
  std::size_t i = 0;
  const __m128i high = _mm_set1_epi16(static_cast<short>(0xFF80));
  for (; i + 8 <= unit_count; i += 8) {
    const __m128i units = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 2 * i));
    const __m128i ascii =
        _mm_cmpeq_epi16(_mm_and_si128(units, high), _mm_setzero_si128());
    if (_mm_movemask_epi8(ascii) != 0xFFFF) break;
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + i),
                     _mm_packus_epi16(units, units));
  }
  return {i, i};
}

Utf16Progress AsciiAvx2ThenSse2(const std::uint8_t* in, std::size_t unit_count,
                                std::uint8_t* out) {
  const Utf16Progress wide = AsciiAvx2(in, unit_count, out);
  const Utf16Progress rest =
      AsciiSse2(in + 2 * wide.units, unit_count - wide.units, out + wide.written);
  return {wide.units + rest.units, wide.written + rest.written};
}

constexpr Utf16Kernels kSse2 = {"sse2", AsciiSse2, NoneScalar, NoneScalar};
constexpr Utf16Kernels kSsse3 = {"ssse3", AsciiSse2, TwoByteSsse3, BasicPlaneSsse3};
constexpr Utf16Kernels kAvx2 = {"avx2", AsciiAvx2ThenSse2, TwoByteSsse3,
                                BasicPlaneSsse3};

const Utf16Kernels& ChooseKernels() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) return kAvx2;
  return __builtin_cpu_supports("ssse3") ? kSsse3 : kSse2;
}

#else

const Utf16Kernels& ChooseKernels() { return kScalar; }

#endif

bool IsHighSurrogate(std::uint32_t unit) { return (unit & 0xFC00) == 0xD800; }
bool IsLowSurrogate(std::uint32_t unit) { return (unit & 0xFC00) == 0xDC00; }

std::uint8_t Tail(std::uint32_t code, int shift) {
  return static_cast<std::uint8_t>(0x80 | (code >> shift & 0x3F));
}

// Writes one code point above 0x7F; gives its size.
std::size_t PutCode(std::uint32_t code, std::uint8_t* out) {
  if (code < 0x800) {
    out[0] = static_cast<std::uint8_t>(0xC0 | code >> 6);
    out[1] = Tail(code, 0);
    return 2;
  }
  if (code < 0x10000) {
    out[0] = static_cast<std::uint8_t>(0xE0 | code >> 12);
    out[1] = Tail(code, 6);
    out[2] = Tail(code, 0);
    return 3;
  }
  out[0] = static_cast<std::uint8_t>(0xF0 | code >> 18);
  out[1] = Tail(code, 12);
  out[2] = Tail(code, 6);
  out[3] = Tail(code, 0);
  return 4;
}

}  // namespace

const Utf16Kernels& BestUtf16Kernels() {
  static const Utf16Kernels& best = ChooseKernels();
  return best;
}

const Utf16Kernels& ScalarUtf16Kernels() { return kScalar; }

Utf16Progress ConvertUtf16(const Utf16Kernels& kernels, const std::uint8_t* in,
                           std::size_t unit_count, bool is_end, std::uint8_t* out) {
  std::size_t i = 0;
  std::size_t written = 0;
  while (i < unit_count) {
    Utf16Progress run = kernels.ascii(in + 2 * i, unit_count - i, out + written);
    i += run.units;
    written += run.written;
    run = kernels.two_byte(in + 2 * i, unit_count - i, out + written);
    i += run.units;
    written += run.written;
    // Text that mixes ranges, some of it at a time: what follows may be plain again.
    constexpr std::size_t kMixedUnitCountMax = 32;
    const std::size_t mixed_count = std::min(unit_count - i, kMixedUnitCountMax);
    run = kernels.basic_plane(in + 2 * i, mixed_count, out + written);
    i += run.units;
    written += run.written;
    if (run.units != 0) continue;
    // At least one vector's worth by hand, so that text with surrogates does not come
    // back here for every character.
    const std::size_t until = unit_count - i < 8 ? unit_count : i + 8;
    while (i < until) {
      const std::uint32_t unit = UnitAt(in, i);
      if (unit < 0x80) {
        out[written++] = static_cast<std::uint8_t>(unit);
        ++i;
      } else if (unit < 0xD800 || unit >= 0xE000) {
        written += PutCode(unit, out + written);
        ++i;
      } else if (IsHighSurrogate(unit) && i + 1 == unit_count && !is_end) {
        return {i, written};
      } else if (IsHighSurrogate(unit) && i + 1 < unit_count &&
                 IsLowSurrogate(UnitAt(in, i + 1))) {
        const std::uint32_t low = UnitAt(in, i + 1);
        written +=
            PutCode(0x10000 + ((unit & 0x3FF) << 10 | (low & 0x3FF)), out + written);
        i += 2;
      } else {
        written += PutCode(0xFFFD, out + written);
        ++i;
      }
    }
  }
  return {i, written};
}

}  // namespace mssql_cdc::tds
