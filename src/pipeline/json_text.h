// JSON as the tables hold it: ASCII, with a blank after each comma and colon, the
// layout of Python's json module. Readers parse it; people compare it.

#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cdc/lsn.h"

namespace mssql_cdc::pipeline {

std::string JsonText(const nlohmann::ordered_json& json);

// The object in `text`; nullopt for anything else.
std::optional<nlohmann::ordered_json> ParseObject(std::string_view text);

// The member called `key`, if it is there and of that kind.
std::optional<std::string> TextMember(const nlohmann::ordered_json& json,
                                      const char* key);
std::optional<std::int64_t> IntegerMember(const nlohmann::ordered_json& json,
                                          const char* key);
std::optional<double> NumberMember(const nlohmann::ordered_json& json, const char* key);
std::optional<cdc::Lsn> LsnMember(const nlohmann::ordered_json& json, const char* key);
// A time in microseconds, from ISO text.
std::optional<std::int64_t> TimeMember(const nlohmann::ordered_json& json,
                                       const char* key);

// ISO text with milliseconds, or null.
nlohmann::ordered_json TimeJson(const std::optional<std::int64_t>& us);

}  // namespace mssql_cdc::pipeline
