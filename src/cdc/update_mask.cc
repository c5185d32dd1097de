#include "cdc/update_mask.h"

#include <algorithm>

#include "base/text.h"
#include "cdc/find_name.h"
#include "cdc/output_columns.h"

namespace mssql_cdc::cdc {

LargeValue LargeValueOf(const CapturedColumn& column) {
  const std::string type = LowerAscii(column.type_name);
  if (type == "text" || type == "ntext" || type == "image") return LargeValue::kOld;
  if (type == "xml") return LargeValue::kMax;
  const bool can_be_max =
      type == "varchar" || type == "nvarchar" || type == "varbinary";
  return can_be_max && column.max_length == -1 ? LargeValue::kMax : LargeValue::kNone;
}

std::vector<MaskColumn> PlanMask(const std::vector<columns::Field>& fields,
                                 const std::vector<CapturedColumn>& captured) {
  std::vector<MaskColumn> mask;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto found = FindName(captured, fields[i].name, &CapturedColumn::name);
    if (found == captured.end() || found->ordinal < 1) continue;
    mask.push_back({fields[i].name, static_cast<std::size_t>(found->ordinal),
                    LargeValueOf(*found), i});
  }
  std::ranges::sort(mask, {}, &MaskColumn::ordinal);
  return mask;
}

bool IsWritten(std::string_view mask, std::size_t ordinal) {
  const std::size_t index = ordinal - 1;
  if (index / 8 >= mask.size()) return false;
  const auto byte = static_cast<unsigned char>(mask[mask.size() - 1 - index / 8]);
  return (byte >> (index % 8) & 1) != 0;
}

bool IsUnknown(const MaskColumn& column, int operation, std::string_view mask) {
  const bool is_before = operation == static_cast<int>(Operation::kUpdateBefore);
  const bool is_deleted = operation == static_cast<int>(Operation::kDelete);
  switch (column.large) {
    case LargeValue::kNone:
      return false;
    case LargeValue::kMax:
      return is_before && !IsWritten(mask, column.ordinal);
    case LargeValue::kOld:
      return is_before || is_deleted;
  }
  return false;
}

std::string NameList(const std::vector<std::string_view>& names) {
  std::string json = "[";
  for (const std::string_view name : names) {
    if (json.size() > 1) json += ", ";
    json += '"';
    for (const char c : name) {
      if (static_cast<unsigned char>(c) < 0x20) {
        json += "\\u00";
        json += "01"[c >> 4 & 1];
        json += "0123456789abcdef"[c & 15];
        continue;
      }
      if (c == '"' || c == '\\') json += '\\';
      json += c;
    }
    json += '"';
  }
  return json + ']';
}

}  // namespace mssql_cdc::cdc
