#include "cdc/capture_instance.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/case_fold.h"
#include "base/near_names.h"
#include "base/text.h"
#include "cdc/cells.h"
#include "cdc/find_name.h"

namespace mssql_cdc::cdc {
namespace {

// Reads a cell that the server never leaves NULL.
Result<std::string> NeededText(const RowView& row, std::string_view column) {
  TRY_ASSIGN(std::optional<std::string> text, row.Text(column));
  if (!text) {
    return Error(ErrorId::kTdsMalformed)
        .With("reason", "an answer has NULL where a name belongs")
        .With("column", std::string(column));
  }
  return *std::move(text);
}

// Names a person may have meant: those that begin with it, and those a few edits away.
std::vector<std::string> NearestNames(const std::vector<CaptureInstance>& instances,
                                      std::string_view name) {
  const std::string wanted = LowerCase(name);
  NearNames names(name);
  for (const CaptureInstance& instance : instances) {
    const std::string candidate = LowerCase(instance.name);
    if (candidate.starts_with(wanted) || wanted.starts_with(candidate + "_")) {
      names.Take(instance.name);
    } else {
      names.Offer(instance.name);
    }
  }
  return names.Best(3);
}

}  // namespace

std::vector<std::string> ParseColumnList(std::string_view text) {
  std::vector<std::string> names;
  std::size_t i = 0;
  while (i < text.size()) {
    if (text[i] != '[') {
      ++i;
      continue;
    }
    std::string name;
    for (++i; i < text.size(); ++i) {
      if (text[i] == ']') {
        if (i + 1 >= text.size() || text[i + 1] != ']') break;
        ++i;
      }
      name += text[i];
    }
    names.push_back(std::move(name));
    ++i;
  }
  return names;
}

Result<std::vector<CaptureInstance>> ReadInstances(const columns::RecordBatch& answer) {
  std::vector<CaptureInstance> instances;
  for (std::int64_t i = 0; i < answer.row_count; ++i) {
    const RowView row(answer, i);
    CaptureInstance instance;
    TRY_ASSIGN(instance.source_schema, NeededText(row, "source_schema"));
    TRY_ASSIGN(instance.source_table, NeededText(row, "source_table"));
    TRY_ASSIGN(instance.name, NeededText(row, "capture_instance"));
    TRY_ASSIGN(instance.start_lsn, row.LsnOf("start_lsn"));
    TRY_ASSIGN(const std::optional<std::int64_t> created, row.Integer("create_date"));
    instance.created_us = created.value_or(0);
    TRY_ASSIGN(const std::optional<std::string> keys, row.Text("index_column_list"));
    if (keys) instance.key_columns = ParseColumnList(*keys);
    instances.push_back(std::move(instance));
  }
  return instances;
}

Result<std::vector<CapturedColumn>> ReadCapturedColumns(
    const columns::RecordBatch& answer) {
  // Only what large values need; an answer may lack it.
  constexpr std::string_view kLength = "character_maximum_length";
  std::vector<std::pair<std::int64_t, CapturedColumn>> ordered;
  for (std::int64_t i = 0; i < answer.row_count; ++i) {
    const RowView row(answer, i);
    CapturedColumn column;
    TRY_ASSIGN(column.name, NeededText(row, "column_name"));
    TRY_ASSIGN(column.type_name, NeededText(row, "data_type"));
    TRY_ASSIGN(const std::optional<std::int64_t> id, row.Integer("column_id"));
    column.column_id = id.value_or(0);
    TRY_ASSIGN(column.precision, row.Integer("numeric_precision"));
    TRY_ASSIGN(column.scale, row.Integer("numeric_scale"));
    TRY_ASSIGN(const std::optional<std::int64_t> ordinal,
               row.Integer("column_ordinal"));
    column.ordinal = ordinal.value_or(0);
    if (ColumnIndex(*answer.schema, kLength).ok()) {
      TRY_ASSIGN(column.max_length, row.Integer(kLength));
    }
    ordered.emplace_back(ordinal.value_or(0), std::move(column));
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CapturedColumn> result;
  for (auto& [ordinal, column] : ordered) result.push_back(std::move(column));
  return result;
}

Result<std::vector<SourceColumn>> ReadSourceColumns(
    const columns::RecordBatch& answer) {
  std::vector<SourceColumn> result;
  for (std::int64_t i = 0; i < answer.row_count; ++i) {
    const RowView row(answer, i);
    SourceColumn column;
    TRY_ASSIGN(column.name, NeededText(row, "name"));
    TRY_ASSIGN(const std::optional<std::int64_t> id, row.Integer("column_id"));
    column.column_id = id.value_or(0);
    TRY_ASSIGN(const std::optional<std::int64_t> computed, row.Integer("is_computed"));
    column.is_computed = computed.value_or(0) != 0;
    result.push_back(std::move(column));
  }
  return result;
}

Status CheckInstanceName(std::string_view name) {
  std::size_t character_count = 0;
  bool allowed = true;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == ']') allowed = false;
    if ((byte & 0xC0) != 0x80) ++character_count;
  }
  if (!allowed || character_count == 0 || character_count > 100) {
    return Error(ErrorId::kOptionInvalid)
        .With("option", "captureInstance")
        .With("value", std::string(name.substr(0, 200)))
        .With("allowed", "1 to 100 characters without ] and control characters");
  }
  return Unit{};
}

