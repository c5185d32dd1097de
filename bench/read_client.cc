// Our client as the read bench measures it: one session, one query, every batch dropped
// as soon as it is there. Arguments: connection string, query, optionally --checksum,
// which computes what bench/checksum.py defines (that run is not measured). Prints
// `rows N` and then `checksum X`.

#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "net/tcp.h"
#include "sqlserver/session.h"

namespace mssql_cdc::bench {
namespace {

constexpr std::uint64_t kNullValue = 0x9E3779B97F4A7C15ull;

template <typename T>
std::uint64_t At(const columns::Buffer& buffer, std::size_t index) {
  T value;
  std::memcpy(&value, buffer.data() + index * sizeof(T), sizeof(T));
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

bool Bit(const columns::Buffer& buffer, std::size_t index) {
  return (buffer.data()[index / 8] >> (index % 8) & 1) != 0;
}

std::uint64_t TextValue(const columns::Column& column, std::size_t row) {
  const std::uint64_t begin = At<std::int32_t>(column.offsets, row);
  const std::uint64_t end = At<std::int32_t>(column.offsets, row + 1);
  std::uint64_t sum = 0;
  for (std::uint64_t at = begin; at < end; ++at) {
    sum += column.values.data()[at] * (at - begin + 1);
  }
  return sum * 31 + (end - begin) + 1;
}

std::uint64_t CellValue(const columns::Column& column, std::size_t row) {
  if (column.null_count > 0 && !Bit(column.validity, row)) return kNullValue;
  switch (column.type.kind) {
    case columns::Kind::kBool:
      return Bit(column.values, row) ? 1 : 0;
    case columns::Kind::kInt16:
      return At<std::int16_t>(column.values, row);
    case columns::Kind::kInt32:
    case columns::Kind::kDate32:
      return At<std::int32_t>(column.values, row);
    case columns::Kind::kInt64:
    case columns::Kind::kTimestampNtz:
    case columns::Kind::kTimestampUtc:
      return At<std::int64_t>(column.values, row);
    case columns::Kind::kDecimal128:
      return At<std::int64_t>(column.values, 2 * row);
    case columns::Kind::kUtf8:
      return TextValue(column, row);
    case columns::Kind::kFloat32:
    case columns::Kind::kFloat64:
    case columns::Kind::kBinary:
      break;  // In none of the shapes.
  }
  return 0;
}

class Checksum {
 public:
  void Add(const columns::RecordBatch& batch) {
    for (std::size_t i = 0; i < batch.columns.size(); ++i) {
      const columns::Column& column = *batch.columns[i];
      for (std::int64_t row = 0; row < batch.row_count; ++row) {
        total_ += (i + 1) * static_cast<std::uint64_t>(row_count_ + row + 1) *
                  CellValue(column, static_cast<std::size_t>(row));
      }
    }
    row_count_ += batch.row_count;
  }
  std::uint64_t total() const { return total_; }

 private:
  std::uint64_t total_ = 0;
  std::int64_t row_count_ = 0;
};

Status Read(const char* connection, const char* query, bool with_checksum) {
  SystemClock clock;
  net::TcpDialer dialer(clock);
  TRY_ASSIGN(const sqlserver::ConnectOptions options,
             sqlserver::ParseConnectionString(connection));
  TRY_ASSIGN(const auto session, sqlserver::Session::Open(options, dialer, clock));
  TRY_ASSIGN(const auto reply, session->Execute({query, {}}, {}));
  TRY(reply->NextResult());
  Checksum checksum;
  std::int64_t row_count = 0;
  while (true) {
    TRY_ASSIGN(const auto batch, reply->NextBatch());
    if (!batch) break;
    row_count += batch->row_count;
    if (with_checksum) checksum.Add(*batch);
  }
  TRY(reply->Finish());
  std::printf("rows %lld\n", static_cast<long long>(row_count));
  if (with_checksum) {
    std::printf("checksum %016llx\n",
                static_cast<unsigned long long>(checksum.total()));
  }
  return Unit{};
}

}  // namespace
}  // namespace mssql_cdc::bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "read_client CONNECTION QUERY [--checksum]\n");
    return 2;
  }
  const bool with_checksum = argc > 3 && std::string_view(argv[3]) == "--checksum";
  const auto done = mssql_cdc::bench::Read(argv[1], argv[2], with_checksum);
  if (done.ok()) return 0;
  std::fprintf(stderr, "%s\n", done.error().Text().c_str());
  return 1;
}
