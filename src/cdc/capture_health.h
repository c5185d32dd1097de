// Tells a quiet source from one that is not captured.
//
// The capture job writes an entry at least every five minutes, also when nothing
// happens. A mapping without a young entry means that the job does not run, and then
// nothing may be said about the table.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mssql_cdc::cdc {

// Three entries are missing.
inline constexpr std::int64_t kCaptureSilentSecondsMax = 900;

struct CaptureHealth {
  // The newest entry's age; absent: there is no entry.
  std::optional<std::int64_t> age_seconds;
  // What the login may not see is absent.
  std::optional<bool> has_capture_job;
  std::optional<std::int64_t> error_number;
  std::optional<std::int64_t> error_age_seconds;
};

bool IsStalled(const std::optional<std::int64_t>& age_seconds);

// One sentence: since when, and why as far as it is known. Requires IsStalled.
std::string DescribeStall(const CaptureHealth& health);

}  // namespace mssql_cdc::cdc