namespace {

bool IsOfTable(const CaptureInstance& instance, const CaptureInstance& other) {
  return instance.source_schema == other.source_schema &&
         instance.source_table == other.source_table;
}

// The instance called `name`, ignoring case unless there are several. Errors:
// CaptureInstanceNotFound (fact candidates).
Result<const CaptureInstance*> FindByName(const std::vector<CaptureInstance>& instances,
                                          std::string_view name) {
  std::vector<std::string> same_but_case;
  const CaptureInstance* match = nullptr;
  for (const CaptureInstance& instance : instances) {
    if (instance.name == name) return &instance;
    if (!EqualsIgnoringCase(instance.name, name)) continue;
    same_but_case.push_back(instance.name);
    match = &instance;
  }
  if (same_but_case.size() <= 1) return match;
  return Error(ErrorId::kCaptureInstanceNotFound)
      .With("capture_instance", std::string(name))
      .With("candidates", fmt::format("{}", fmt::join(same_but_case, ", ")));
}

// An instance of the only table whose default instance name is `name`, or null.
const CaptureInstance* FindByDefaultName(const std::vector<CaptureInstance>& instances,
                                         std::string_view name) {
  const CaptureInstance* match = nullptr;
  for (const CaptureInstance& instance : instances) {
    const std::string default_name =
        instance.source_schema + "_" + instance.source_table;
    if (!EqualsIgnoringCase(default_name, name)) continue;
    if (match != nullptr && !IsOfTable(*match, instance)) return nullptr;
    match = &instance;
  }
  return match;
}

}  // namespace

Result<InstanceFamily> ResolveFamily(const std::vector<CaptureInstance>& instances,
                                     std::string_view name,
                                     const std::vector<std::string>& also_known_as) {
  InstanceFamily family;
  TRY_ASSIGN(const CaptureInstance* member, FindByName(instances, name));
  family.name_is_gone = member == nullptr;
  if (member == nullptr) member = FindByDefaultName(instances, name);
  for (auto known = also_known_as.begin();
       member == nullptr && known != also_known_as.end(); ++known) {
    const auto listed = std::ranges::find(instances, *known, &CaptureInstance::name);
    if (listed != instances.end()) member = &*listed;
  }
  if (member == nullptr) {
    Error error(ErrorId::kCaptureInstanceNotFound);
    error.Add("capture_instance", std::string(name));
    const std::vector<std::string> nearest = NearestNames(instances, name);
    if (!nearest.empty())
      error.Add("nearest", fmt::format("{}", fmt::join(nearest, ", ")));
    error.Add("visible_count", std::to_string(instances.size()));
    return error;
  }
  for (const CaptureInstance& instance : instances) {
    if (IsOfTable(instance, *member)) family.instances.push_back(instance);
  }
  std::ranges::sort(family.instances, {}, [](const CaptureInstance& instance) {
    return std::tuple(!instance.start_lsn, instance.created_us,
                      instance.start_lsn.value_or(Lsn{}));
  });
  return family;
}

const CaptureInstance& InstanceFamily::Meant(std::string_view name) const {
  const auto found = FindName(instances, name, &CaptureInstance::name);
  return found == instances.end() ? newest() : *found;
}

std::vector<ReadPiece> CutAtInstances(const std::vector<CaptureInstance>& instances,
                                      const LsnWindow& window) {
  std::vector<ReadPiece> pieces;
  LsnWindow left = window;
  std::size_t current = 0;
  for (std::size_t next = 1; next < instances.size(); ++next) {
    if (!instances[next].start_lsn) continue;
    // What is below the newer instance's first LSN is the older one's.
    const std::optional<Lsn> below = instances[next].start_lsn->Previous();
    if (!below || window.through <= *below) break;
    if (left.after < *below) {
      pieces.push_back({current, {left.after, *below}});
      left.after = *below;
    }
    current = next;
  }
  pieces.push_back({current, left});
  return pieces;
}

std::optional<Lsn> LostUpTo(const std::vector<CaptureInstance>& instances,
                            const Lsn& position) {
  const std::optional<Lsn> next = position.Next();
  if (!next) return std::nullopt;
  const CaptureInstance* holder = &instances.front();
  for (const CaptureInstance& instance : instances) {
    if (instance.start_lsn && *instance.start_lsn <= *next) holder = &instance;
  }
  if (!holder->start_lsn || *next >= *holder->start_lsn) return std::nullopt;
  return holder->start_lsn;
}

}  // namespace mssql_cdc::cdc
