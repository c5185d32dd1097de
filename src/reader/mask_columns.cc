#include "reader/mask_columns.h"

#include <memory>
#include <string>
#include <utility>

#include "cdc/output_columns.h"
#include "columns/take.h"

namespace mssql_cdc::reader {
namespace {

using columns::Column;
using columns::ColumnBuilder;
using columns::Kind;

constexpr int kBefore = static_cast<int>(cdc::Operation::kUpdateBefore);
constexpr int kAfter = static_cast<int>(cdc::Operation::kUpdateAfter);

}  // namespace

Result<MaskRows> MaskRows::Of(const MaskPlan& plan, const Column& operations,
                              const Column& masks) {
  if (masks.type.kind != Kind::kBinary) {
    return Error(ErrorId::kTdsMalformed).With("reason", "an update mask is no binary");
  }
  return MaskRows(plan, operations, masks);
}

int MaskRows::OperationOf(std::int64_t row) const {
  return columns::FixedValue<std::int32_t>(operations_, row);
}

std::string_view MaskRows::MaskOf(std::int64_t row) const {
  return columns::IsNull(masks_, row) ? std::string_view()
                                      : columns::BytesValue(masks_, row);
}

ColumnPtr MaskRows::ChangedNames() const {
  ColumnBuilder out({Kind::kUtf8}, operations_.row_count);
  // Most updates of a batch write the same columns.
  std::string last_mask;
  std::string last_text;
  for (std::int64_t i = 0; i < operations_.row_count; ++i) {
    const int operation = OperationOf(i);
    if (operation != kBefore && operation != kAfter) {
      out.AppendNull();
      continue;
    }
    const std::string_view mask = MaskOf(i);
    if (last_text.empty() || mask != last_mask) {
      std::vector<std::string_view> names;
      for (const cdc::MaskColumn& column : plan_.columns) {
        if (cdc::IsWritten(mask, column.ordinal)) names.push_back(column.name);
      }
      last_mask = mask;
      last_text = cdc::NameList(names);
    }
    out.AppendBytes(last_text);
  }
  return std::make_shared<const Column>(out.Finish());
}

ColumnPtr MaskRows::UnknownNames(const std::vector<const Column*>& values) const {
  ColumnBuilder out({Kind::kUtf8}, operations_.row_count);
  for (std::int64_t i = 0; i < operations_.row_count; ++i) {
    std::vector<std::string_view> names;
    for (std::size_t c = 0; c < plan_.columns.size(); ++c) {
      const bool is_unknown =
          columns::IsNull(*values[c], i) &&
          cdc::IsUnknown(plan_.columns[c], OperationOf(i), MaskOf(i));
      if (is_unknown) names.push_back(plan_.columns[c].name);
    }
    if (names.empty()) {
      out.AppendNull();
    } else {
      out.AppendBytes(cdc::NameList(names));
    }
  }
  return std::make_shared<const Column>(out.Finish());
}

ColumnPtr MaskRows::WithPrevious(const cdc::MaskColumn& column,
                                 const ColumnPtr& values) const {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(values->row_count));
  bool is_other = false;
  for (std::int64_t i = 0; i < values->row_count; ++i) {
    // The image after has the value of a column that the update left alone.
    const bool takes_next = OperationOf(i) == kBefore && columns::IsNull(*values, i) &&
                            !cdc::IsWritten(MaskOf(i), column.ordinal) &&
                            i + 1 < values->row_count && OperationOf(i + 1) == kAfter;
    rows[static_cast<std::size_t>(i)] = takes_next ? i + 1 : i;
    is_other = is_other || takes_next;
  }
  if (!is_other) return values;
  return std::make_shared<const Column>(columns::Take(*values, rows));
}

bool MaskRows::EndsInPair() const {
  return operations_.row_count > 0 && OperationOf(operations_.row_count - 1) == kBefore;
}

}  // namespace mssql_cdc::reader
