// What decoding alone costs: the shapes of the read bench through the ReplyDecoder, one
// payload of a packet at a time, no socket and no session. Arguments: optionally a
// shape's name (all), the packet size in bytes (32767) and millions of cells per
// measurement (60). Prints a line per shape: millions of cells per CPU second, the best
// of five.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "bench/shapes.h"
#include "tds/reply.h"

namespace mssql_cdc::bench {
namespace {

constexpr std::size_t kDistinctRowCount = 20'000;
constexpr std::size_t kPacketHeaderSizeBytes = 8;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Feeds `bytes` in payloads, each behind what was not consumed of the one before, as a
// session does; batches are dropped as they come. Gives the rows seen.
std::int64_t Feed(tds::ReplyDecoder& decoder, std::span<const std::uint8_t> bytes,
                  std::size_t payload_size) {
  std::int64_t row_count = 0;
  std::size_t waiting_size = 0;
  do {
    std::span<const std::uint8_t> payload =
        bytes.first(std::min(waiting_size + payload_size, bytes.size()));
    bytes = bytes.subspan(payload.size());
    const bool more_follows = !bytes.empty();
    bool needs_more = false;
    while (!needs_more) {
      auto progress = decoder.Consume(payload, more_follows);
      if (!progress.ok()) {
        std::fprintf(stderr, "%s\n", progress.error().Text().c_str());
        std::exit(1);
      }
      payload = payload.subspan(progress.value().consumed);
      needs_more = std::holds_alternative<tds::NeedMore>(progress.value().event);
      if (const auto* ready = std::get_if<tds::BatchReady>(&progress.value().event)) {
        row_count += ready->batch.row_count;
      }
    }
    waiting_size = payload.size();
    bytes = {payload.data(), payload.size() + bytes.size()};
  } while (bytes.size() != waiting_size);
  return row_count;
}

void Measure(const Shape& shape, std::size_t payload_size, double cells_wanted) {
  const double cells_per_pass =
      static_cast<double>(shape.column_count * kDistinctRowCount);
  const int pass_count = std::max(1, static_cast<int>(cells_wanted / cells_per_pass));
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    tds::ReplyDecoder decoder{tds::ReplyLimits{}};
    Feed(decoder, shape.metadata, shape.metadata.size());
    const double begin = CpuSeconds();
    std::int64_t row_count = 0;
    for (int pass = 0; pass < pass_count; ++pass) {
      row_count += Feed(decoder, shape.rows, payload_size);
    }
    const double seconds = CpuSeconds() - begin;
    const double cells =
        static_cast<double>(row_count) * static_cast<double>(shape.column_count);
    best = std::max(best, cells / seconds / 1e6);
  }
  std::string name;
  for (const char16_t unit : shape.name) name += static_cast<char>(unit);
  const double bytes_per_cell = static_cast<double>(shape.rows.size()) / cells_per_pass;
  std::printf("%-4s %7.1f M cells per CPU second, %5.2f ns per cell, %6.0f MB/s\n",
              name.c_str(), best, 1e3 / best, best * bytes_per_cell);
}

}  // namespace
}  // namespace mssql_cdc::bench

int main(int argc, char** argv) {
  using namespace mssql_cdc::bench;
  const std::string_view wanted = argc > 1 ? argv[1] : "all";
  const std::size_t packet_size =
      argc > 2 ? static_cast<std::size_t>(std::atol(argv[2])) : 32'767;
  const double cells = (argc > 3 ? std::atof(argv[3]) : 60) * 1e6;
  for (const Shape& shape : MakeShapes(kDistinctRowCount)) {
    const std::u16string name(wanted.begin(), wanted.end());
    if (wanted != "all" && shape.name != name) continue;
    Measure(shape, packet_size - kPacketHeaderSizeBytes, cells);
  }
  return 0;
}
