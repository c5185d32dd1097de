// The reply stream under any bytes and any cuts.
//
// The first eight bytes of an input choose the cuts and the batch limits, the rest is
// the stream. It is decoded twice, in few large and in many small payloads, each
// payload in memory of its own size, so that a sanitizer sees every read past its end.
// What must hold: every call makes progress or asks for more; what is kept back stays
// within its limit; batches stay within theirs and are well formed; both ways give the
// same rows.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tds/reply.h"

namespace mssql_cdc::tds {
namespace {

struct Outcome {
  std::vector<std::uint64_t> row_digests;
  bool failed = false;
  bool at_boundary = false;
};

std::uint64_t Mix(std::uint64_t digest, std::string_view bytes) {
  for (const char byte : bytes) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  }
  return digest * 31 + bytes.size();
}

std::string_view ViewOf(const columns::Buffer& buffer, std::size_t offset,
                        std::size_t size) {
  CHECK(offset + size <= buffer.size_bytes());
  return {reinterpret_cast<const char*>(buffer.data()) + offset, size};
}

std::uint64_t DigestOf(const columns::Column& column, std::size_t row) {
  if (column.null_count != 0) {
    const auto byte =
        static_cast<unsigned char>(ViewOf(column.validity, row / 8, 1)[0]);
    if ((byte >> (row % 8) & 1) == 0) return 1;
  }
  const std::size_t width = columns::ValueWidthBytes(column.type.kind);
  if (width != 0) return Mix(2, ViewOf(column.values, row * width, width));
  if (column.type.kind == columns::Kind::kBool) {
    const auto byte = static_cast<unsigned char>(ViewOf(column.values, row / 8, 1)[0]);
    return 3 + (byte >> (row % 8) & 1u);
  }
  std::int32_t ends[2];
  std::memcpy(ends, ViewOf(column.offsets, row * 4, 8).data(), 8);
  CHECK(0 <= ends[0] && ends[0] <= ends[1]);
  return Mix(5, ViewOf(column.values, static_cast<std::size_t>(ends[0]),
                       static_cast<std::size_t>(ends[1] - ends[0])));
}

void Note(const columns::RecordBatch& batch, const ReplyLimits& limits,
          Outcome& outcome) {
  CHECK(batch.row_count > 0 && batch.row_count <= limits.row_count_max);
  CHECK(batch.columns.size() == batch.schema->fields.size());
  for (std::int64_t row = 0; row < batch.row_count; ++row) {
    std::uint64_t digest = 7;
    for (const auto& column : batch.columns) {
      CHECK(column->row_count == batch.row_count);
      digest =
          digest * 1099511628211u + DigestOf(*column, static_cast<std::size_t>(row));
    }
    outcome.row_digests.push_back(digest);
  }
}

// Memory follows what came: a byte of text becomes at most three, and a NULL of a
// bitmap as much as its column is wide.
void CheckSize(const columns::RecordBatch& batch, const ReplyLimits& limits,
               std::size_t stream_size) {
  const std::size_t row_width_max = 17 * batch.columns.size() + 64;
  CHECK(batch.SizeBytes() <=
        limits.size_bytes_max + 2 * row_width_max + 3 * stream_size + 4096);
}

Outcome Decode(std::span<const std::uint8_t> stream, const ReplyLimits& limits,
               std::uint32_t cut_seed, std::size_t piece_max) {
  Outcome outcome;
  ReplyDecoder decoder(limits);
  std::vector<std::uint8_t> kept;
  std::size_t at = 0;
  while (at < stream.size() && !outcome.failed) {
    cut_seed = cut_seed * 1664525u + 1013904223u;
    const std::size_t piece =
        std::min<std::size_t>(1 + (cut_seed >> 8) % piece_max, stream.size() - at);
    std::vector<std::uint8_t> joined = kept;
    joined.insert(joined.end(), stream.begin() + static_cast<long>(at),
                  stream.begin() + static_cast<long>(at + piece));
    at += piece;
    const std::vector<std::uint8_t> exact(joined);
    std::span<const std::uint8_t> payload(exact);
    int idle_count = 0;
    while (true) {
      auto progress = decoder.Consume(payload);
      if (!progress.ok()) {
        outcome.failed = true;
        break;
      }
      CHECK(progress.value().consumed <= payload.size());
      idle_count = progress.value().consumed == 0 ? idle_count + 1 : 0;
      payload = payload.subspan(progress.value().consumed);
      if (std::holds_alternative<NeedMore>(progress.value().event)) break;
      CHECK(idle_count <= 1);
      if (const auto* ready = std::get_if<BatchReady>(&progress.value().event)) {
        Note(ready->batch, limits, outcome);
        CheckSize(ready->batch, limits, stream.size());
      }
    }
    CHECK(payload.size() <= kReplyTailSizeBytesMax);
    kept.assign(payload.begin(), payload.end());
  }
  outcome.at_boundary = decoder.at_boundary() && kept.empty();
  return outcome;
}

}  // namespace
}  // namespace mssql_cdc::tds

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mssql_cdc::tds;
  if (size < 8) return 0;
  std::uint32_t cut_seed;
  std::memcpy(&cut_seed, data, sizeof(cut_seed));
  ReplyLimits limits;
  limits.row_count_max = 1 + data[4] % 32;
  limits.size_bytes_max = std::size_t{1} << (data[5] % 16);
  const std::size_t piece_max = 1 + data[6];
  const std::span<const std::uint8_t> stream(data + 8, size - 8);

  const Outcome whole = Decode(stream, limits, 0, stream.size() + 1);
  const Outcome pieces = Decode(stream, limits, cut_seed, piece_max);
  const std::size_t common =
      std::min(whole.row_digests.size(), pieces.row_digests.size());
  for (std::size_t i = 0; i < common; ++i) {
    CHECK(whole.row_digests[i] == pieces.row_digests[i]);
  }
  // A fault that one way sees and the other does not must lie behind its last byte.
  if (whole.failed && !pieces.failed) CHECK(!pieces.at_boundary);
  if (pieces.failed && !whole.failed) CHECK(!whole.at_boundary);
  return 0;
}
