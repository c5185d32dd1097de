// One [[stream]] for many tables: `captureInstances` lists capture instances by name
// and by pattern, and in the other settings {ci} stands for the one at hand.
//
// Nothing here asks a server; what patterns are matched with is given.

#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/capture_instance.h"
#include "cli/config.h"

namespace mssql_cdc::cli {

struct FanOut {
  StreamSettings settings;  // Without captureInstances.
  // Names, and patterns in which * is any text and ? any character; in any case.
  std::vector<std::string> wanted;

  bool has_pattern() const;
};

// Whether the server must say what it has: for patterns, and to tell names apart that
// differ in case only (`taken` among them).
bool NeedsList(const FanOut& fan_out, const std::set<std::string>& taken);

// Whether the settings are for many; nullopt: for one. Errors: OptionsClash with
// captureInstance; OptionInvalid without {ci} in target, app_id and checkpoint, in that
// order, and in silver if it is given.
Result<std::optional<FanOut>> ReadFanOut(StreamSettings settings);

// Whether a name matches a pattern, in any case.
bool Matches(std::string_view pattern, std::string_view name);

struct Expanded {
  std::vector<StreamSettings> streams;  // In the order that `wanted` names them.
  std::vector<std::string> unmatched;   // Patterns that match nothing.
};

// A stream for each name and each match, once. A pattern takes, of several instances of
// one table, the oldest, whose stream goes on to the others by itself, and no table
// that a name or an earlier pattern has. `listed`: what the server has, among which an
// exact name wins over one that differs in case; `taken`: names that streams of their
// own have.
Expanded ExpandFanOut(const FanOut& fan_out,
                      const std::vector<cdc::CaptureInstance>& listed,
                      const std::set<std::string>& taken);

// `text` with the name in place of every {ci}.
std::string WithInstance(std::string text, const std::string& name);

// What the server that the settings name has.
using ListInstances =
    std::function<Result<std::vector<cdc::CaptureInstance>>(const StreamSettings&)>;

// Puts a stream for each table in the place of each [[stream]] for many, and entries of
// the catalog that have {ci} in their names and locations. Asks `list` where NeedsList;
// tells of those that match nothing in the file's warnings. Errors: those of ReadFanOut
// and of `list`; OptionInvalid for a name with / or \, and for . and ..;
// CaptureInstanceNotFound (fact captureInstances) if no stream is left.
Status ExpandStreams(PipelineFile& file, const ListInstances& list);

}  // namespace mssql_cdc::cli
