// Log sequence numbers, and the one way this code says "from here to there".

#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace mssql_cdc::cdc {

// A binary(10) log sequence number. Orders as SQL Server orders it: big-endian.
struct Lsn {
  std::array<std::uint8_t, 10> bytes{};

  auto operator<=>(const Lsn&) const = default;

  bool IsZero() const { return *this == Lsn{}; }
  // The smallest LSN above this one (sys.fn_cdc_increment_lsn), or nullopt at the top.
  std::optional<Lsn> Next() const;
  // The largest LSN below this one (sys.fn_cdc_decrement_lsn), or nullopt at zero.
  std::optional<Lsn> Previous() const;
  // "0x" and 20 upper-case hexadecimal digits, whose text order is LSN order.
  std::string Text() const;
  // Reads text with or without 0x, in any case, blanks around it; fewer than 20 digits
  // are padded with zeros on the left. Errors: OptionInvalid (fact lsn).
  static Result<Lsn> Parse(std::string_view text);
  // Errors: OptionInvalid unless there are exactly ten bytes.
  static Result<Lsn> FromBytes(std::span<const std::uint8_t> bytes);
};

// The changes committed above `after`, up to and including `through`. There is no
// other window type: a half-open or fully closed one would need a second name, and
// then the two would be mixed up.
struct LsnWindow {
  Lsn after;
  Lsn through;  // Invariant: after < through.

  auto operator<=>(const LsnWindow&) const = default;
};

}  // namespace mssql_cdc::cdc
