// Cleanup of change tables, in the two steps SQL Server takes (facts 1.8): the low
// water mark moves first, rows go later.

#include <algorithm>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {
namespace {

std::unique_ptr<WriteTransaction> BeginOwn(Server& server,
                                           const std::shared_ptr<Database>& database) {
  database->LockWriter({});
  return WriteTransaction::Begin(database, server.Now());
}

std::int64_t DeleteBelow(WriteTransaction& transaction, const TableMeta& table,
                         const Lsn& mark, std::optional<std::int64_t> row_count_max) {
  const std::string& start = table.columns[0].physical;
  const std::string range = " WHERE " + start + " < ?";
  Connection& connection = transaction.connection();
  std::string text = "DELETE FROM " + table.physical + range;
  if (!Does(Behaviour::kCleanupInPortions)) row_count_max.reset();
  if (row_count_max) {
    // All rows of the commits that the first `row_count_max` rows belong to.
    text += " AND " + start + " <= (SELECT MAX(" + start + ") FROM (SELECT " + start +
            " FROM " + table.physical + range + " ORDER BY " + start + " LIMIT ?))";
  }
  Statement remove = connection.Prepare(text);
  remove.BindBlob(1, mark.bytes.data(), 10);
  if (row_count_max) {
    remove.BindBlob(2, mark.bytes.data(), 10);
    remove.BindInt(3, *row_count_max);
  }
  remove.Run();
  transaction.Rewrites();
  const std::int64_t count = connection.Changes();
  transaction.AddRowCount(table.object_id, -count);
  return count;
}

}  // namespace

std::optional<Lsn> RetentionMark(Server& server,
                                 const std::shared_ptr<Database>& database,
                                 std::int64_t retention_minutes) {
  std::unique_ptr<WriteTransaction> transaction = BeginOwn(server, database);
  if (transaction == nullptr) return std::nullopt;
  const TablePtr mapping = transaction->catalog()->FindTable("cdc", "lsn_time_mapping");
  if (mapping == nullptr) return std::nullopt;
  const std::string& start = mapping->columns[0].physical;
  const std::string& end = mapping->columns[2].physical;
  // The newest commit time less the retention, not the clock's; of the commits at or
  // before it the latest time, of those the smallest LSN.
  Statement find = transaction->connection().Prepare(
      "SELECT MIN(" + start + ") FROM " + mapping->physical + " WHERE " + end +
      " = (SELECT MAX(" + end + ") FROM " + mapping->physical + " WHERE " + end +
      " <= (SELECT MAX(" + end + ") FROM " + mapping->physical + ") - ?)");
  // The most that sp_cdc_change_job takes: 100 years.
  constexpr std::int64_t kRetentionMinutesMax = 52'494'800;
  std::int64_t back =
      std::clamp<std::int64_t>(retention_minutes, 0, kRetentionMinutesMax) *
      600'000'000;
  if (!Does(Behaviour::kRetentionFromNewestCommit)) back = 0;
  find.BindInt(1, back);
  if (find.Next() != Step::kRow || find.IsNull(0)) return std::nullopt;
  return LsnFrom(find.Blob(0));
}

bool MoveLowWaterMark(Server& server, const std::shared_ptr<Database>& database,
                      const Lsn& mark, const std::optional<std::string>& only) {
  std::unique_ptr<WriteTransaction> transaction = BeginOwn(server, database);
  if (transaction == nullptr) return false;
  Catalog& catalog = transaction->Change();
  for (CaptureInstance& instance : catalog.instances) {
    if (only && !catalog.SameName(instance.name, *only)) continue;
    // It never moves back.
    const bool moves_back = !Does(Behaviour::kStartNeverMovesBack);
    if (instance.start_lsn && (*instance.start_lsn < mark || moves_back)) {
      instance.start_lsn = mark;
    }
  }
  if (!transaction->Commit(server.Now())) return false;
  if (!Does(Behaviour::kCleanupInTwoSteps)) {
    DeleteBelowLowWaterMark(server, database, std::nullopt);
  }
  return true;
}

std::int64_t DeleteBelowLowWaterMark(Server& server,
                                     const std::shared_ptr<Database>& database,
                                     std::optional<std::int64_t> row_count_max) {
  std::unique_ptr<WriteTransaction> transaction = BeginOwn(server, database);
  if (transaction == nullptr) return 0;
  std::int64_t count = 0;
  const CatalogPtr catalog = transaction->catalog();
  std::optional<Lsn> lowest;
  for (const CaptureInstance& instance : catalog->instances) {
    if (!instance.start_lsn) continue;
    if (!lowest || *instance.start_lsn < *lowest) lowest = instance.start_lsn;
    const TablePtr table = catalog->TableById(instance.change_table_id);
    if (table == nullptr) continue;
    count += DeleteBelow(*transaction, *table, *instance.start_lsn, row_count_max);
  }
  const TablePtr mapping = catalog->FindTable("cdc", "lsn_time_mapping");
  if (mapping != nullptr && lowest && !row_count_max &&
      Does(Behaviour::kCleanupOfMapping)) {
    count += DeleteBelow(*transaction, *mapping, *lowest, std::nullopt);
  }
  transaction->Commit(server.Now());
  return count;
}

std::optional<Lsn> MaxLsn(Connection& reader, const Database& database,
                          const Catalog& catalog) {
  if (const std::optional<Lsn> frozen = database.frozen_max_lsn()) return frozen;
  const TablePtr mapping = catalog.FindTable("cdc", "lsn_time_mapping");
  if (mapping == nullptr) return std::nullopt;
  Statement read = reader.Prepare("SELECT MAX(" + mapping->columns[0].physical +
                                  ") FROM " + mapping->physical);
  if (!read || read.Next() != Step::kRow || read.IsNull(0)) {
    if (!Does(Behaviour::kMaxLsnNull)) return Lsn{};
    return std::nullopt;
  }
  return LsnFrom(read.Blob(0));
}

}  // namespace mssql_cdc::sim
