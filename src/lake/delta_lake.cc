#include "lake/delta_lake.h"

#include <atomic>
#include <system_error>
#include <thread>
#include <utility>

#include "base/text.h"
#include "lake/delta_abi.h"
#include "lake/delta_json.h"
#include "lake/fields.h"

namespace mssql_cdc::lake {
namespace {

constexpr std::size_t kThreadCountMax = 16;

// A text that rust/delta handed out.
class Text {
 public:
  Text() = default;
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() { mssql_cdc_delta_free(text_); }

  char** out() { return &text_; }
  bool present() const { return text_ != nullptr; }
  std::string_view view() const { return text_ == nullptr ? "" : text_; }

 private:
  char* text_ = nullptr;
};

struct EndAppend {
  void operator()(MssqlCdcDeltaAppend* append) const {
    mssql_cdc_delta_append_end(append);
  }
};
using AppendPtr = std::unique_ptr<MssqlCdcDeltaAppend, EndAppend>;

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

// Drains all sources, on several threads when there are several. The error is that of
// the first source that failed by itself.
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

}  // namespace

// The handle of one location.
class DeltaLake::Table {
 public:
  explicit Table(MssqlCdcDeltaTable* table) : table_(table) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() { mssql_cdc_delta_close(table_); }

  MssqlCdcDeltaTable* get() const { return table_; }

 private:
  MssqlCdcDeltaTable* table_;
};

DeltaLake::DeltaLake() = default;
DeltaLake::~DeltaLake() = default;

Result<DeltaLake::Table*> DeltaLake::Open(const std::string& location) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Table>& table = tables_[location];
  if (table == nullptr) {
    MssqlCdcDeltaTable* opened = nullptr;
    Text failure;
    const std::int32_t code =
        mssql_cdc_delta_open(location.c_str(), &opened, failure.out());
    if (code != 0) return DeltaError(code, failure.view(), location);
    table = std::make_unique<Table>(opened);
  }
  return table.get();
}

Result<std::optional<TableState>> DeltaLake::State(const std::string& location) {
  TRY_ASSIGN(Table * table, Open(location));
  Text text;
  Text failure;
  const std::int32_t code =
      mssql_cdc_delta_state(table->get(), text.out(), failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  if (!text.present()) return std::optional<TableState>();
  TRY_ASSIGN(TableState state, ParseState(text.view()));
  return std::optional<TableState>(std::move(state));
}

Result<std::optional<std::int64_t>> DeltaLake::LastTxn(const std::string& location,
                                                       const std::string& app_id) {
  TRY_ASSIGN(Table * table, Open(location));
  bool has_txn = false;
  std::int64_t version = 0;
  Text failure;
  const std::int32_t code = mssql_cdc_delta_last_txn(table->get(), app_id.c_str(),
                                                     &has_txn, &version, failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return has_txn ? std::optional<std::int64_t>(version) : std::nullopt;
}

Status DeltaLake::Create(const std::string& location, const CreateSpec& spec) {
  TRY_ASSIGN(Table * table, Open(location));
  Text failure;
  const std::int32_t code =
      mssql_cdc_delta_create(table->get(), CreateJson(spec).c_str(), failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return Unit{};
}

Status DeltaLake::Alter(const std::string& location,
                        const std::vector<columns::Field>& add,
                        const std::map<std::string, std::string>& properties) {
  TRY_ASSIGN(Table * table, Open(location));
  Text failure;
  const std::int32_t code = mssql_cdc_delta_alter(
      table->get(), AlterJson(add, properties).c_str(), failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return Unit{};
}

Result<AppendResult> DeltaLake::Append(
    const std::string& location,
    std::vector<std::unique_ptr<columns::BatchReader>> sources,
    const AppendSpec& spec) {
  TRY_ASSIGN(Table * table, Open(location));
  TRY_ASSIGN(const std::vector<columns::Field> fields, FieldsOfAll(sources, location));
  AppendResult result;
  Text failure;
  MssqlCdcDeltaAppend* begun = nullptr;
  std::int32_t code =
      mssql_cdc_delta_append_begin(table->get(), AppendJson(spec, fields).c_str(),
                                   &begun, &result.version, failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  const AppendPtr append(begun);
  if (append == nullptr) {
    result.outcome = AppendOutcome::kAlreadyThere;
    return result;
  }
  TRY(DrainAll(append.get(), std::move(sources), location));
  std::optional<std::string> metadata;
  if (spec.user_metadata) metadata = spec.user_metadata();
  MssqlCdcDeltaDone done{};
  code = mssql_cdc_delta_append_commit(append.get(), table->get(),
                                       metadata ? metadata->c_str() : nullptr, &done,
                                       failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  result.version = done.version;
  result.outcome = done.outcome == MSSQL_CDC_DELTA_COMMITTED ? AppendOutcome::kCommitted
                   : done.outcome == MSSQL_CDC_DELTA_ALREADY_THERE
                       ? AppendOutcome::kAlreadyThere
                       : AppendOutcome::kNoRows;
  if (result.outcome == AppendOutcome::kCommitted) {
    result.row_count = done.row_count;
    result.size_bytes = done.size_bytes;
  }
  return result;
}

Result<std::vector<CommitInfo>> DeltaLake::History(const std::string& location,
                                                   std::int64_t since_version) {
  TRY_ASSIGN(Table * table, Open(location));
  Text text;
  Text failure;
  const std::int32_t code =
      mssql_cdc_delta_history(table->get(), since_version, text.out(), failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return ParseHistory(text.view());
}

Result<std::unique_ptr<columns::BatchReader>> DeltaLake::Read(
    const std::string& location, const ReadSpec& spec) {
  TRY_ASSIGN(Table * table, Open(location));
  ArrowArrayStream stream{};
  Text failure;
  const std::int32_t code = mssql_cdc_delta_read(table->get(), ReadJson(spec).c_str(),
                                                 &stream, failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return columns::ImportStream(&stream);
}

Result<std::int64_t> DeltaLake::RowCount(const std::string& location) {
  TRY_ASSIGN(Table * table, Open(location));
  std::int64_t count = 0;
  Text failure;
  const std::int32_t code =
      mssql_cdc_delta_row_count(table->get(), &count, failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return count;
}

}  // namespace mssql_cdc::lake
