// The arguments of an engine procedure, matched with its parameters.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/lsn.h"
#include "sim/engine/rows_table.h"
#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

class Arguments {
 public:
  // `parameters`: names with @, in order. Raises 8144 and 8145.
  Arguments(std::string procedure, std::vector<std::string> parameters,
            std::vector<ProcedureArgument>& given);

  // Absent: not given, DEFAULT, or NULL.
  std::optional<std::string> Text(std::size_t index) const;
  std::optional<std::int64_t> Int(std::size_t index) const;
  std::optional<Lsn> BinaryLsn(std::size_t index) const;
  std::optional<DateTimeValue> Time(std::size_t index) const;
  bool Given(std::size_t index) const { return found_[index] != nullptr; }
  // Raises 201 if it was not given.
  std::string RequiredText(std::size_t index) const;
  void Require(std::size_t index) const;
  void SetOutput(std::size_t index, const SqlType& type, const Value& value);

 private:
  const Value* ValueOf(std::size_t index) const;

  std::string procedure_;
  std::vector<std::string> parameters_;
  std::vector<ProcedureArgument*> found_;
};

// Sends one result set with its StatementDone.
void SendRows(ReplySink& sink, const std::vector<ColumnInfo>& columns,
              const std::vector<Row>& rows);

}  // namespace mssql_cdc::sim
