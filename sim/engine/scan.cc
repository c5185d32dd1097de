#include "sim/engine/scan.h"

#include <algorithm>

#include "sim/engine/behaviour.h"
#include "sim/engine/change_rows.h"
#include "sim/engine/stored_row.h"
#include "sim/engine/stored_table.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {
namespace {

// Where a scan without kTransactionWhole breaks a transaction.
constexpr std::int32_t kBrokenAfterCommands = 1000;

std::vector<ScanTarget> TargetsOf(const Catalog& catalog) {
  std::vector<ScanTarget> targets;
  for (const CaptureInstance& instance : catalog.instances) {
    ScanTarget target;
    target.name = instance.name;
    target.source_id = instance.source_id;
    target.table = catalog.TableById(instance.change_table_id);
    target.started =
        instance.start_lsn.has_value() || !Does(Behaviour::kInstanceStartsAtEnabling);
    target.columns = instance.columns;
    if (target.table == nullptr) continue;
    std::vector<std::int32_t> all;
    for (std::size_t i = 0; i < target.columns.size(); ++i) {
      const SqlType& type = target.table->columns[i + kFirstCaptured].type;
      target.old_lob.push_back(IsOldLobType(type.id));
      target.max_type.push_back(IsMaxType(type));
      all.push_back(target.columns[i].ordinal);
    }
    if (!Does(Behaviour::kMaskFull)) all.clear();
    target.full_mask = UpdateMask(all, target.columns.size());
    targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace

void RowImage::Read(std::string_view bytes) {
  count_ = 0;
  while (bytes.size() > 2) {
    const std::int32_t id =
        static_cast<std::uint8_t>(bytes[0]) | static_cast<std::uint8_t>(bytes[1]) << 8;
    bytes.remove_prefix(2);
    if (count_ == cells_.size()) cells_.emplace_back();
    cells_[count_].first = id;
    ReadCell(bytes, cells_[count_].second);
    ++count_;
  }
}

const Cell* RowImage::Find(std::int32_t column_id, std::size_t& hint) const {
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t at = (hint + i) % count_;
    if (cells_[at].first != column_id) continue;
    hint = at + 1;
    return &cells_[at].second;
  }
  return nullptr;
}

Scan::Scan(WriteTransaction& transaction, ScanResult& result)
    : transaction_(transaction),
      connection_(transaction.connection()),
      result_(result),
      targets_(TargetsOf(*transaction.catalog())) {}

void Scan::Finish() {
  for (ScanTarget& target : targets_) target.insert = {};
}

bool Scan::Take(const LoggedTransaction& logged) {
  logged_ = &logged;
  command_id_ = 0;
  wrote_ = false;
  std::int64_t number = 0;
  while (result_.error == 0 && TakeUntilDefinition(logged.id, number)) {
  }
  if (result_.error != 0) return false;
  if (wrote_ || !Does(Behaviour::kMappingOnlyWithChanges)) {
    AddMappingRow(transaction_, {logged.commit_lsn, logged.begin_time, logged.end_time,
                                 logged.id, logged.begin_lsn});
  }
  ++result_.transaction_count;
  return true;
}

// Takes records above `number` up to and including the next DDL record; false: none is
// left. SQLite drops no table while a statement reads, so each DDL record ends the
// read.
bool Scan::TakeUntilDefinition(std::int64_t transaction_id, std::int64_t& number) {
  std::string record;
  std::int32_t definition_table_id = 0;
  Lsn definition_lsn;
  {
    Statement read = connection_.Prepare(
        "SELECT action, table_id, seqval, before, after, number FROM log_change"
        " WHERE transaction_id = ? AND number > ? ORDER BY number");
    read.BindInt(1, transaction_id);
    read.BindInt(2, number);
    while (record.empty()) {
      if (read.Next() != Step::kRow) return false;
      number = read.Int(5);
      const auto action = static_cast<LogAction>(read.Int(0));
      const auto table_id = static_cast<std::int32_t>(read.Int(1));
      const Lsn seqval = LsnFrom(read.Blob(2));
      switch (action) {
        case LogAction::kDelete:
        case LogAction::kInsert:
        case LogAction::kUpdate:
          TakeChange(action, table_id, seqval, read.Blob(3), read.Blob(4));
          break;
        case LogAction::kDefinition:
          record = read.Blob(3);
          definition_table_id = table_id;
          definition_lsn = seqval;
          break;
        case LogAction::kInstance:
          StartInstance(read.Blob(3));
          break;
      }
    }
  }
  Finish();
  TakeDefinition(definition_table_id, record, definition_lsn);
  return true;
}

// Each change is a command of its own for each instance, so the ids of one change
// differ between instances (S5).
std::int32_t Scan::NextCommandId() {
  if (Does(Behaviour::kOwnCommandIds) || !change_has_id_) ++command_id_;
  change_has_id_ = true;
  return command_id_;
}

void Scan::TakeChange(LogAction action, std::int32_t table_id, const Lsn& seqval,
                      std::string_view before, std::string_view after) {
  bool read = false;
  change_has_id_ = false;
  for (ScanTarget& target : targets_) {
    if (target.source_id != table_id || !target.started) continue;
    if (!read) {
      old_.Read(before);
      fresh_.Read(after);
      read = true;
    }
    const std::size_t count = target.columns.size();
    none_hidden_.assign(count, false);
    if (action == LogAction::kUpdate) {
      TakeUpdate(target, seqval);
      continue;
    }
    const bool insert = action == LogAction::kInsert;
    const bool hides = !insert && Does(Behaviour::kOldLobsHidden);
    Write(target, {insert ? 2 : 1, seqval, NextCommandId(), target.full_mask,
                   insert ? fresh_ : old_, hides ? target.old_lob : none_hidden_});
  }
}

void Scan::TakeUpdate(ScanTarget& target, const Lsn& seqval) {
  const std::size_t count = target.columns.size();
  std::vector<std::int32_t> changed;
  std::vector<bool> omitted(count, false);
  const bool omits = transaction_.database().omits_lob_after_images &&
                     Does(Behaviour::kLobAfterImageOmitted);
  hidden_.assign(count, false);
  std::size_t old_hint = 0;
  std::size_t fresh_hint = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t id = target.columns[i].column_id;
    const Cell* old = old_.Find(id, old_hint);
    const Cell* fresh = fresh_.Find(id, fresh_hint);
    const bool differs = old != nullptr && fresh != nullptr && !(*old == *fresh);
    if (differs && !target.columns[i].computed) {
      changed.push_back(target.columns[i].ordinal);
    }
    const bool quiet = target.max_type[i] && !differs;
    hidden_[i] = (target.old_lob[i] && Does(Behaviour::kOldLobsHidden)) ||
                 (quiet && Does(Behaviour::kMaxTypesHidden));
    omitted[i] = omits && quiet;
  }
  if (changed.empty() && Does(Behaviour::kUncapturedColumnsSilent)) return;
  const std::string mask =
      Does(Behaviour::kMaskOnlyChanged) ? UpdateMask(changed, count) : target.full_mask;
  const std::int32_t command_id = NextCommandId();
  Write(target, {3, seqval, command_id, mask, old_, hidden_});
  const bool shares = Does(Behaviour::kImagesShareCommandId);
  Write(target,
        {4, seqval, shares ? command_id : ++command_id_, mask, fresh_, omitted});
}

void Scan::Write(ScanTarget& target, const Written& written) {
  if (!target.insert) target.insert = connection_.Prepare(InsertText(*target.table));
  Statement& insert = target.insert;
  Lsn start = logged_->commit_lsn;
  if (command_id_ > kBrokenAfterCommands && !Does(Behaviour::kTransactionWhole)) {
    start = start.Incremented();
  }
  int index =
      BindChangeHead(insert, {start, written.seqval, written.operation, written.mask});
  std::size_t hint = 0;
  for (std::size_t i = 0; i < target.columns.size(); ++i) {
    const Cell* cell = written.image.Find(target.columns[i].column_id, hint);
    if (cell != nullptr && !written.hidden[i]) {
      BindCell(insert, index++, *cell);
    } else if (cell == nullptr && !Does(Behaviour::kDroppedColumnNull)) {
      insert.BindText(index++, "?");
    } else {
      // Computed and dropped columns have no cell.
      insert.BindNull(index++);
    }
  }
  BindCommandId(insert, *target.table, index, written.command_id);
  wrote_ = true;
  ++result_.command_count;
  transaction_.AddRowCount(target.table->object_id, 1);
  if (insert.Run() != Step::kDone) result_.error = kScanFailed;
}

void Scan::StartInstance(std::string_view name) {
  for (ScanTarget& target : targets_) {
    if (target.name == name) target.started = true;
  }
  CaptureInstance* instance = transaction_.Change().FindInstance(name);
  if (instance == nullptr || instance->start_lsn) return;
  instance->start_lsn = logged_->commit_lsn;
  if (!Does(Behaviour::kEnablingRow)) return;
  AddMappingRow(transaction_, {logged_->commit_lsn, instance->create_date,
                               instance->create_date, 0, Lsn{}});
}

void Scan::TakeDefinition(std::int32_t table_id, std::string_view record,
                          const Lsn& lsn) {
  const DefinitionRecord definition = ReadDefinition(record);
  DdlEntry entry = definition.entry;
  entry.source_id = table_id;
  entry.lsn = lsn;
  for (ScanTarget& target : targets_) {
    if (target.source_id != table_id || !target.started) continue;
    entry.change_table_id = target.table->object_id;
    entry.required_column_update = false;
    for (std::size_t i = 0; i < target.columns.size(); ++i) {
      if (definition.column_id == 0 ||
          target.columns[i].column_id != definition.column_id) {
        continue;
      }
      const SqlType& held = target.table->columns[i + kFirstCaptured].type;
      if (held == definition.type || !Does(Behaviour::kTypeChangeAltersTable)) continue;
      entry.required_column_update = true;
      if (!AlterChangeTable(target, i, definition.type)) return;
    }
    if (Does(Behaviour::kDdlHistoryLate)) {
      transaction_.Change().ddl_history.push_back(entry);
    }
  }
}

// Rows of before the change keep their values, in the new type's form. One that does
// not fit stops the capture for good: facts 1.4.
bool Scan::AlterChangeTable(ScanTarget& target, std::size_t column,
                            const SqlType& type) {
  TableMeta next = *target.table;
  const std::size_t position = column + kFirstCaptured;
  const SqlType before = next.columns[position].type;
  next.columns[position].type = type;
  next.columns[position].type_name = SystemTypeName(type.id);
  try {
    const RebuildResult rebuilt =
        Rebuild(connection_, *transaction_.catalog(), *target.table, next,
                [&](std::size_t at, const std::vector<Value>& old, Value& value) {
                  if (at != position || old[at].IsNull()) return false;
                  value = Fitted(old[at], before, type);
                  return true;
                });
    if (rebuilt != RebuildResult::kDone) {
      result_.error = kScanFailed;
      return false;
    }
  } catch (const SqlError& problem) {
    result_.error = kScanFailed;
    result_.cause = problem.message;
    return false;
  }
  Catalog& catalog = transaction_.Change();
  catalog.tables[next.object_id] = std::make_shared<TableMeta>(next);
  if (CaptureInstance* instance = catalog.FindInstance(target.name)) {
    instance->columns[column].type_name = SystemTypeName(type.id);
  }
  const bool started = target.started;
  std::vector<ScanTarget> all = TargetsOf(catalog);
  for (ScanTarget& candidate : all) {
    if (candidate.name != target.name) continue;
    candidate.started = started;
    target = std::move(candidate);
    break;
  }
  return true;
}

}  // namespace mssql_cdc::sim
