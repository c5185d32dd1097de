// What an update touched, by SQL Server's __$update_mask, and which large values its
// images lack.
//
// The bit of a captured column is by its ordinal, counted from 1: the lowest eight are
// the last byte's, the lowest of them its lowest bit. A column whose bit is not set has
// its old value; whether one that is set to the value it has gets its bit is not
// documented. What an image lacks is what Microsoft documents of change tables
// (cdc.<capture_instance>_CT, "Large object data types").

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cdc/capture_instance.h"
#include "columns/schema.h"

namespace mssql_cdc::cdc {

inline constexpr std::string_view kChangedColumns = "_changed_columns";
inline constexpr std::string_view kUnknownColumns = "_unknown_columns";

// What becomes of a large value that CDC did not record in an image before an update,
// because the update left it alone.
enum class UnchangedLob : std::uint8_t {
  kNull,      // NULL, as CDC has it.
  kPrevious,  // The value of the image after, which is the same.
  kListed,    // NULL, and named in _unknown_columns.
};

// Which images have no value of a column.
enum class LargeValue : std::uint8_t {
  kNone,  // All have it.
  kMax,   // varchar(max) and its kin: those before an update that did not write it.
  kOld,   // text, ntext, image: all before an update, and those of deleted rows.
};
LargeValue LargeValueOf(const CapturedColumn& column);

// A captured column that is read.
struct MaskColumn {
  std::string name;  // As it is written.
  std::size_t ordinal = 0;
  LargeValue large = LargeValue::kNone;
  std::size_t field_index = 0;  // Of the written columns.

  bool operator==(const MaskColumn&) const = default;
};
// Those of `fields` that the instance captures.
std::vector<MaskColumn> PlanMask(const std::vector<columns::Field>& fields,
                                 const std::vector<CapturedColumn>& captured);

// False beyond the mask's bytes.
bool IsWritten(std::string_view mask, std::size_t ordinal);

// Whether an image lacks the value for sure: `operation` as SQL Server numbers it.
bool IsUnknown(const MaskColumn& column, int operation, std::string_view mask);

// A JSON list of names.
std::string NameList(const std::vector<std::string_view>& names);

}  // namespace mssql_cdc::cdc
