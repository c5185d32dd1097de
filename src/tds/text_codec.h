// Text from the wire to UTF-8, by the encoding chosen once per column.
//
// Conversions take pieces: what is left over at the end of a piece (at most three
// bytes) is the front of a character that the next piece continues.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/error.h"
#include "tds/collation.h"

namespace mssql_cdc::tds {

enum class Encoding : std::uint8_t {
  kBytes,       // Not text: taken as it is.
  kUtf16,       // Little-endian; a lone surrogate becomes U+FFFD.
  kUtf8,        // Checked and taken as it is.
  kSingleByte,  // A table.
  kMultiByte,   // iconv.
};

// Converters may write this far behind what they report.
inline constexpr std::size_t kTextSlackBytes = 64;

class Iconv;

struct TextCodec {
  Encoding encoding = Encoding::kBytes;
  const SingleByteTable* table = nullptr;  // Of kSingleByte.
  std::shared_ptr<Iconv> iconv;            // Of kMultiByte.
};

// The codec of `code_page`; nullopt if this system has none.
std::optional<TextCodec> CodecOf(int code_page);

struct Converted {
  std::size_t used = 0;
  std::size_t written = 0;
};

// An upper bound of what `size` bytes of any encoding become, slack included.
constexpr std::size_t ConvertedSizeMax(std::size_t size) {
  return 3 * size + kTextSlackBytes;
}

// Converts the characters that are whole in [in, in + size). Requires room for
// ConvertedSizeMax(size) at `out`. nullopt: the bytes are not text in this encoding.
std::optional<Converted> ConvertPiece(const TextCodec& codec, const std::uint8_t* in,
                                      std::size_t size, std::uint8_t* out);

// Converts the end of a text: what ConvertPiece left over, and nothing follows.
// nullopt: the text ends inside a character (of UTF-16: inside a unit).
std::optional<std::size_t> ConvertEnd(const TextCodec& codec, const std::uint8_t* in,
                                      std::size_t size, std::uint8_t* out);

// UTF-8 of `unit_count` whole units of UTF-16LE, lone surrogates as U+FFFD; gives the
// bytes written. Reads nothing behind the units.
std::size_t Utf8OfUtf16(const std::uint8_t* in, std::size_t unit_count,
                        std::uint8_t* out);

// The same for at most 32 units, faster for few of them.
std::size_t Utf8OfShortUtf16(const std::uint8_t* in, std::size_t unit_count,
                             std::uint8_t* out);

}  // namespace mssql_cdc::tds
