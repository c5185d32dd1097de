#include <vector>

#include "base/text.h"
#include "net/tcp.h"

namespace mssql_cdc::net {

std::optional<std::uint16_t> PortInBrowserReply(std::span<const std::uint8_t> reply,
                                                std::string_view instance) {
  // SVR_RESP: 0x05, u16 length, then text. The length is what a server claims; what
  // arrived is what counts.
  constexpr std::size_t kHeaderSizeBytes = 3;
  if (reply.size() <= kHeaderSizeBytes || reply[0] != 0x05) return std::nullopt;
  std::string_view text(reinterpret_cast<const char*>(reply.data()) + kHeaderSizeBytes,
                        reply.size() - kHeaderSizeBytes);
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t end = text.find(';');
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  bool this_instance = false;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    // An empty name ends one instance's list.
    if (fields[i].empty()) break;
    if (EqualsIgnoringAsciiCase(fields[i], "InstanceName")) {
      this_instance = EqualsIgnoringAsciiCase(fields[i + 1], instance);
    }
    if (this_instance && EqualsIgnoringAsciiCase(fields[i], "tcp")) {
      const auto port = ParseInt64(fields[i + 1]);
      if (!port || *port < 1 || *port > 65535) return std::nullopt;
      return static_cast<std::uint16_t>(*port);
    }
  }
  return std::nullopt;
}

}  // namespace mssql_cdc::net
