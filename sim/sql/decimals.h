// Exact decimal arithmetic with SQL Server's rules: 38 digits, precision and scale of
// results, division that truncates. Overflow is absence; the caller raises 8115.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/value.h"

namespace mssql_cdc::sim {

// 10 to the power of `exponent`, 0 to 38.
__int128 PowerOfTen(unsigned exponent);

// "-12.50", ".5", "7", also with an exponent: "1e3". nullopt if it is no number or has
// more than 38 digits.
std::optional<Decimal> ParseDecimal(std::string_view text);
std::string DecimalText(const Decimal& value);

// Digits without leading zeros; 1 for zero.
std::uint8_t DecimalDigits(const Decimal& value);
// To another scale, rounding half away from zero (or cutting off); nullopt above 38
// digits.
std::optional<Decimal> Rescale(const Decimal& value, std::uint8_t scale,
                               bool truncate = false);
// True if the value fits decimal(precision, its own scale).
bool FitsPrecision(const Decimal& value, std::uint8_t precision);

std::optional<Decimal> DecimalFromDouble(double value, std::uint8_t scale);
double DecimalToDouble(const Decimal& value);

// Each to the given scale of the result.
std::optional<Decimal> AddDecimals(const Decimal& a, const Decimal& b,
                                   std::uint8_t scale);
std::optional<Decimal> MultiplyDecimals(const Decimal& a, const Decimal& b,
                                        std::uint8_t scale);
// Requires: `b` is not zero.
std::optional<Decimal> DivideDecimals(const Decimal& a, const Decimal& b,
                                      std::uint8_t scale);
std::optional<Decimal> ModuloDecimals(const Decimal& a, const Decimal& b,
                                      std::uint8_t scale);
// -1, 0, 1.
int CompareDecimals(const Decimal& a, const Decimal& b);

}  // namespace mssql_cdc::sim
