#include "tds/text_codec.h"

#include <iconv.h>

#include <cerrno>
#include <cstring>

#include "tds/utf16_kernels.h"

namespace mssql_cdc::tds {

// Owns a conversion descriptor from one multi-byte code page to UTF-8.
class Iconv {
 public:
  explicit Iconv(const char* code_page) : descriptor_(iconv_open("UTF-8", code_page)) {}
  ~Iconv() {
    if (ok()) iconv_close(descriptor_);
  }
  Iconv(const Iconv&) = delete;
  Iconv& operator=(const Iconv&) = delete;

  bool ok() const { return descriptor_ != reinterpret_cast<iconv_t>(-1); }

  std::optional<Converted> Convert(const std::uint8_t* in, std::size_t size,
                                   std::uint8_t* out) {
    auto* from = const_cast<char*>(reinterpret_cast<const char*>(in));
    auto* to = reinterpret_cast<char*>(out);
    std::size_t from_left = size;
    std::size_t to_left = ConvertedSizeMax(size);
    iconv(descriptor_, nullptr, nullptr, nullptr, nullptr);
    const std::size_t result = iconv(descriptor_, &from, &from_left, &to, &to_left);
    if (result == static_cast<std::size_t>(-1) && errno != EINVAL) return std::nullopt;
    if (from_left > 3) return std::nullopt;
    return Converted{size - from_left, ConvertedSizeMax(size) - to_left};
  }

 private:
  iconv_t descriptor_;
};

namespace {

std::size_t AsciiPrefixSize(const std::uint8_t* in, std::size_t size) {
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, in + i, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (i < size && in[i] < 0x80) ++i;
  return i;
}

// The size of the character at `in`, 0 if the bytes end inside it, -1 if it is none
// (The Unicode Standard, table 3-7).
int Utf8CharacterSize(const std::uint8_t* in, std::size_t size) {
  const std::uint8_t lead = in[0];
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return -1;
  const int needed = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (int i = 1; i < needed; ++i) {
    if (static_cast<std::size_t>(i) == size) return 0;
    const std::uint8_t low = i > 1          ? 0x80
                             : lead == 0xE0 ? 0xA0
                             : lead == 0xF0 ? 0x90
                                            : 0x80;
    const std::uint8_t high = i > 1          ? 0xBF
                              : lead == 0xED ? 0x9F
                              : lead == 0xF4 ? 0x8F
                                             : 0xBF;
    if (in[i] < low || in[i] > high) return -1;
  }
  return needed;
}

std::optional<Converted> CheckUtf8(const std::uint8_t* in, std::size_t size,
                                   std::uint8_t* out) {
  std::size_t i = 0;
  while (i < size) {
    i += AsciiPrefixSize(in + i, size - i);
    while (i < size && in[i] >= 0x80) {
      const int character = Utf8CharacterSize(in + i, size - i);
      if (character < 0) return std::nullopt;
      if (character == 0) {
        std::memcpy(out, in, i);
        return Converted{i, i};
      }
      i += static_cast<std::size_t>(character);
    }
  }
  if (i != 0) std::memcpy(out, in, i);
  return Converted{i, i};
}

std::optional<Converted> ConvertSingleByte(const SingleByteTable& table,
                                           const std::uint8_t* in, std::size_t size,
                                           std::uint8_t* out) {
  std::size_t i = 0;
  std::size_t written = 0;
  while (i < size) {
    const std::size_t ascii = AsciiPrefixSize(in + i, size - i);
    if (ascii != 0) std::memcpy(out + written, in + i, ascii);
    i += ascii;
    written += ascii;
    while (i < size && in[i] >= 0x80) {
      const SingleByteTable::Entry& entry = table.entries[in[i]];
      if (entry.size == 0) return std::nullopt;
      std::memcpy(out + written, entry.utf8, 3);
      written += entry.size;
      ++i;
    }
  }
  return Converted{i, written};
}

}  // namespace

std::optional<TextCodec> CodecOf(int code_page) {
  if (code_page == kCodePageUtf8) return TextCodec{Encoding::kUtf8, nullptr, nullptr};
  if (const SingleByteTable* table = SingleByteTableOf(code_page)) {
    return TextCodec{Encoding::kSingleByte, table, nullptr};
  }
  if (const char* name = MultiByteNameOf(code_page)) {
    auto iconv = std::make_shared<Iconv>(name);
    if (iconv->ok()) return TextCodec{Encoding::kMultiByte, nullptr, std::move(iconv)};
  }
  return std::nullopt;
}

std::optional<Converted> ConvertPiece(const TextCodec& codec, const std::uint8_t* in,
                                      std::size_t size, std::uint8_t* out) {
  switch (codec.encoding) {
    case Encoding::kBytes:
      if (size != 0) std::memcpy(out, in, size);
      return Converted{size, size};
    case Encoding::kUtf16: {
      const Utf16Progress done =
          ConvertUtf16(BestUtf16Kernels(), in, size / 2, false, out);
      return Converted{2 * done.units, done.written};
    }
    case Encoding::kUtf8:
      return CheckUtf8(in, size, out);
    case Encoding::kSingleByte:
      return ConvertSingleByte(*codec.table, in, size, out);
    case Encoding::kMultiByte:
      return codec.iconv->Convert(in, size, out);
  }
  return std::nullopt;
}

std::optional<std::size_t> ConvertEnd(const TextCodec& codec, const std::uint8_t* in,
                                      std::size_t size, std::uint8_t* out) {
  if (size == 0) return 0;
  if (codec.encoding != Encoding::kUtf16 || size % 2 != 0) return std::nullopt;
  return Utf8OfUtf16(in, size / 2, out);
}

std::size_t Utf8OfUtf16(const std::uint8_t* in, std::size_t unit_count,
                        std::uint8_t* out) {
  return ConvertUtf16(BestUtf16Kernels(), in, unit_count, true, out).written;
}

std::size_t Utf8OfShortUtf16(const std::uint8_t* in, std::size_t unit_count,
                             std::uint8_t* out) {
  // Zero units behind the text are ASCII, so that whole vectors can be used; what they
  // add is taken off again.
  std::uint8_t padded[64 + 16] = {};
  if (unit_count != 0) std::memcpy(padded, in, 2 * unit_count);
  const std::size_t padded_count = (unit_count + 7) / 8 * 8;
  const Utf16Kernels& kernels = BestUtf16Kernels();
  Utf16Progress done = kernels.basic_plane(padded, padded_count, out);
  if (done.units != padded_count) {
    done.written += ConvertUtf16(kernels, padded + 2 * done.units,
                                 padded_count - done.units, true, out + done.written)
                        .written;
  }
  return done.written - (padded_count - unit_count);
}

}  // namespace mssql_cdc::tds
