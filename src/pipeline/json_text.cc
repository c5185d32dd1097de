#include "pipeline/json_text.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace mssql_cdc::pipeline {
namespace {

using Json = nlohmann::ordered_json;

std::string Scalar(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace

std::string JsonText(const Json& json) {
  if (json.is_object()) {
    std::string text = "{";
    for (auto item = json.begin(); item != json.end(); ++item) {
      if (text.size() > 1) text += ", ";
      text += Scalar(Json(item.key())) + ": " + JsonText(item.value());
    }
    return text + "}";
  }
  if (!json.is_array()) return Scalar(json);
  std::string text = "[";
  for (const Json& each : json) {
    if (text.size() > 1) text += ", ";
    text += JsonText(each);
  }
  return text + "]";
}

std::optional<Json> ParseObject(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

std::optional<std::string> TextMember(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<std::int64_t> IntegerMember(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::optional<double> NumberMember(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::optional<cdc::Lsn> LsnMember(const Json& json, const char* key) {
  const std::optional<std::string> text = TextMember(json, key);
  if (!text) return std::nullopt;
  const Result<cdc::Lsn> lsn = cdc::Lsn::Parse(*text);
  if (!lsn.ok()) return std::nullopt;
  return lsn.value();
}

std::optional<std::int64_t> TimeMember(const Json& json, const char* key) {
  const std::optional<std::string> text = TextMember(json, key);
  return text ? ParseIsoUs(*text) : std::nullopt;
}

Json TimeJson(const std::optional<std::int64_t>& us) {
  return us ? Json(IsoMillis(*us)) : Json();
}

}  // namespace mssql_cdc::pipeline
