#include "cli/config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

// Exceptions off: parse errors come back as values.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <nlohmann/json.hpp>

#include "base/near_names.h"
#include "base/text.h"

namespace mssql_cdc::cli {
namespace {

class Parser {
 public:
  Parser(const std::string& file_name, const std::string& base_dir,
         const Surroundings& surroundings)
      : file_name_(file_name), base_dir_(base_dir), surroundings_(surroundings) {}

  Result<PipelineFile> Run(std::string_view text) {
    toml::parse_result parsed = toml::parse(text, file_name_);
    if (!parsed) {
      return Error(ErrorId::kConfigUnreadable)
          .With("file", file_name_)
          .With("line", std::to_string(parsed.error().source().begin.line))
          .With("problem", std::string(parsed.error().description()));
    }
    const toml::table& root = parsed.table();
    TRY(CheckSections(root));
    StreamSettings defaults;
    if (const toml::node* source = root.get("source")) {
      TRY(ReadSettings(*source->as_table(), defaults));
    }
    if (const toml::node* catalog = root.get("catalog")) {
      TRY(ReadCatalog(*catalog->as_table()));
    }
    const toml::node* streams = root.get("stream");
    if (streams == nullptr || streams->as_array()->empty()) {
      return Error(ErrorId::kOptionMissing)
          .With("file", file_name_)
          .With("option", "[[stream]]");
    }
    for (const toml::node& stream : *streams->as_array()) {
      StreamSettings settings = defaults;
      TRY(ReadSettings(*stream.as_table(), settings));
      file_.streams.push_back(std::move(settings));
    }
    return std::move(file_);
  }

 private:
  Status CheckSections(const toml::table& root) {
    constexpr std::string_view kSections[] = {"source", "catalog", "stream"};
    for (const auto& [key, node] : root) {
      const bool is_stream = key.str() == "stream";
      if (key.str() != "source" && key.str() != "catalog" && !is_stream) {
        NearNames names(key.str());
        for (const std::string_view section : kSections) names.Offer(section);
        const std::string nearest = names.Nearest();
        return Error(ErrorId::kOptionUnknown)
            .With("file", file_name_)
            .With("line", std::to_string(node.source().begin.line))
            .With("section", std::string(key.str()))
            .With("nearest", nearest.empty() ? "source, catalog, stream" : nearest);
      }
      const bool right_form = is_stream ? node.is_array_of_tables() : node.is_table();
      if (!right_form) {
        return Error(ErrorId::kConfigUnreadable)
            .With("file", file_name_)
            .With("line", std::to_string(node.source().begin.line))
            .With("problem", is_stream
                                 ? "stream is written [[stream]]"
                                 : fmt::format("{0} is written [{0}]", key.str()));
      }
    }
    return Unit{};
  }

  Status ReadCatalog(const toml::table& table) {
    for (const auto& [key, node] : table) {
      const auto location = node.value<std::string>();
      if (!location || location->empty()) {
        return Invalid("catalog." + std::string(key.str()), node,
                       "a location in quotes");
      }
      file_.catalog.emplace(key.str(), *location);
    }
    return Unit{};
  }

  Status ReadSettings(const toml::table& table, StreamSettings& settings) {
    std::map<std::string, std::string> spelled;  // By lower-case name.
    for (const auto& [key, node] : table) {
      const auto [first, is_new] =
          spelled.emplace(LowerAscii(key.str()), std::string(key.str()));
      if (!is_new) {
        return Error(ErrorId::kOptionsClash)
            .With("file", file_name_)
            .With("line", std::to_string(node.source().begin.line))
            .With("options", first->second + ", " + std::string(key.str()))
            .With("reason", "they differ only in case");
      }
      const bool is_password = EqualsIgnoringAsciiCase(key.str(), "password");
      if (is_password || EqualsIgnoringAsciiCase(key.str(), "accessToken")) {
        TRY_ASSIGN(Secret secret, ReadSecret(key.str(), node));
        (is_password ? settings.password : settings.access_token) = std::move(secret);
        continue;
      }
      TRY_ASSIGN(std::string value, ReadValue(key.str(), node));
      constexpr std::string_view kFile = "file:";
      if (EqualsIgnoringAsciiCase(key.str(), "tokenProvider") &&
          value.starts_with(kFile)) {
        value = std::string(kFile) + Absolute(value.substr(kFile.size()), base_dir_);
      }
      std::erase_if(settings.options, [&](const auto& option) {
        return EqualsIgnoringAsciiCase(option.first, key.str());
      });
      settings.options.emplace(key.str(), std::move(value));
    }
    return Unit{};
  }

