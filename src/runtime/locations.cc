#include "runtime/locations.h"

#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace mssql_cdc::runtime {
namespace {

// The absolute path below `folder` that `path` is, "" for itself, nullopt if it is
// elsewhere. Both without a trailing slash.
std::optional<std::string> Below(const std::string& folder, const std::string& path) {
  if (path == folder) return "";
  if (!path.starts_with(folder + "/")) return std::nullopt;
  return path.substr(folder.size() + 1);
}

std::string WithoutEndingSlashes(std::string text) {
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

// One spelling of a place: file:///x is /x, a/../b is b, and no slash at the end.
std::string Normal(const std::string& given) {
  constexpr std::string_view kFileUrl = "file://";
  std::string location = given;
  if (EqualsIgnoringAsciiCase(location.substr(0, kFileUrl.size()), kFileUrl)) {
    location.erase(0, kFileUrl.size());
  } else if (location.find("://") != std::string::npos) {
    return WithoutEndingSlashes(std::move(location));
  }
  std::error_code failed;
  const std::filesystem::path real =
      std::filesystem::weakly_canonical(location, failed);
  std::string text =
      (failed ? std::filesystem::path(location).lexically_normal() : real).string();
  return WithoutEndingSlashes(std::move(text));
}

// Several streams may write into one, each under its app_id.
bool MayBeShared(const Place& a, const Place& b) {
  return a.option == b.option && (a.option == "target" || a.option == "facts_table" ||
                                  a.option == "control_table");
}

struct Owned {
  Place place;
  std::size_t stream;
};

Status CheckAgainst(const std::vector<Owned>& outers, const Owned& inner) {
  for (const Owned& outer : outers) {
    if (outer.stream == inner.stream) continue;
    const bool is_same = outer.place.location == inner.place.location;
    if (is_same && MayBeShared(outer.place, inner.place)) continue;
    TRY(CheckBesides(outer.place, inner.place,
                     "another stream's " + outer.place.option));
  }
  return Unit{};
}

}  // namespace

std::vector<Place> PlacesOf(const StreamConfig& config) {
  std::vector<Place> places = {{"target", Normal(config.target_location), true},
                               {"checkpoint", Normal(config.checkpoint), false}};
  if (config.facts_table) {
    places.push_back({"facts_table", Normal(config.facts_location), true});
  }
  if (config.control_table) {
    places.push_back({"control_table", Normal(config.control_location), true});
  }
  if (config.silver) {
    places.push_back({"silver", Normal(config.silver_location), true});
  }
  return places;
}

Status CheckBesides(const Place& outer, const Place& inner,
                    const std::string& outer_name) {
  const std::optional<std::string> rest = Below(outer.location, inner.location);
  if (!rest) return Unit{};
  // Delta's own folders and those of its tools begin with _ too.
  const std::string first = rest->substr(0, rest->find('/'));
  const bool left_alone = first.starts_with('_') && first != "_delta_log" &&
                          first != "_change_data" && outer.is_table && !inner.is_table;
  if (left_alone) return Unit{};
  return Error(ErrorId::kOptionsClash)
      .With("option", inner.option)
      .With("value", inner.location)
      .With("with", outer_name)
      .With("reason", rest->empty() ? "both are the same folder"
                                    : "it lies in that one's folder");
}

Status CheckApart(const std::vector<const StreamConfig*>& streams) {
  std::map<std::string, std::vector<Owned>> by_location;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    for (Place& place : PlacesOf(*streams[i])) {
      by_location[place.location].push_back({std::move(place), i});
    }
  }
  for (const auto& [location, owned] : by_location) {
    for (const Owned& inner : owned) {
      // The place itself, then the folders that it is in.
      for (std::size_t end = location.size(); end != std::string::npos && end > 0;
           end = location.rfind('/', end - 1)) {
        const auto outers = by_location.find(location.substr(0, end));
        if (outers != by_location.end()) TRY(CheckAgainst(outers->second, inner));
      }
    }
  }
  return Unit{};
}

}  // namespace mssql_cdc::runtime
