#include "cdc/read_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/case_fold.h"
#include "cdc/cells.h"
#include "cdc/type_fit.h"

namespace mssql_cdc::cdc {
namespace {

constexpr std::size_t kCommandLengthMax = 500;  // Characters, as facts keep it.

// The first `count_max` characters, never half of one.
std::string FirstCharacters(const std::string& text, std::size_t count_max) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (count++ == count_max) return text.substr(0, i);
  }
  return text;
}

std::vector<CaptureInstance> InstancesOf(const ReadFacts& facts) {
  std::vector<CaptureInstance> instances;
  for (const InstanceFacts& each : facts.instances) {
    instances.push_back(each.columns.instance);
  }
  return instances;
}

bool IsInside(const LsnWindow& window, const Lsn& lsn) {
  return window.after < lsn && lsn <= window.through;
}

// DDL inside the window of the instances that are read, each LSN once, with the place
// of the first instance that has it.
std::map<Lsn, std::pair<std::size_t, std::string>> DdlOf(
    const ReadFacts& facts, const std::vector<ReadPiece>& pieces) {
  std::map<Lsn, std::pair<std::size_t, std::string>> found;
  for (const ReadPiece& piece : pieces) {
    for (const DdlEntry& entry : facts.instances[piece.instance_index].ddl) {
      if (!IsInside(facts.window, entry.lsn)) continue;
      found.try_emplace(entry.lsn, piece.instance_index, entry.command);
    }
  }
  return found;
}

// "note integer (read as long)" for a column whose type the written one does not hold.
std::vector<std::string> Misfits(const ReadFacts& facts,
                                 const InstanceColumns& columns) {
  std::vector<std::string> misfits;
  const std::vector<ColumnRead> reads = PlanColumnReads(facts.fields, columns.captured);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (!reads[i].name) continue;
    const columns::Type& written = facts.fields[i].type;
    if (reads[i].type && Fits(*reads[i].type, written)) continue;
    misfits.push_back(
        facts.fields[i].name + ' ' +
        (reads[i].type ? columns::DeltaTypeName(*reads[i].type) : "unreadable") +
        " (read as " + columns::DeltaTypeName(written) + ')');
  }
  return misfits;
}

Status CheckDdl(const ReadFacts& facts, const std::vector<ReadPiece>& pieces,
                ReadPlan& plan) {
  const auto ddl = DdlOf(facts, pieces);
  if (ddl.empty()) return Unit{};
  const auto instance_of = [&](std::size_t index) -> const std::string& {
    return facts.instances[index].columns.instance.name;
  };
  if (facts.policy == SchemaChangePolicy::kFail) {
    const auto& [lsn, entry] = *ddl.begin();
    return Error(ErrorId::kSchemaChanged)
        .With("capture_instance", instance_of(entry.first))
        .With("lsn", lsn.Text())
        .With("ddl", FirstCharacters(entry.second, kCommandLengthMax))
        .With("policy", "fail: run once with classify to go past it");
  }
  std::vector<std::string> offences;
  for (const ReadPiece& piece : pieces) {
    for (std::string& misfit :
         Misfits(facts, facts.instances[piece.instance_index].columns)) {
      if (std::ranges::find(offences, misfit) == offences.end()) {
        offences.push_back(std::move(misfit));
      }
    }
  }
  if (!offences.empty()) {
    std::ranges::sort(offences);
    std::vector<std::string> commands;
    for (const auto& [lsn, entry] : ddl) {
      commands.push_back(lsn.Text() + ' ' + FirstCharacters(entry.second, 200));
    }
    return Error(ErrorId::kSchemaChanged)
        .With("capture_instance", instance_of(ddl.begin()->second.first))
        .With("changes", fmt::format("{}", fmt::join(offences, ", ")))
        .With("ddl", fmt::format("{}", fmt::join(commands, "; ")));
  }
  for (const auto& [lsn, entry] : ddl) {
    SourceEvent event;
    event.kind = SourceEvent::Kind::kSchemaChange;
    event.capture_instance = instance_of(entry.first);
    event.at.lsn = lsn;
    event.detail = FirstCharacters(entry.second, kCommandLengthMax);
    plan.events.push_back(std::move(event));
  }
  return Unit{};
}

