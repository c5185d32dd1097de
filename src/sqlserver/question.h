// What a request asks, without its T-SQL: for a backend that reads none. Requests that
// such a backend has no answer to (the capture's jobs, waits) have no question.

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sqlserver/key_statements.h"
#include "sqlserver/session.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::sqlserver {

struct Question {
  struct ServerClock {};
  struct ServerZone {};
  struct Instances {};
  struct Columns {
    std::string capture_instance;
  };
  struct ColumnDetails {
    std::string table;
  };
  struct NewestCommit {};
  struct CommitTime {
    LsnBytes lsn{};
    bool or_below = false;
  };
  struct MinLsn {
    std::string capture_instance;
  };
  struct KeyExtent {
    std::string table;
    std::string key;
  };
  struct SpaceUsed {
    std::string table;
  };
  struct LastKey {
    KeyTable table;
  };
  struct SeekKey {
    KeyTable table;
    KeySpan span;
    std::int64_t skip_count = 0;
  };
  struct SeekAbove {
    KeyTable table;
    KeyBound bound;
  };
  std::variant<ServerClock, ServerZone, Instances, Columns, ColumnDetails, NewestCommit,
               CommitTime, MinLsn, KeyExtent, SpaceUsed, LastKey, SeekKey, SeekAbove,
               PollQuestion, ChangesQuestion, TilesQuestion, SnapshotQuestion,
               SliceQuestion, ChunkQuestion>
      what;
};

template <typename What>
Request Asking(What what, std::string sql, std::vector<Parameter> parameters = {}) {
  return {std::move(sql), std::move(parameters),
          std::make_shared<const Question>(Question{std::move(what)})};
}

}  // namespace mssql_cdc::sqlserver
