#include "lake/delta_drain.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "lake/delta_json.h"

namespace mssql_cdc::lake {
namespace {

constexpr std::size_t kThreadCountMax = 16;

// How the drain of one source ended.
struct Drained {
  std::optional<Error> error;
  bool is_cancelled = false;
};

Drained Drain(const MssqlCdcDeltaAppend* append,
              std::unique_ptr<columns::BatchReader> source, std::size_t index,
              const std::string& location) {
  std::optional<Error> own;
  ArrowArrayStream stream{};
  columns::ExportStream(std::move(source), &stream, &own);
  Text failure;
  const std::int32_t code = mssql_cdc_delta_append_drain(
      append, &stream, static_cast<std::uint32_t>(index), failure.out());
  if (stream.release != nullptr) stream.release(&stream);
  if (code == 0) return {};
  if (own) return {std::move(own), false};
  return {DeltaError(code, failure.view(), location),
          code == MSSQL_CDC_DELTA_CANCELLED};
}

}  // namespace

Status DrainAll(const MssqlCdcDeltaAppend* append,
                std::vector<std::unique_ptr<columns::BatchReader>> sources,
                const std::string& location) {
  std::vector<Drained> results(sources.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < sources.size(); i = next++) {
      results[i] = Drain(append, std::move(sources[i]), i, location);
    }
  };
  std::vector<std::thread> threads;
  try {
    while (threads.size() + 1 < std::min(sources.size(), kThreadCountMax)) {
      threads.emplace_back(work);
    }
  } catch (const std::system_error&) {
    // No more threads to be had: those that run, and this one, share the work.
  }
  work();
  for (std::thread& thread : threads) thread.join();
  const Drained* cancelled = nullptr;
  for (const Drained& result : results) {
    if (result.error && !result.is_cancelled) return *result.error;
    if (result.error) cancelled = &result;
  }
  if (cancelled != nullptr) return *cancelled->error;
  return Unit{};
}

}  // namespace mssql_cdc::lake