// A run that first reads a newer instance: its columns must be those that are written.
Status CheckSwitch(const ReadFacts& facts, const InstanceFacts& newer, ReadPlan& plan) {
  std::vector<std::string> changes = Misfits(facts, newer.columns);
  std::vector<std::string> added;
  for (const CapturedColumn& column : newer.columns.captured) {
    const bool is_written =
        std::ranges::any_of(facts.fields, [&](const columns::Field& field) {
          return EqualsIgnoringCase(field.name, column.name);
        });
    if (!is_written) added.push_back(column.name + ' ' + column.type_name);
  }
  if (facts.fields_are_declared) {
    if (!added.empty()) {
      plan.warnings.push_back("capture instance " + newer.columns.instance.name +
                              " captures columns that option columns does not name: " +
                              fmt::format("{}", fmt::join(added, ", ")));
    }
    return Unit{};
  }
  for (std::string& column : added) changes.push_back(std::move(column) + " (new)");
  if (changes.empty()) return Unit{};
  const std::optional<Lsn>& first = newer.columns.instance.start_lsn;
  return Error(ErrorId::kSchemaChanged)
      .With("capture_instance", newer.columns.instance.name)
      .With("first_lsn", first ? first->Text() : "none")
      .With("changes", fmt::format("{}", fmt::join(changes, ", ")))
      .With("cure", "start again: the columns are inferred anew");
}

void NoteSwitches(const ReadFacts& facts, const std::vector<ReadPiece>& pieces,
                  ReadPlan& plan) {
  for (const ReadPiece& piece : pieces) {
    if (piece.instance_index == 0) continue;
    const InstanceColumns& newer = facts.instances[piece.instance_index].columns;
    const InstanceColumns& older = facts.instances[piece.instance_index - 1].columns;
    const std::optional<Lsn>& first = newer.instance.start_lsn;
    if (!first || piece.window.after.Next() != first) continue;
    SourceEvent event;
    event.kind = SourceEvent::Kind::kInstanceSwitched;
    event.capture_instance = newer.instance.name;
    event.at.lsn = *first;
    event.detail = older.instance.name + " -> " + newer.instance.name;
    const auto before = PlanColumnReads(facts.fields, older.captured);
    const auto now = PlanColumnReads(facts.fields, newer.captured);
    std::vector<std::string> lost;
    for (std::size_t i = 0; i < facts.fields.size(); ++i) {
      if (before[i].name && !now[i].name) lost.push_back(facts.fields[i].name);
    }
    if (!lost.empty()) {
      event.detail += "; no longer captured, read as NULL: " +
                      fmt::format("{}", fmt::join(lost, ", "));
    }
    plan.events.push_back(std::move(event));
  }
}

// Why `instance` lacks changes that its window should hold.
std::string CauseOf(const ReadFacts& facts, const CaptureInstance& instance,
                    bool is_oldest) {
  std::vector<std::string> gone;
  if (facts.memory) {
    for (const KnownInstance& known : facts.memory->instances) {
      if (known.name == instance.name) {
        if (known.created_us == instance.created_us) continue;
        return "capture instance " + instance.name + " was dropped and created again";
      }
      const bool is_listed =
          std::ranges::any_of(facts.instances, [&](const InstanceFacts& listed) {
            return listed.columns.instance.name == known.name;
          });
      if (!is_listed) gone.push_back(known.name);
    }
  }
  if (is_oldest && !gone.empty()) {
    return "held only by capture instance " + fmt::format("{}", fmt::join(gone, ", ")) +
           ", which was disabled before they were read";
  }
  // Without a memory the creation's time tells, where it can be compared.
  if (facts.after_commit_us && facts.clock.kind != CommitClock::Kind::kNamedZone &&
      CommitUtcUs(facts.clock, instance.created_us) > *facts.after_commit_us &&
      is_oldest) {
    return "capture instance " + instance.name +
           " was created after the last commit that was read";
  }
  return "purged by CDC cleanup";
}

// As the existing package writes it: `to` is the first LSN that is still there.
std::string SkipDetail(const Lsn& from, const Lsn& to, bool is_certain) {
  return R"({"from": ")" + from.Text() + R"(", "to": ")" + to.Text() +
         R"(", "certain": )" + (is_certain ? "true" : "false");
}

