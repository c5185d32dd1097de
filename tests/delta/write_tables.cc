// Writes Delta tables for check_lake.py, which reads them with other people's readers.
//
//   write_tables tables DIR     new tables, one per thing to look at
//   write_tables existing DIR   continues the tables of the existing package in DIR,
//   and
//                               prints what it saw there before
//   write_tables rows DIR N     appends N rows of ten columns, prints the time
//   write_tables commits DIR N  N commits of ten rows, prints the times

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "lake/delta_lake.h"
#include "lake/rows_for_test.h"

namespace mssql_cdc::lake {
namespace {

using columns::BatchReader;
using columns::ColumnBuilder;
using columns::Kind;
using columns::RecordBatch;
using columns::Schema;

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().Text().c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

AppendResult Append(Lake& lake, const std::string& location,
                    std::unique_ptr<BatchReader> source, AppendSpec spec) {
  std::vector<std::unique_ptr<BatchReader>> sources;
  sources.push_back(std::move(source));
  return Must(lake.Append(location, std::move(sources), spec));
}

void WriteKinds(Lake& lake, const std::string& location) {
  Schema schema = EveryKindSchema();
  for (columns::Field& field : schema.fields) {
    field.comment = "comment of " + field.name + " \"é\"";
  }
  Must(lake.Create(location,
                   {schema, "every kind", {{"mssql_cdc.schema_version", "2"}}}));
  Append(lake, location, EveryKindRows(),
         {Txn{"kinds-v1", 3}, [] { return std::optional<std::string>("{\"rows\":4}"); },
          true});
  Must(lake.Alter(location, {{"late", {Kind::kInt32}, true, "added later"}},
                  {{"mssql_cdc.schema_version", "3"}, {"mine", "yes"}}));
  const Schema late{{{"LATE", {Kind::kInt32}}, {"later", {Kind::kTimestampNtz}}}};
  for (std::int64_t version = 4; version <= 13; ++version) {
    const auto source = [&](std::int64_t, std::size_t column, ColumnBuilder& out) {
      if (column == 0) {
        out.AppendInt32(static_cast<std::int32_t>(version));
      } else {
        out.AppendInt64(1'000'001);
      }
    };
    Append(lake, location, ReadRows(late, 1, source),
           {Txn{"kinds-v1", version}, nullptr, true});
  }
}

void WriteMapped(Lake& lake, const std::string& location, bool has_ntz) {
  Schema schema{{{"order id", {Kind::kInt64}, true, "mapped"},
                 {"a=b;{c},(d)", {Kind::kUtf8}},
                 {"plain", {Kind::kDecimal128, 9, 2}}}};
  if (has_ntz) schema.fields.push_back({"at\ttime", {Kind::kTimestampNtz}});
  Must(lake.Create(location, {schema, "", {}}));
  const auto make = [](std::int64_t row, std::size_t column, ColumnBuilder& out) {
    switch (column) {
      case 0:
      case 3:
        return out.AppendInt64(row);
      case 1:
        return out.AppendBytes(row == 0 ? "zero" : "one");
      default:
        return out.AppendDecimal(__int128{100} * row);
    }
  };
  Append(lake, location, ReadRows(schema, 2, make), {Txn{"mapped", 0}, nullptr, true});
  schema.fields.push_back({"new (one)", {Kind::kInt64}});
  const auto wider = [&](std::int64_t row, std::size_t column, ColumnBuilder& out) {
    if (column + 1 == schema.fields.size()) return out.AppendInt64(77);
    return make(row, column, out);
  };
  Append(lake, location, ReadRows(schema, 1, wider), {Txn{"mapped", 1}, nullptr, true});
}

void WriteWide(Lake& lake, const std::string& location) {
  Schema schema;
  for (int i = 0; i < 40; ++i) {
    schema.fields.push_back({"c" + std::to_string(i), {Kind::kInt32}});
  }
  Must(lake.Create(location, {schema, "", {}}));
  std::vector<std::unique_ptr<BatchReader>> sources;
  for (int source = 0; source < 3; ++source) {
    sources.push_back(ReadRows(schema, 2, [=](std::int64_t row, auto, auto& out) {
      out.AppendInt32(static_cast<std::int32_t>(source * 10 + row));
    }));
  }
  Must(lake.Append(location, std::move(sources), {}));
}

// Bytes that compress badly; check_lake.py makes the same.
std::string Noise(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(i * i * 2'654'435'761u >> 40);
  }
  return bytes;
}

std::string Repeated(std::string_view unit, std::size_t count) {
  std::string text;
  text.reserve(unit.size() * count);
  for (std::size_t i = 0; i < count; ++i) text += unit;
  return text;
}

// Small rows, then values of up to 34 MB among small ones and NULLs, then small rows.
void WriteLarge(Lake& lake, const std::string& location) {
  const Schema schema{{{"id", {Kind::kInt32}, false},
                       {"t", {Kind::kUtf8}},
                       {"b", {Kind::kBinary}},
                       {"must", {Kind::kUtf8}, false}}};
  Must(lake.Create(location, {schema, "", {}}));
  const auto make = [](std::int64_t row, std::size_t column, ColumnBuilder& out) {
    if (column == 0) return out.AppendInt32(static_cast<std::int32_t>(row));
    switch (row * 10 + static_cast<std::int64_t>(column)) {
      case 1011:
        return out.AppendBytes(Repeated("zé€😀", 3'400'000));
      case 1012:
      case 1021:
        return out.AppendNull();
      case 1022:
        return out.AppendBytes(Noise(3'000'000));
      case 1031:
        return out.AppendBytes(Repeated("\u00e9", 1'000'000));
      case 1032:
        return out.AppendBytes("");
      case 1043:
        return out.AppendBytes(Repeated("must", 500'000));
      case 1051:
        return out.AppendBytes(Repeated("y", 300'000));
      default:
        return out.AppendBytes("small " + std::to_string(row));
    }
  };
  const auto from = [&](std::int64_t first) {
    return [=](std::int64_t row, std::size_t column, ColumnBuilder& out) {
      return make(first + row, column, out);
    };
  };
  std::vector<RecordBatch> batches;
  for (const auto& [first, count] : {std::pair{0, 101}, {101, 60}, {161, 39}}) {
    const auto rows = ReadRows(schema, count, from(first));
    batches.push_back(*Must(rows->Next()));
  }
  const columns::SchemaPtr shared = batches[0].schema;
  Append(lake, location, columns::ReadBatches(shared, std::move(batches)), {});
}

void WriteTables(const std::string& folder) {
  DeltaLake lake;
  WriteKinds(lake, folder + "/kinds");
  WriteMapped(lake, folder + "/mapped", false);
  WriteMapped(lake, folder + "/mapped_ntz", true);
  WriteWide(lake, folder + "/wide");
  WriteLarge(lake, folder + "/large");
  Must(lake.Create(folder + "/plans", {Schema{{{"snapshot", {Kind::kUtf8}},
                                               {"event", {Kind::kUtf8}},
                                               {"detail", {Kind::kUtf8}}}},
                                       "",
                                       {{"mssql_cdc.schema_version", "1"}}}));
}

// What a table looks like through the lake: version, rows, columns, newest commit.
void Describe(Lake& lake, const std::string& folder, const std::string& name) {
  const std::string location = folder + '/' + name;
  const auto state = Must(lake.State(location));
  if (!state) std::exit(1);
  const auto history = Must(lake.History(location, 0));
  std::printf("%s version=%lld rows=%lld columns=%zu read=%zu commits=%zu\n",
              name.c_str(), static_cast<long long>(state->version),
              static_cast<long long>(Must(lake.RowCount(location))),
              state->schema.fields.size(), RowsOf(lake, location, {}).size(),
              history.size());
}

void ContinueExisting(const std::string& folder) {
  DeltaLake lake;
  for (const char* name : {"bronze_orders", "bronze_lines", "facts", "control",
                           "report", "silver_orders", "bronze_orders_snapshot_plans"}) {
    Describe(lake, folder, name);
  }
  const std::string bronze = folder + "/bronze_orders";
  const auto last = Must(lake.LastTxn(bronze, "orders-v1.g1"));
  std::printf("last orders-v1.g1=%lld\n", static_cast<long long>(last.value_or(-1)));
  const Schema rows{{{"_capture_instance", {Kind::kUtf8}},
                     {"_operation", {Kind::kInt32}},
                     {"_commit_ts", {Kind::kTimestampNtz}},
                     {"ORDER_ID", {Kind::kInt32}},
                     {"_batch_id", {Kind::kInt32}}}};
  const auto make = [](std::int64_t, std::size_t column, ColumnBuilder& out) {
    if (column == 0) return out.AppendBytes("dbo_orders_v2");
    if (column == 2) return out.AppendInt64(*ParseIsoUs("2026-11-20T12:00:00.000"));
    out.AppendInt32(column == 3 ? 4711 : 2);
  };
  for (const std::int64_t version : {last.value_or(0), last.value_or(0) + 1}) {
    const AppendResult result =
        Append(lake, bronze, ReadRows(rows, 1, make),
               {Txn{"orders-v1.g1", version},
                [] { return std::optional<std::string>("{\"rows\":1}"); }, true});
    std::printf("append outcome=%d version=%lld\n", static_cast<int>(result.outcome),
                static_cast<long long>(result.version));
  }
  Describe(lake, folder, "bronze_orders");
}

const Schema kMeasured{{{"id", {Kind::kInt64}},
                        {"part", {Kind::kInt32}},
                        {"ratio", {Kind::kFloat64}},
                        {"name", {Kind::kUtf8}},
                        {"note", {Kind::kUtf8}},
                        {"flag", {Kind::kBool}},
                        {"amount", {Kind::kDecimal128, 18, 4}},
                        {"at", {Kind::kTimestampNtz}},
                        {"seen", {Kind::kTimestampUtc}},
                        {"day", {Kind::kDate32}}}};

void MakeMeasured(std::int64_t row, std::size_t column, ColumnBuilder& out) {
  const std::int64_t noise = row * 2654435761 % 1'000'003;
  switch (column) {
    case 0:
      return out.AppendInt64(row);
    case 1:
      return out.AppendInt32(static_cast<std::int32_t>(noise % 100));
    case 2:
      return out.AppendFloat64(static_cast<double>(noise) / 7);
    case 3:
      return out.AppendBytes("customer " + std::to_string(noise));
    case 4:
      return out.AppendBytes(row % 3 == 0 ? "a note" : "another note of some length");
    case 5:
      return out.AppendBool(row % 2 == 0);
    case 6:
      return out.AppendDecimal(noise * 10'000);
    case 7:
    case 8:
      return out.AppendInt64(1'795'976'616'846'123 + row * 1000);
    default:
      return out.AppendInt32(static_cast<std::int32_t>(20'000 + row % 300));
  }
}

// Makes its batches while it is read, so that memory shows what the lake holds.
class MeasuredReader final : public BatchReader {
 public:
  explicit MeasuredReader(std::int64_t row_count) : left_(row_count) {}

  columns::SchemaPtr schema() const override { return schema_; }
  Result<std::optional<RecordBatch>> Next() override {
    if (left_ == 0) return std::optional<RecordBatch>();
    const std::int64_t count = std::min<std::int64_t>(left_, 10'000);
    left_ -= count;
    const std::int64_t first = next_;
    next_ += count;
    return ReadRows(kMeasured, count,
                    [=](std::int64_t row, std::size_t column, ColumnBuilder& out) {
                      MakeMeasured(first + row, column, out);
                    })
        ->Next();
  }

 private:
  columns::SchemaPtr schema_ = std::make_shared<const Schema>(kMeasured);
  std::int64_t left_;
  std::int64_t next_ = 0;
};

class Stopwatch {
 public:
  double Milliseconds() {
    return static_cast<double>(clock_.MonotonicNs() - start_ns_) / 1e6;
  }

 private:
  SystemClock clock_;
  std::int64_t start_ns_ = clock_.MonotonicNs();
};

void MeasureRows(const std::string& location, std::int64_t row_count) {
  Stopwatch alone;
  MeasuredReader reader(row_count);
  while (Must(reader.Next())) {
  }
  std::printf("generator alone %.0f ms\n", alone.Milliseconds());
  DeltaLake lake;
  Must(lake.Create(location, {kMeasured, "", {}}));
  Stopwatch watch;
  const AppendResult result =
      Append(lake, location, std::make_unique<MeasuredReader>(row_count), {});
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%lld rows, %lld bytes in %.0f ms, peak %ld MiB\n",
              static_cast<long long>(result.row_count),
              static_cast<long long>(result.size_bytes), watch.Milliseconds(),
              usage.ru_maxrss / 1024);
}

void MeasureCommits(const std::string& location, std::int64_t count) {
  DeltaLake lake;
  Must(lake.Create(location, {kMeasured, "", {}}));
  std::vector<double> times;
  for (std::int64_t i = 0; i < count; ++i) {
    Stopwatch watch;
    Append(lake, location, std::make_unique<MeasuredReader>(10),
           {Txn{"app", i}, [] { return std::optional<std::string>("{\"rows\":10}"); },
            true});
    times.push_back(watch.Milliseconds());
  }
  std::ranges::sort(times);
  const auto at = [&](std::size_t percent) {
    return times[(times.size() - 1) * percent / 100];
  };
  std::printf("%lld commits: median %.2f ms, p90 %.2f ms, p99 %.2f ms, max %.2f ms\n",
              static_cast<long long>(count), at(50), at(90), at(99), times.back());
}

int Run(const std::vector<std::string>& words) {
  const std::string mode = words.empty() ? "" : words[0];
  if (mode == "tables" && words.size() == 2) {
    WriteTables(words[1]);
  } else if (mode == "existing" && words.size() == 2) {
    ContinueExisting(words[1]);
  } else if (mode == "rows" && words.size() == 3) {
    MeasureRows(words[1], ParseInt64(words[2]).value_or(0));
  } else if (mode == "commits" && words.size() == 3) {
    MeasureCommits(words[1], ParseInt64(words[2]).value_or(0));
  } else {
    std::fprintf(stderr, "write_tables {tables|existing} DIR | {rows|commits} DIR N\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace mssql_cdc::lake

int main(int argc, char** argv) {
  return mssql_cdc::lake::Run({argv + 1, argv + argc});
}
