// Where streams keep what, and that none of it lies in another's folder.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::runtime {

struct Place {
  std::string option;
  std::string location;  // One spelling: no file://, no .., no slash at the end.
  bool is_table = true;
};

// Those that the stream was given. Requires absolute locations.
std::vector<Place> PlacesOf(const StreamConfig& config);

// Whether `inner` may be where it is, beside `outer`: not in its folder, but for what
// is no table below a folder of a table that Delta leaves alone (its name begins with
// _). Errors: OptionsClash, with `outer_name` as the fact "with".
Status CheckBesides(const Place& outer, const Place& inner,
                    const std::string& outer_name);

// Whether the places of several streams go together: only tables of one kind may be the
// same (target, facts_table, control_table). Errors: OptionsClash.
Status CheckApart(const std::vector<const StreamConfig*>& streams);

}  // namespace mssql_cdc::runtime
