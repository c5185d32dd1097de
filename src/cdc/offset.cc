#include "cdc/offset.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace mssql_cdc::cdc {
namespace {

Error Unreadable(std::string_view json, std::string reason) {
  return Error(ErrorId::kCheckpointUnreadable)
      .With("offset", std::string(json.substr(0, 200)))
      .With("reason", std::move(reason));
}

}  // namespace

std::string CommitText(const std::optional<std::int64_t>& commit_us) {
  return commit_us ? IsoMillis(*commit_us) : std::string();
}

std::string Offset::Json() const {
  return R"({"lsn": ")" + lsn.Text() + R"(", "commit_ts": ")" + CommitText(commit_us) +
         "\"}";
}

Result<Offset> Offset::Parse(std::string_view json) {
  const nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object()) return Unreadable(json, "not a JSON object");
  const auto lsn_text = parsed.find("lsn");
  if (lsn_text == parsed.end() || !lsn_text->is_string()) {
    return Unreadable(json, "no lsn");
  }
  const Result<Lsn> lsn = Lsn::Parse(lsn_text->get_ref<const std::string&>());
  if (!lsn.ok()) return Unreadable(json, "lsn is malformed");
  Offset offset{lsn.value(), std::nullopt};
  const auto commit_text = parsed.find("commit_ts");
  if (commit_text == parsed.end() || commit_text->is_null()) return offset;
  if (!commit_text->is_string()) return Unreadable(json, "commit_ts is no text");
  const auto& text = commit_text->get_ref<const std::string&>();
  if (text.empty()) return offset;
  offset.commit_us = ParseIsoUs(text);
  if (!offset.commit_us) return Unreadable(json, "commit_ts is malformed");
  return offset;
}

}  // namespace mssql_cdc::cdc
