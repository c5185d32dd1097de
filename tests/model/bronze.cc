#include "tests/model/bronze.h"

#include <algorithm>
#include <tuple>

#include "cdc/cells.h"
#include "tests/model/source.h"

namespace mssql_cdc::model {
namespace {

std::vector<columns::RecordBatch> ReadTable(lake::MemoryLake& lake,
                                            const std::string& location) {
  std::vector<columns::RecordBatch> batches;
  auto reader = lake.Read(location, {});
  if (!reader.ok()) return batches;
  while (true) {
    auto batch = reader.value()->Next();
    if (!batch.ok()) throw Wrong{batch.error().Text()};
    if (!batch.value()) return batches;
    batches.push_back(*std::move(batch).value());
  }
}

std::string Text(const Row& row) {
  std::string text = "{";
  for (const auto& [column, value] : row) text += column + "=" + value + " ";
  return text + "}";
}

std::string Text(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes) {
    text += "\n    " + std::to_string(change.operation) + " " + Text(change.row);
  }
  return text;
}

Row ReadRow(const columns::RecordBatch& batch, const cdc::RowView& row) {
  Row values;
  for (const columns::Field& field : batch.schema->fields) {
    if (field.name.starts_with("_")) continue;
    if (field.type.kind == columns::Kind::kUtf8) {
      const auto text = row.Text(field.name).value();
      if (text) values[field.name] = *text;
    } else {
      const auto number = row.Integer(field.name).value();
      if (number) values[field.name] = std::to_string(*number);
    }
  }
  return values;
}

bool Less(const Change& a, const Change& b) {
  return std::tie(a.operation, a.row) < std::tie(b.operation, b.row);
}

bool SameInAnyOrder(std::vector<Change> a, std::vector<Change> b) {
  std::ranges::sort(a, Less);
  std::ranges::sort(b, Less);
  return std::ranges::equal(a, b, [](const Change& x, const Change& y) {
    return x.operation == y.operation && x.row == y.row;
  });
}

std::vector<Change> Flat(const Commit& commit) {
  std::vector<Change> all;
  for (const StatementChanges& changes : commit) {
    all.insert(all.end(), changes.begin(), changes.end());
  }
  return all;
}

// The instance that a commit is read from: the newest that holds it.
const Instance& InstanceFor(const Table& table, std::size_t commit_number) {
  const Instance* found = &table.instances.front();
  for (const Instance& instance : table.instances) {
    if (instance.first_commit <= commit_number) found = &instance;
  }
  return *found;
}

void CheckCommit(const BronzeCommit& got, const Commit& expected, bool in_order) {
  bool same = SameInAnyOrder(got.changes, Flat(expected));
  std::size_t next = 0;
  for (const StatementChanges& changes : expected) {
    if (!same || !in_order) break;
    const auto begin = got.changes.begin() + static_cast<std::ptrdiff_t>(next);
    next += changes.size();
    const auto end = got.changes.begin() + static_cast<std::ptrdiff_t>(next);
    same = SameInAnyOrder({begin, end}, changes);
  }
  if (same) return;
  throw Wrong{"commit " + got.lsn + " in bronze:" + Text(got.changes) +
              "\n  in the source:" + Text(Flat(expected))};
}

}  // namespace

Bronze ReadBronze(lake::MemoryLake& lake, const runtime::StreamConfig& config) {
  using Key = std::tuple<std::string, std::int64_t, std::string, std::int64_t>;
  struct Line {
    Key key;
    Change change;
    std::string instance;
    std::int64_t batch_id;
  };
  Bronze bronze;
  bronze.has_command_ids = config.include_command_id;
  std::vector<Line> lines;
  for (const columns::RecordBatch& batch : ReadTable(lake, config.target_location)) {
    for (std::int64_t i = 0; i < batch.row_count; ++i) {
      const cdc::RowView row(batch, i);
      const std::int64_t operation = *row.Integer("_operation").value();
      const Row values = ReadRow(batch, row);
      if (operation == 0) {
        ++bronze.snapshot_row_count;
        bronze.snapshot[*row.Integer("id").value()] = values;
        continue;
      }
      std::int64_t command_id = 0;
      if (bronze.has_command_ids) command_id = *row.Integer("_command_id").value();
      lines.push_back({{*row.Text("_start_lsn").value(), command_id,
                        *row.Text("_seqval").value(), operation},
                       {static_cast<int>(operation), values, {}},
                       *row.Text("_capture_instance").value(),
                       *row.Integer("_batch_id").value()});
    }
  }
  std::ranges::sort(lines, {}, &Line::key);
  for (Line& line : lines) {
    const std::string& lsn = std::get<0>(line.key);
    if (bronze.commits.empty() || bronze.commits.back().lsn != lsn) {
      bronze.commits.emplace_back().lsn = lsn;
    }
    BronzeCommit& commit = bronze.commits.back();
    commit.changes.push_back(std::move(line.change));
    commit.instances.insert(line.instance);
    commit.batch_ids.insert(line.batch_id);
  }
  return bronze;
}

