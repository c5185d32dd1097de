// The snapshot plans table's rows of one snapshot: the key values that its rows in the
// facts leave out.

#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace mssql_cdc::pipeline {

struct PlansRow {
  std::string event;
  std::string detail;
};

class PlanRows {
 public:
  using Json = nlohmann::ordered_json;

  // Of several rows for one chunk of one wave the last counts. What is no JSON object
  // is no row, nor is one that says it is another sink's, if `sink_id` is given.
  PlanRows(const std::vector<PlansRow>& rows,
           const std::optional<std::string>& sink_id);

  // The whole payload of a facts row: the row's own where it has the key values itself,
  // as before release 0.7.0; nullopt if the plans table lacks it.
  std::optional<Json> Whole(const std::string& event, const Json& detail) const;

  // The chunks noted for a wave, in the plan's order.
  std::vector<Json> OfWave(std::int64_t wave) const;

 private:
  using RowKey =
      std::tuple<std::string, std::optional<std::int64_t>, std::optional<std::int64_t>>;
  std::map<RowKey, Json> by_key_;  // Event, chunk, wave.
};

// Whether a payload says that it is another sink's; one of the existing package does
// not say whose it is.
bool IsOfAnother(const nlohmann::ordered_json& payload, const std::string& sink_id);

// Whether a facts row has the key values itself.
bool IsWhole(const std::string& event, const nlohmann::ordered_json& detail);

}  // namespace mssql_cdc::pipeline
