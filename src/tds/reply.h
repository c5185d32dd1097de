// Decodes a server's reply: tokens to values, rows to record batches.
//
// The one idea: rows are taken from the bytes as they come. A row may be split at any
// byte, inside a value or a length too, and nothing of it is buffered but the piece of
// a short value that straddles two calls; long values stream into their column. Tokens
// other than rows are small and are decoded whole or not at all.
//
// How to drive it: hand Consume() the payload of each packet, in place (headers cut off
// by giving one span per packet, no copy is needed). Drop `consumed` bytes, act on the
// event, call again with the rest. On NeedMore keep the rest, if there is any (it is
// the front of one token, and small), and put the next payload behind it.
//
// Not its job: packets, what a token means for the session, when a reply ends. When the
// message ends, at_boundary() must hold and nothing may be left unconsumed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "base/error.h"
#include "columns/batch.h"
#include "tds/reply_limits.h"
#include "tds/tokens.h"

namespace mssql_cdc::tds {

// A COLMETADATA token of kTdsColumnCountMax columns with the longest names fits.
inline constexpr std::size_t kReplyTailSizeBytesMax = 4u << 20;

// Everything that can be used was used; more bytes must come.
struct NeedMore {};
// A result set with columns begins; its rows follow.
struct ResultBegins {
  columns::SchemaPtr schema;
};
// Rows of the current result set, at least one. The last rows of a result set come
// before the DONE, DONEPROC or DONEINPROC token that ends it.
struct BatchReady {
  columns::RecordBatch batch;
};

using ReplyEvent = std::variant<NeedMore, ResultBegins, BatchReady, Token>;

struct ReplyProgress {
  std::size_t consumed = 0;  // From the front of the payload.
  ReplyEvent event;
};

class ReplyDecoder {
 public:
  explicit ReplyDecoder(ReplyLimits limits);
  ~ReplyDecoder();
  ReplyDecoder(ReplyDecoder&&) noexcept;
  ReplyDecoder& operator=(ReplyDecoder&&) noexcept;

  // Decodes from the front of `payload` up to the next event. The bytes are only
  // borrowed for the call. `more_follows`: the message does not end with them, so that
  // a row they cut may be left in the rest instead of being taken in pieces. Errors:
  // TdsMalformed (facts token, column, offset), TdsRefusedToken, TdsLimitExceeded,
  // TdsUnsupportedType and TextUndecodable (fact column); after an error the decoder
  // must not be used again.
  Result<ReplyProgress> Consume(std::span<const std::uint8_t> payload,
                                bool more_follows = false);

  // No row is half received and no received row is still to be handed on.
  bool at_boundary() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mssql_cdc::tds
