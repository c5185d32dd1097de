// What a server's error numbers mean for this product.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/secret.h"
#include "tds/tokens.h"

namespace mssql_cdc::sqlserver {

enum class Phase : std::uint8_t { kLogin, kRequest };

// Takes credentials out of text that a server wrote: it was told them, and may repeat
// them. The user is taken out where it stands in quotes, as servers name it.
class Redactor {
 public:
  Redactor() = default;
  Redactor(const Secret& password, const Secret& token, std::string user)
      : secrets_{password, token}, user_(std::move(user)) {}

  std::string Clean(std::string text) const;

 private:
  std::vector<Secret> secrets_;
  std::string user_;
};

// The catalogue row for a server's error number. A number that is not in the table is
// LoginFailed during login and ServerError afterwards.
ErrorId ErrorIdOf(std::int32_t number, Phase phase);

// The Error for an ERROR token, with facts number, class, state, message and, where the
// server names one, procedure and line.
Error ErrorFrom(const tds::ServerMessage& message, Phase phase,
                const Redactor& redactor);

}  // namespace mssql_cdc::sqlserver
