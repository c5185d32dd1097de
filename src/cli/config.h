// The pipeline file: what `mssql-cdc run` and `check` read.
//
// TOML with the reference's own option names. [source] holds defaults for every stream,
// [catalog] maps table names to locations, each [[stream]] is one stream and may set
// any source option anew. Values become strings, as Spark passes them; what they mean
// is decided where the options are parsed (runtime).

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/secret.h"

namespace mssql_cdc::cli {

// One stream's settings, [source] merged in.
struct StreamSettings {
  std::map<std::string, std::string>
      options;  // Names as spelled, each once in any case.
  std::optional<Secret> password;
  std::optional<Secret> access_token;
};

struct PipelineFile {
  std::map<std::string, std::string> catalog;  // Table name -> location as written.
  std::vector<StreamSettings> streams;         // At least one.
  std::vector<std::string> warnings;           // A secret in the file itself.
};

// How secrets and files are looked up; tests put their own.
struct Surroundings {
  std::function<std::optional<std::string>(const std::string&)> environment;
  std::function<Result<std::string>(const std::string&)> read_file;
};
Surroundings RealSurroundings();

// Reads `toml`, the text of `file_name`; relative locations and checkpoints are taken
// from `base_dir`.
//
// A secret (password, accessToken) is { env = "NAME" }, { file = "path" } (one trailing
// line end is not part of it) or, with a warning, a plain string.
// Errors: ConfigUnreadable (facts file, line, problem); OptionInvalid for a value that
// is no string, number or boolean; OptionMissing for a secret's variable or file that
// is not there, and without any [[stream]]. No value of a secret is in an error.
Result<PipelineFile> ParsePipeline(std::string_view toml, const std::string& file_name,
                                   const std::string& base_dir,
                                   const Surroundings& surroundings);

// `path` itself if it is absolute or a URL, else below `base_dir`.
std::string Absolute(const std::string& path, const std::string& base_dir);

}  // namespace mssql_cdc::cli
