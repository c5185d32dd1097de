#include "cdc/lsn.h"

#include <algorithm>

#include "base/text.h"

namespace mssql_cdc::cdc {

std::optional<Lsn> Lsn::Next() const {
  Lsn next = *this;
  for (std::size_t i = next.bytes.size(); i-- > 0;) {
    if (++next.bytes[i] != 0) return next;
  }
  return std::nullopt;
}

std::optional<Lsn> Lsn::Previous() const {
  Lsn previous = *this;
  for (std::size_t i = previous.bytes.size(); i-- > 0;) {
    if (previous.bytes[i]-- != 0) return previous;
  }
  return std::nullopt;
}

std::string Lsn::Text() const { return "0x" + HexUpper(bytes); }

Result<Lsn> Lsn::Parse(std::string_view text) {
  std::string_view digits = Trim(text);
  if (digits.size() >= 2 && digits[0] == '0' &&
      (digits[1] == 'x' || digits[1] == 'X')) {
    digits.remove_prefix(2);
  }
  Lsn lsn;
  const std::size_t digit_count_max = lsn.bytes.size() * 2;
  if (digits.empty() || digits.size() > digit_count_max) {
    return Error(ErrorId::kOptionInvalid).With("lsn", std::string(text.substr(0, 64)));
  }
  std::size_t position = digit_count_max - digits.size();
  for (const char c : digits) {
    int digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else {
      return Error(ErrorId::kOptionInvalid)
          .With("lsn", std::string(text.substr(0, 64)));
    }
    std::uint8_t& byte = lsn.bytes[position / 2];
    byte = static_cast<std::uint8_t>((byte << 4) | digit);
    ++position;
  }
  return lsn;
}

Result<Lsn> Lsn::FromBytes(std::span<const std::uint8_t> bytes) {
  Lsn lsn;
  if (bytes.size() != lsn.bytes.size()) {
    return Error(ErrorId::kOptionInvalid)
        .With("lsn",
              "0x" + HexUpper(bytes.first(std::min<std::size_t>(bytes.size(), 32))));
  }
  std::copy(bytes.begin(), bytes.end(), lsn.bytes.begin());
  return lsn;
}

}  // namespace mssql_cdc::cdc
