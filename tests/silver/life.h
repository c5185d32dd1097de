// A source table that changes at random, and what a stream makes of it in a lake: the
// record that a silver table is compared with.
//
// One row is (id bigint, r text, v text) and, once a newer capture instance is read, a
// text w that follows from v. The source is here, not in a simulator: bronze is written
// as the tables' documentation says, in every order that a stream may.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/dice.h"
#include "cdc/lsn.h"
#include "columns/batch.h"
#include "lake/lake.h"
#include "runtime/silver_config.h"
#include "tests/seeds.h"

namespace mssql_cdc::silver {

using tests::KindCounts;
using tests::Wrong;

using Rows = std::map<std::int64_t, std::string>;  // id -> v; r and w follow.

struct BronzeRow {
  std::string instance = "dbo_t";
  std::int64_t lsn = 0;
  std::optional<std::int64_t> seqval = {};
  int operation = 0;
  std::optional<std::int64_t> command_id = {};
  std::int64_t id = 0;
  std::string v = {};
  std::optional<std::int64_t> snapshot = {};
  std::optional<std::int64_t> chunk = {};
  bool has_w = false;
};

// All the instances that a table may come to have, the oldest first.
const std::vector<std::string>& Instances();

std::string LsnText(std::int64_t number);
std::string RegionOf(std::int64_t id);

class Life {
 public:
  Life(std::uint64_t seed, lake::Lake& lake, const runtime::SilverConfig& config,
       KindCounts& counts);

  // Something happens: to the source, the stream or a snapshot.
  void Step();
  // Everything that was committed is in bronze, and no snapshot is open.
  void Finish();

  // The LSN that bronze has everything up to, but for a gap.
  std::int64_t head() const { return streamed_; }
  // What silver must be at `head`, as far as it is known.
  const Rows& rows() const { return history_[static_cast<std::size_t>(streamed_)]; }
  // Whether silver must equal the source on this key now.
  bool Knows(std::int64_t id) const;
  bool knows_all() const;
  // Throws Wrong unless the image of `lsn` has w exactly where the instance that it was
  // read from captured it.
  void CheckW(std::int64_t lsn, const std::string& v,
              const std::optional<std::string>& w) const;

 private:
  struct Chunk {
    std::optional<std::int64_t> lo = {};
    std::optional<std::int64_t> hi = {};
    std::int64_t read_at = 0;
    bool is_done = false;
    std::int64_t wave = 0;
  };
  struct OpenSnapshot {
    std::int64_t lsn = 0;
    std::vector<Chunk> chunks;
    std::int64_t wave = 0;
    std::string event;
    std::string app_id;
  };

  void Commit();
  void Statement();
  void UpdateKey(std::int64_t key);
  void ShiftKeys();
  void SwapKeys(std::int64_t key);
  void Stream();
  void Gap();
  void WholeSnapshot();
  void OpenChunked();
  void Open(std::int64_t lsn, const std::string& more);
  void SwitchInstance();
  void TakeSwitch(std::int64_t start_lsn, std::size_t instance);
  void ReadTable(std::int64_t stamp);
  std::string AppId() const;
  void Wave();
  void Complete();
  void Record(const BronzeRow& change);
  void Put(const std::vector<BronzeRow>& rows);
  void Fact(const std::string& app_id, const std::string& event, std::int64_t min_lsn,
            std::int64_t max_lsn, std::int64_t rows, const std::string& detail);
  void Plan(std::int64_t snapshot, const std::string& event, const std::string& detail);
  void Count(const std::string& kind) { ++counts_[kind]; }
  std::optional<std::int64_t> AnyKey();
  std::string AnyValue();

  Dice dice_;
  lake::Lake& lake_;
  const runtime::SilverConfig& config_;
  KindCounts& counts_;
  Rows source_;
  std::vector<Rows> history_;                    // By LSN.
  std::vector<std::vector<BronzeRow>> changes_;  // By LSN.
  std::int64_t streamed_ = 0;
  std::int64_t command_ = 0;
  std::int64_t seqval_ = 0;
  std::optional<OpenSnapshot> open_;
  bool has_gap_ = false;       // Since the newest whole or complete snapshot.
  std::int64_t read_at_ = 0;   // Of the newest snapshot row in bronze.
  std::int64_t whole_at_ = 0;  // LSN of the newest whole or complete snapshot.
  std::int64_t generation_ = 0;
  // Where each instance but the first starts; the stream reads it above.
  std::vector<std::int64_t> starts_;
  std::set<std::int64_t> narrow_stamps_;  // Of snapshot rows without w.
};

}  // namespace mssql_cdc::silver