// Takes the pieces over into the plan, moved up where cleanup has passed their
// beginning.
Status Guard(const ReadFacts& facts, const std::vector<ReadPiece>& pieces,
             ReadPlan& plan) {
  for (ReadPiece piece : pieces) {
    const InstanceFacts& from = facts.instances[piece.instance_index];
    const CaptureInstance& instance = from.columns.instance;
    if (!instance.start_lsn) {
      return Error(ErrorId::kCaptureHasNotRun).With("capture_instance", instance.name);
    }
    if (CleanupReached(piece.window, instance.start_lsn)) {
      const std::string cause = CauseOf(facts, instance, piece.instance_index == 0);
      if (facts.fail_on_data_loss) {
        return Error(ErrorId::kDataLoss)
            .With("capture_instance", instance.name)
            .With("position", piece.window.after.Text())
            .With("first_readable", instance.start_lsn->Text())
            .With("cause", cause)
            .With("cure", "a re-snapshot is required; failOnDataLoss=false skips");
      }
      SourceEvent event;
      event.kind = SourceEvent::Kind::kDataSkipped;
      event.capture_instance = instance.name;
      event.at.lsn = *instance.start_lsn;
      const Lsn first_unread = piece.window.after.Next().value_or(piece.window.after);
      event.detail = SkipDetail(first_unread, *instance.start_lsn, true) + "}";
      event.lost_from_us = facts.after_commit_us;
      plan.events.push_back(std::move(event));
      const Lsn last_lost = instance.start_lsn->Previous().value_or(Lsn{});
      plan.warnings.push_back("changes from " + first_unread.Text() + " through " +
                              std::min(last_lost, piece.window.through).Text() +
                              " of capture instance " + instance.name +
                              " are skipped: " + cause);
      piece.window.after = last_lost;
      if (piece.window.through <= piece.window.after) continue;
    }
    if (!from.is_checked) TRY(CheckSwitch(facts, from, plan));
    plan.pieces.push_back(std::move(piece));
  }
  return Unit{};
}

}  // namespace

Result<std::vector<DdlEntry>> ReadDdlHistory(const columns::RecordBatch& answer) {
  std::vector<DdlEntry> entries;
  for (std::int64_t i = 0; i < answer.row_count; ++i) {
    const RowView row(answer, i);
    TRY_ASSIGN(const std::optional<Lsn> lsn, row.LsnOf("ddl_lsn"));
    TRY_ASSIGN(std::optional<std::string> command, row.Text("ddl_command"));
    if (lsn) entries.push_back({*lsn, std::move(command).value_or("")});
  }
  std::ranges::stable_sort(entries, {}, &DdlEntry::lsn);
  return entries;
}

const char* NameOf(SourceEvent::Kind kind) {
  switch (kind) {
    case SourceEvent::Kind::kSchemaChange:
      return "schema_change";
    case SourceEvent::Kind::kInstanceSwitched:
      return "capture_instance_switched";
    case SourceEvent::Kind::kDataSkipped:
      return "data_skipped";
  }
  return "";
}

Result<ReadPlan> PlanReads(const ReadFacts& facts) {
  const std::vector<ReadPiece> pieces =
      CutAtInstances(InstancesOf(facts), facts.window);
  ReadPlan plan;
  TRY(CheckDdl(facts, pieces, plan));
  NoteSwitches(facts, pieces, plan);
  TRY(Guard(facts, pieces, plan));
  return plan;
}

SourceEvent PossibleLoss(const std::string& capture_instance, const LsnWindow& window,
                         const Lsn& first_readable,
                         const std::optional<std::int64_t>& after_commit_us) {
  SourceEvent event;
  event.kind = SourceEvent::Kind::kDataSkipped;
  event.capture_instance = capture_instance;
  event.at.lsn = first_readable;
  event.detail =
      SkipDetail(window.after.Next().value_or(window.after), first_readable, false) +
      R"(, "reason": "CDC cleanup passed it while it was read"})";
  event.lost_from_us = after_commit_us;
  return event;
}

bool CleanupReached(const LsnWindow& window, const std::optional<Lsn>& instance_min) {
  if (!instance_min) return true;
  // The first LSN not yet read must still be there; instance_min is itself readable.
  // Next() is absent only at the top, which no window starts at.
  const std::optional<Lsn> first_unread = window.after.Next();
  return first_unread && *first_unread < *instance_min;
}

}  // namespace mssql_cdc::cdc