std::vector<FactsLine> ReadFacts(lake::MemoryLake& lake,
                                 const runtime::StreamConfig& config) {
  std::vector<FactsLine> lines;
  for (const columns::RecordBatch& batch : ReadTable(lake, config.facts_location)) {
    for (std::int64_t i = 0; i < batch.row_count; ++i) {
      const cdc::RowView row(batch, i);
      const std::optional<std::int64_t> batch_id = row.Integer("batch_id").value();
      if (!batch_id || row.Text("app_id").value() != config.app_id) continue;
      lines.push_back({row.Text("event").value(), *batch_id,
                       row.Integer("rows").value().value_or(-1),
                       row.Text("end_lsn").value().value_or(""),
                       row.Text("detail").value().value_or("")});
    }
  }
  return lines;
}

void CheckSnapshot(const Bronze& bronze, const std::map<std::int64_t, Row>& expected) {
  if (bronze.snapshot_row_count == expected.size() && bronze.snapshot == expected) {
    return;
  }
  throw Wrong{"the snapshot has " + std::to_string(bronze.snapshot_row_count) +
              " rows, the table had " + std::to_string(expected.size())};
}

std::size_t CountShown(const Table& table, std::size_t begin, std::size_t end) {
  std::size_t count = 0;
  for (std::size_t i = begin; i < end; ++i) {
    count += !Shown(table.commits[i], InstanceFor(table, i)).empty();
  }
  return count;
}

void CheckCommits(const Bronze& bronze, const Table& table, std::size_t missing_count,
                  std::size_t kept_count) {
  std::vector<std::pair<Commit, std::string>> expected;
  for (std::size_t i = 0; i < table.commits.size(); ++i) {
    const Instance& instance = InstanceFor(table, i);
    Commit shown = Shown(table.commits[i], instance);
    if (!shown.empty()) expected.emplace_back(std::move(shown), instance.name);
  }
  const auto first = expected.begin() + static_cast<std::ptrdiff_t>(kept_count);
  expected.erase(first, first + static_cast<std::ptrdiff_t>(missing_count));
  if (bronze.commits.size() != expected.size()) {
    throw Wrong{std::to_string(bronze.commits.size()) + " commits in bronze, " +
                std::to_string(expected.size()) + " in the source"};
  }
  std::int64_t batch_id = -1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const BronzeCommit& got = bronze.commits[i];
    CheckCommit(got, expected[i].first, bronze.has_command_ids);
    if (got.instances != std::set<std::string>{expected[i].second}) {
      throw Wrong{"commit " + got.lsn + " was not read from " + expected[i].second +
                  " but from " + *got.instances.begin()};
    }
    if (got.batch_ids.size() != 1 || *got.batch_ids.begin() < batch_id) {
      throw Wrong{"commit " + got.lsn + " lies in several batches, or in an old one"};
    }
    batch_id = *got.batch_ids.begin();
  }
}

void CheckFacts(const std::vector<FactsLine>& facts, const Bronze& bronze,
                const Table& table, std::int64_t definition_count) {
  std::map<std::int64_t, std::int64_t> rows;
  for (const BronzeCommit& commit : bronze.commits) {
    rows[*commit.batch_ids.begin()] += static_cast<std::int64_t>(commit.changes.size());
  }
  std::set<std::int64_t> batches;
  std::map<std::string, std::int64_t> events;
  std::string end_lsn;
  for (const FactsLine& line : facts) {
    if (line.event) {
      ++events[*line.event];
      continue;
    }
    if (!batches.insert(line.batch_id).second) throw Wrong{"facts have a batch twice"};
    if (line.rows != rows[line.batch_id]) {
      throw Wrong{"facts of batch " + std::to_string(line.batch_id) + " say " +
                  std::to_string(line.rows) + " rows, bronze has " +
                  std::to_string(rows[line.batch_id])};
    }
    if (line.end_lsn < end_lsn) throw Wrong{"a batch ends below the one before"};
    end_lsn = line.end_lsn;
  }
  if (!batches.empty() &&
      *batches.rbegin() != static_cast<std::int64_t>(batches.size()) - 1) {
    throw Wrong{"facts lack a batch"};
  }
  const auto switches = static_cast<std::int64_t>(table.instances.size()) - 1;
  if (events["capture_instance_switched"] != switches) {
    throw Wrong{std::to_string(events["capture_instance_switched"]) + " of " +
                std::to_string(switches) + " switches in the facts"};
  }
  if (events["schema_change"] != definition_count) {
    throw Wrong{std::to_string(events["schema_change"]) + " of " +
                std::to_string(definition_count) + " changes of the schema in facts"};
  }
  if (events["data_skipped"] != 0) throw Wrong{"facts tell of a loss"};
}

void CheckSkip(const Bronze& bronze, const std::vector<FactsLine>& facts,
               const Table& table, std::size_t kept_count) {
  const std::size_t all = CountShown(table, 0, table.commits.size());
  if (bronze.commits.size() > all) throw Wrong{"more commits than were made"};
  const std::size_t missing_count = all - bronze.commits.size();
  CheckCommits(bronze, table, missing_count, kept_count);
  const auto skip = std::ranges::find(facts, std::optional<std::string>("data_skipped"),
                                      &FactsLine::event);
  if (skip == facts.end()) throw Wrong{"a skip is not in the facts"};
  if (skip->detail.find(R"("certain": true})") == std::string::npos) {
    throw Wrong{"a skip found by planning is not certain: " + skip->detail};
  }
  if (bronze.commits.size() > kept_count &&
      bronze.commits[kept_count].lsn < skip->end_lsn) {
    throw Wrong{"rows from inside the gap"};
  }
}

}  // namespace mssql_cdc::model
