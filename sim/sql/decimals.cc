#include "sim/sql/decimals.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "sim/sql/numbers.h"

namespace mssql_cdc::sim {
namespace {

using Wide = unsigned __int128;

// 256 bits, enough for a product of two 38-digit numbers.
struct Wide256 {
  Wide high = 0;
  Wide low = 0;
};

Wide256 Multiply(Wide a, Wide b) {
  constexpr Wide kMask = ~std::uint64_t{0};
  const Wide a0 = a & kMask, a1 = a >> 64, b0 = b & kMask, b1 = b >> 64;
  const Wide p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0, p11 = a1 * b1;
  const Wide middle = (p00 >> 64) + (p01 & kMask) + (p10 & kMask);
  Wide256 product;
  product.low = (p00 & kMask) | (middle << 64);
  product.high = p11 + (p01 >> 64) + (p10 >> 64) + (middle >> 64);
  return product;
}

// Long division, bit by bit. Requires: `divisor` is not zero and below 2^127.
Wide256 Divide(const Wide256& value, Wide divisor, Wide& remainder) {
  Wide256 quotient;
  remainder = 0;
  for (int bit = 255; bit >= 0; --bit) {
    const Wide word = bit >= 128 ? value.high : value.low;
    const Wide next = (word >> (bit % 128)) & 1;
    remainder = (remainder << 1) | next;
    if (remainder < divisor) continue;
    remainder -= divisor;
    (bit >= 128 ? quotient.high : quotient.low) |= Wide{1} << (bit % 128);
  }
  return quotient;
}

Wide Magnitude(__int128 value) {
  return value < 0 ? ~static_cast<Wide>(value) + 1 : static_cast<Wide>(value);
}

std::optional<Decimal> Made(const Wide256& magnitude, bool negative,
                            std::uint8_t scale) {
  if (magnitude.high != 0 || magnitude.low >= static_cast<Wide>(PowerOfTen(38))) {
    return std::nullopt;
  }
  const auto value = static_cast<__int128>(magnitude.low);
  return Decimal{negative ? -value : value, scale};
}

}  // namespace

__int128 PowerOfTen(unsigned exponent) {
  static const auto kPowers = [] {
    std::array<__int128, 39> powers{};
    powers[0] = 1;
    for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
    return powers;
  }();
  return kPowers[std::min(exponent, 38u)];
}

std::optional<Decimal> ParseDecimal(std::string_view text) {
  text = Trim(text);
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  std::int64_t exponent = 0;
  if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
    const auto parsed = ParseInt64(text.substr(e + 1));
    if (!parsed || *parsed < -100 || *parsed > 100) return std::nullopt;
    exponent = *parsed;
    text = text.substr(0, e);
  }
  __int128 unscaled = 0;
  int digit_count = 0;
  std::int64_t scale = 0;
  bool point = false;
  bool any = false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    any = true;
    if (unscaled != 0 || c != '0') ++digit_count;
    if (digit_count > 38) {
      // Digits of a fraction beyond what fits are cut off.
      if (!point) return std::nullopt;
      continue;
    }
    unscaled = unscaled * 10 + (c - '0');
    if (point) ++scale;
  }
  if (!any && !point) return std::nullopt;
  scale -= exponent;
  while (scale < 0) {
    if (unscaled >= PowerOfTen(37)) return std::nullopt;
    unscaled *= 10;
    ++scale;
  }
  while (scale > 38) {
    unscaled /= 10;
    --scale;
  }
  return Decimal{negative ? -unscaled : unscaled, static_cast<std::uint8_t>(scale)};
}

std::string DecimalText(const Decimal& value) {
  Wide magnitude = Magnitude(value.unscaled);
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(magnitude % 10));
    magnitude /= 10;
  } while (magnitude != 0);
  while (digits.size() <= value.scale) digits += '0';
  if (value.scale > 0) digits.insert(value.scale, 1, '.');
  if (value.unscaled < 0) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::uint8_t DecimalDigits(const Decimal& value) {
  Wide magnitude = Magnitude(value.unscaled);
  std::uint8_t count = 1;
  while (magnitude >= 10) {
    magnitude /= 10;
    ++count;
  }
  return count;
}

std::optional<Decimal> Rescale(const Decimal& value, std::uint8_t scale,
                               bool truncate) {
  if (scale == value.scale) return value;
  const Wide magnitude = Magnitude(value.unscaled);
  const bool negative = value.unscaled < 0;
  if (scale > value.scale) {
    const auto power =
        static_cast<Wide>(PowerOfTen(static_cast<unsigned>(scale - value.scale)));
    return Made(Multiply(magnitude, power), negative, scale);
  }
  const auto divisor =
      static_cast<Wide>(PowerOfTen(static_cast<unsigned>(value.scale - scale)));
  Wide quotient = magnitude / divisor;
  if (!truncate && magnitude % divisor >= divisor - divisor / 2) ++quotient;
  return Made({0, quotient}, negative, scale);
}

bool FitsPrecision(const Decimal& value, std::uint8_t precision) {
  return Magnitude(value.unscaled) < static_cast<Wide>(PowerOfTen(precision));
}

std::optional<Decimal> DecimalFromDouble(double value, std::uint8_t scale) {
  if (!std::isfinite(value) || std::fabs(value) >= 1e38) return std::nullopt;
  // 17 significant digits decide; the rest of a double's digits are noise.
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.16e", value);
  const std::optional<Decimal> exact = ParseDecimal(buffer);
  if (!exact) return Decimal{0, scale};
  return Rescale(*exact, scale);
}