  Result<std::string> ReadValue(std::string_view name, const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const auto truth = node.value_exact<bool>())
      return std::string(*truth ? "true" : "false");
    if (const auto number = node.value_exact<std::int64_t>())
      return std::to_string(*number);
    if (const auto number = node.value_exact<double>())
      return fmt::format("{}", *number);
    if (const auto list = ReadList(node)) return *list;
    return Invalid(std::string(name), node,
                   "a string, number, boolean or list of strings")
        .error();
  }

  // A list of strings as JSON, which is how options take one.
  static std::optional<std::string> ReadList(const toml::node& node) {
    const toml::array* array = node.as_array();
    if (array == nullptr) return std::nullopt;
    nlohmann::json list = nlohmann::json::array();
    for (const toml::node& element : *array) {
      const auto text = element.value_exact<std::string>();
      if (!text) return std::nullopt;
      list.push_back(*text);
    }
    return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  Result<Secret> ReadSecret(std::string_view name, const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) {
      file_.warnings.push_back(
          fmt::format("{}: {} stands in the file; {{ env = \"NAME\" }} or {{ file = "
                      "\"path\" }} keeps "
                      "it out",
                      file_name_, name));
      return Secret(*text);
    }
    const toml::table* table = node.as_table();
    if (table == nullptr || table->size() != 1) {
      return Invalid(std::string(name), node,
                     "{ env = \"NAME\" } or { file = \"path\" }")
          .error();
    }
    if (const auto variable = (*table)["env"].value<std::string>()) {
      auto value = surroundings_.environment(*variable);
      if (!value) {
        return Error(ErrorId::kOptionMissing)
            .With("option", std::string(name))
            .With("environment_variable", *variable);
      }
      return Secret(std::move(*value));
    }
    if (const auto path = (*table)["file"].value<std::string>()) {
      auto content = surroundings_.read_file(Absolute(*path, base_dir_));
      if (!content.ok()) {
        return Error(ErrorId::kOptionMissing)
            .With("option", std::string(name))
            .With("file", *path);
      }
      std::string text = std::move(content).value();
      if (text.ends_with('\n')) text.pop_back();
      if (text.ends_with('\r')) text.pop_back();
      return Secret(std::move(text));
    }
    return Invalid(std::string(name), node, "{ env = \"NAME\" } or { file = \"path\" }")
        .error();
  }

  Status Invalid(std::string option, const toml::node& node, std::string allowed) {
    return Error(ErrorId::kOptionInvalid)
        .With("file", file_name_)
        .With("line", std::to_string(node.source().begin.line))
        .With("option", std::move(option))
        .With("allowed", std::move(allowed));
  }

  const std::string& file_name_;
  const std::string& base_dir_;
  const Surroundings& surroundings_;
  PipelineFile file_;
};

}  // namespace

Surroundings RealSurroundings() {
  return {[](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            if (value == nullptr) return std::nullopt;
            return std::string(value);
          },
          [](const std::string& path) -> Result<std::string> {
            std::error_code ignored;
            std::ifstream file(path, std::ios::binary);
            // A folder opens too, and throws when it is read.
            if (!file || std::filesystem::is_directory(path, ignored))
              return Error(ErrorId::kFileFailed).With("file", path);
            return std::string(std::istreambuf_iterator<char>(file), {});
          }};
}

Result<PipelineFile> ParsePipeline(std::string_view toml, const std::string& file_name,
                                   const std::string& base_dir,
                                   const Surroundings& surroundings) {
  return Parser(file_name, base_dir, surroundings).Run(toml);
}

std::string Absolute(const std::string& path, const std::string& base_dir) {
  const bool is_url = path.find("://") != std::string::npos;
  if (path.empty() || path.front() == '/' || is_url || base_dir.empty()) return path;
  return base_dir + "/" + path;
}

}  // namespace mssql_cdc::cli
