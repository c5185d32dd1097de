#include "runtime/run_context.h"

#include <algorithm>
#include <utility>

#include "reader/cast_reader.h"

namespace mssql_cdc::runtime {

sqlserver::BatchLimits RunContext::Limits(std::int64_t reader_count) const {
  // All readers together hold this much in batches that are being filled or written.
  constexpr std::size_t kAllReadersSizeBytes = 32u << 20;
  sqlserver::BatchLimits limits;
  limits.row_count_max = config.arrow_batch_size;
  limits.size_bytes_max =
      std::min(limits.size_bytes_max,
               kAllReadersSizeBytes / static_cast<std::size_t>(reader_count));
  return limits;
}

std::unique_ptr<columns::BatchReader> RunContext::AsWritten(
    std::unique_ptr<columns::BatchReader> read) const {
  if (source.declared.empty()) return read;
  return std::make_unique<reader::CastReader>(std::move(read), source.instance.name,
                                              source.declared);
}

reader::LendSession LendFrom(SessionPool& pool) {
  return [&pool]() -> Result<reader::LentSession> {
    TRY_ASSIGN(SessionPool::Lease lease, pool.Acquire());
    auto kept = std::make_shared<SessionPool::Lease>(std::move(lease));
    sqlserver::Session* session = &**kept;
    return reader::LentSession(session,
                               [kept](sqlserver::Session*) mutable { kept.reset(); });
  };
}

}  // namespace mssql_cdc::runtime
