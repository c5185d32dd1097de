// What the update mask adds to changes that are read: the names of written columns, and
// what becomes of large values that CDC did not record.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/update_mask.h"
#include "columns/batch.h"
#include "reader/make_columns.h"

namespace mssql_cdc::reader {

struct MaskPlan {
  std::vector<cdc::MaskColumn> columns;  // None: the mask is not asked for.
  cdc::UnchangedLob unchanged_lob = cdc::UnchangedLob::kNull;

  bool is_asked() const { return !columns.empty(); }
};

// Operations and masks of the rows of a batch.
class MaskRows {
 public:
  // Borrows all. Requires that operations are no NULL ints. Errors: TdsMalformed for
  // masks that are no binaries.
  static Result<MaskRows> Of(const MaskPlan& plan, const columns::Column& operations,
                             const columns::Column& masks);

  // _changed_columns: the names that an update wrote; NULL of other changes.
  ColumnPtr ChangedNames() const;
  // _unknown_columns: the names of those whose values were not recorded; NULL where all
  // were. `values`: of the plan's columns.
  ColumnPtr UnknownNames(const std::vector<const columns::Column*>& values) const;

  // A column's values, those that an image before an update lacks taken from the image
  // after it, which is the next row.
  ColumnPtr WithPrevious(const cdc::MaskColumn& column, const ColumnPtr& values) const;
  // Whether the last row is an image before: the one after it comes with the next
  // batch.
  bool EndsInPair() const;

 private:
  MaskRows(const MaskPlan& plan, const columns::Column& operations,
           const columns::Column& masks)
      : plan_(plan), operations_(operations), masks_(masks) {}
  int OperationOf(std::int64_t row) const;
  std::string_view MaskOf(std::int64_t row) const;

  const MaskPlan& plan_;
  const columns::Column& operations_;
  const columns::Column& masks_;
};

}  // namespace mssql_cdc::reader
