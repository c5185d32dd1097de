// The vector parts of UTF-16 to UTF-8: x86 with a choice at run time, and the scalar
// code that every other processor and every odd case uses.

#pragma once

#include <cstddef>
#include <cstdint>

namespace mssql_cdc::tds {

// Each kernel converts from the front as many units as it can, whole vectors only, and
// says how far it came. They read and write within the units given, but for 64 bytes of
// slack at `out`.
struct Utf16Progress {
  std::size_t units = 0;
  std::size_t written = 0;
};

struct Utf16Kernels {
  const char* name;
  // Stops at the first vector that has a unit of 0x80 or more.
  Utf16Progress (*ascii)(const std::uint8_t* in, std::size_t unit_count,
                         std::uint8_t* out);
  // Stops at the first vector that has a unit of 0x800 or more.
  Utf16Progress (*two_byte)(const std::uint8_t* in, std::size_t unit_count,
                            std::uint8_t* out);
  // Stops at the first vector that has a surrogate.
  Utf16Progress (*basic_plane)(const std::uint8_t* in, std::size_t unit_count,
                               std::uint8_t* out);
};

// The best this processor has; and the plain one, for comparison in tests.
const Utf16Kernels& BestUtf16Kernels();
const Utf16Kernels& ScalarUtf16Kernels();

// Utf8OfUtf16 with chosen kernels. A high surrogate in last place is converted (to
// U+FFFD) only if `is_end`; otherwise it is not used.
Utf16Progress ConvertUtf16(const Utf16Kernels& kernels, const std::uint8_t* in,
                           std::size_t unit_count, bool is_end, std::uint8_t* out);

}  // namespace mssql_cdc::tds
