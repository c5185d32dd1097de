// What a stream wrote, and its comparison with a history. Every check throws Wrong.

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lake/memory_lake.h"
#include "runtime/stream_config.h"
#include "tests/model/history.h"

namespace mssql_cdc::model {

struct BronzeCommit {
  std::string lsn;
  std::vector<Change> changes;  // In the order that bronze's columns give.
  std::set<std::string> instances;
  std::set<std::int64_t> batch_ids;
};

struct Bronze {
  std::vector<BronzeCommit> commits;  // In LSN order.
  std::map<std::int64_t, Row> snapshot;
  std::size_t snapshot_row_count = 0;
  bool has_command_ids = true;
};

struct FactsLine {
  std::optional<std::string> event;
  std::int64_t batch_id = -1;
  std::int64_t rows = 0;
  std::string end_lsn;
  std::string detail;
};

Bronze ReadBronze(lake::MemoryLake& lake, const runtime::StreamConfig& config);
// Of this stream's batches and their events.
std::vector<FactsLine> ReadFacts(lake::MemoryLake& lake,
                                 const runtime::StreamConfig& config);

void CheckSnapshot(const Bronze& bronze, const std::map<std::int64_t, Row>& expected);
// Bronze's commits are those of the table, of `missing_count` after the first
// `kept_count` none.
void CheckCommits(const Bronze& bronze, const Table& table, std::size_t missing_count,
                  std::size_t kept_count = 0);
void CheckFacts(const std::vector<FactsLine>& facts, const Bronze& bronze,
                const Table& table, std::int64_t definition_count);
// The commits lost after the first `kept_count` are told of, and no others are lost.
void CheckSkip(const Bronze& bronze, const std::vector<FactsLine>& facts,
               const Table& table, std::size_t kept_count);

// How many commits from `begin` up to and excluding `end` have something to show.
std::size_t CountShown(const Table& table, std::size_t begin, std::size_t end);

}  // namespace mssql_cdc::model
