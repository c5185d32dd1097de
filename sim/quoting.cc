#include "sim/quoting.h"

namespace mssql_cdc::sim {
namespace {

std::string Delimited(std::string_view open, std::string_view text, char close) {
  std::string made(open);
  for (const char c : text) {
    made += c;
    if (c == close) made += c;
  }
  return made + close;
}

}  // namespace

std::string Bracketed(std::string_view name) { return Delimited("[", name, ']'); }

std::string Quoted(std::string_view text) { return Delimited("N'", text, '\''); }

}  // namespace mssql_cdc::sim