double DecimalToDouble(const Decimal& value) {
  return ParseDouble(DecimalText(value)).value_or(0);
}

std::optional<Decimal> AddDecimals(const Decimal& a, const Decimal& b,
                                   std::uint8_t scale) {
  const std::uint8_t common = std::max(a.scale, b.scale);
  const std::optional<Decimal> left = Rescale(a, common);
  const std::optional<Decimal> right = Rescale(b, common);
  if (!left || !right) return std::nullopt;
  // Two magnitudes below 10^38 sum up below 2^127.
  const Decimal sum{left->unscaled + right->unscaled, common};
  const std::optional<Decimal> result = Rescale(sum, scale);
  if (!result || !FitsPrecision(*result, 38)) return std::nullopt;
  return result;
}

std::optional<Decimal> MultiplyDecimals(const Decimal& a, const Decimal& b,
                                        std::uint8_t scale) {
  Wide256 product = Multiply(Magnitude(a.unscaled), Magnitude(b.unscaled));
  const bool negative = (a.unscaled < 0) != (b.unscaled < 0);
  const int excess = a.scale + b.scale - scale;
  if (excess > 0) {
    // In two steps, since a power above 38 does not fit.
    int rest = excess;
    while (rest > 38) {
      Wide ignored = 0;
      product = Divide(product, static_cast<Wide>(PowerOfTen(37)), ignored);
      rest -= 37;
    }
    const auto divisor = static_cast<Wide>(PowerOfTen(static_cast<unsigned>(rest)));
    Wide remainder = 0;
    product = Divide(product, divisor, remainder);
    if (remainder >= divisor - divisor / 2 && ++product.low == 0) ++product.high;
  }
  std::optional<Decimal> result = Made(product, negative, scale);
  if (result && excess < 0) {
    result->scale = static_cast<std::uint8_t>(a.scale + b.scale);
    return Rescale(*result, scale);
  }
  return result;
}

std::optional<Decimal> DivideDecimals(const Decimal& a, const Decimal& b,
                                      std::uint8_t scale) {
  // a / b at `scale` is (a.unscaled * 10^(scale + b.scale - a.scale)) / b.unscaled.
  const int shift = scale + b.scale - a.scale;
  const bool negative = (a.unscaled < 0) != (b.unscaled < 0);
  Wide remainder = 0;
  if (shift < 0) {
    const Wide256 cut =
        Divide({0, Magnitude(a.unscaled)},
               static_cast<Wide>(PowerOfTen(static_cast<unsigned>(-shift))), remainder);
    return Made(Divide(cut, Magnitude(b.unscaled), remainder), negative, scale);
  }
  if (shift > 38) {
    // The first 38 digits, then the rest on quotient and remainder.
    const Wide divisor = Magnitude(b.unscaled);
    Wide256 first =
        Divide(Multiply(Magnitude(a.unscaled), static_cast<Wide>(PowerOfTen(38))),
               divisor, remainder);
    const auto power = static_cast<Wide>(PowerOfTen(static_cast<unsigned>(shift - 38)));
    if (first.high != 0) return std::nullopt;
    Wide256 high = Multiply(first.low, power);
    Wide last = 0;
    const Wide256 low = Divide(Multiply(remainder, power), divisor, last);
    high.low += low.low;
    if (high.low < low.low) ++high.high;
    return Made(high, negative, scale);
  }
  const Wide256 dividend =
      Multiply(Magnitude(a.unscaled),
               static_cast<Wide>(PowerOfTen(static_cast<unsigned>(shift))));
  return Made(Divide(dividend, Magnitude(b.unscaled), remainder), negative, scale);
}

std::optional<Decimal> ModuloDecimals(const Decimal& a, const Decimal& b,
                                      std::uint8_t scale) {
  const std::uint8_t common = std::max(a.scale, b.scale);
  const std::optional<Decimal> left = Rescale(a, common);
  const std::optional<Decimal> right = Rescale(b, common);
  if (!left || !right) return std::nullopt;
  return Rescale(Decimal{left->unscaled % right->unscaled, common}, scale);
}

int CompareDecimals(const Decimal& a, const Decimal& b) {
  if (a.scale == b.scale) {
    return a.unscaled < b.unscaled ? -1 : a.unscaled > b.unscaled ? 1 : 0;
  }
  const bool a_negative = a.unscaled < 0;
  const bool b_negative = b.unscaled < 0;
  if (a_negative != b_negative) return a_negative ? -1 : 1;
  const std::uint8_t common = std::max(a.scale, b.scale);
  const Wide256 left =
      Multiply(Magnitude(a.unscaled),
               static_cast<Wide>(PowerOfTen(static_cast<unsigned>(common - a.scale))));
  const Wide256 right =
      Multiply(Magnitude(b.unscaled),
               static_cast<Wide>(PowerOfTen(static_cast<unsigned>(common - b.scale))));
  int order = 0;
  if (left.high != right.high) {
    order = left.high < right.high ? -1 : 1;
  } else if (left.low != right.low) {
    order = left.low < right.low ? -1 : 1;
  }
  return a_negative ? -order : order;
}

}  // namespace mssql_cdc::sim
