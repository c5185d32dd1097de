// sys.fn_cdc_* and the functions cdc.fn_cdc_get_all_changes_<ci> and
// cdc.fn_cdc_get_net_changes_<ci> (facts 1.6).

#include <algorithm>
#include <map>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"
#include "sim/engine/change_rows.h"
#include "sim/engine/rows_table.h"
#include "sim/engine/stored_table.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {
namespace {

using Arguments = std::span<const std::optional<TypedValue>>;

constexpr std::string_view kAllChanges = "fn_cdc_get_all_changes_";
constexpr std::string_view kNetChanges = "fn_cdc_get_net_changes_";

Value LsnValue(const Lsn& lsn) {
  return BytesValue(lsn.bytes.data(), lsn.bytes.size());
}

std::optional<Lsn> LsnArgument(const std::optional<TypedValue>& argument) {
  if (!argument) return std::nullopt;
  const auto* bytes = std::get_if<Bytes>(&argument->value.held);
  if (bytes == nullptr) return std::nullopt;
  return LsnFrom({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
}

std::string TextArgument(const std::optional<TypedValue>& argument) {
  return argument ? TextOf(argument->value) : std::string();
}

std::optional<Lsn> SessionMaxLsn(Session& session) {
  Connection& reader = session.Reader(session.current());
  return MaxLsn(reader, *session.current(), *session.CatalogOf(session.current()));
}

// 0x0 for an unknown instance, a missing right, or one that capture has not met.
Lsn SessionMinLsn(Session& session, const std::string& name) {
  const CatalogPtr catalog = session.CatalogOf(session.current());
  const CaptureInstance* instance = catalog->FindInstance(name);
  if (instance == nullptr ||
      (!session.MayReadInstance(*session.current(), *catalog, *instance) &&
       Does(Behaviour::kMinLsnZeroWithoutRight))) {
    return {};
  }
  if (!Does(Behaviour::kMinLsnZeroUntilCaptured)) {
    return instance->start_lsn.value_or(Lsn{}.Incremented());
  }
  return instance->start_lsn.value_or(Lsn{});
}

Value MapLsnToTime(Session& session, const std::optional<Lsn>& lsn) {
  Connection& reader = session.Reader(session.current());
  const TablePtr mapping =
      session.CatalogOf(session.current())->FindTable("cdc", "lsn_time_mapping");
  if (mapping == nullptr || !lsn) return {};
  Statement read = reader.Prepare("SELECT " + mapping->columns[2].physical + " FROM " +
                                  mapping->physical + " WHERE " +
                                  mapping->columns[0].physical + " = ?");
  read.BindBlob(1, lsn->bytes.data(), 10);
  Value value;
  if (read.Next() == Step::kRow) DecodeColumn(DateTimeType(), read, 0, value);
  return value;
}

Value MapTimeToLsn(Session& session, const std::string& how, const Value& time) {
  Connection& reader = session.Reader(session.current());
  const TablePtr mapping =
      session.CatalogOf(session.current())->FindTable("cdc", "lsn_time_mapping");
  if (mapping == nullptr || time.IsNull()) return {};
  const std::string operation = LowerAscii(Trim(how));
  const std::string& start = mapping->columns[0].physical;
  const std::string& end = mapping->columns[2].physical;
  std::string comparison;
  bool largest = true;
  if (operation == "largest less than") {
    comparison = " < ?";
  } else if (operation == "largest less than or equal") {
    comparison = " <= ?";
  } else if (operation == "smallest greater than") {
    comparison = " > ?";
    largest = false;
  } else if (operation == "smallest greater than or equal") {
    comparison = " >= ?";
    largest = false;
  } else {
    return {};
  }
  // Of equal times, the largest or the smallest LSN.
  const char* direction = largest ? " DESC" : "";
  const char* tie = Does(Behaviour::kTiesMapToEnds) ? direction : "";
  Statement read = reader.Prepare("SELECT " + start + " FROM " + mapping->physical +
                                  " WHERE " + end + comparison + " ORDER BY " + end +
                                  direction + "," + start + tie + " LIMIT 1");
  Cell cell;
  EncodeCell(DateTimeType(), time, cell);
  BindCell(read, 1, cell);
  if (read.Next() != Step::kRow) return {};
  return LsnValue(LsnFrom(read.Blob(0)));
}

std::optional<std::int32_t> ColumnOrdinal(Session& session,
                                          const std::string& instance_name,
                                          const std::string& column) {
  const CatalogPtr catalog = session.CatalogOf(session.current());
  const CaptureInstance* instance = catalog->FindInstance(instance_name);
  if (instance == nullptr) return std::nullopt;
  for (const CapturedColumn& captured : instance->columns) {
    if (catalog->SameName(captured.name, column)) return captured.ordinal;
  }
  return std::nullopt;
}

Value IsBitSet(const std::optional<std::int64_t>& position, const Value& mask) {
  const auto* bytes = std::get_if<Bytes>(&mask.held);
  if (bytes == nullptr || !position) return {};
  const std::int64_t bit = *position - 1;
  if (bit < 0 || bit / 8 >= static_cast<std::int64_t>(bytes->size()))
    return IntValue(0);
  const std::uint8_t byte =
      (*bytes)[bytes->size() - 1 - static_cast<std::size_t>(bit / 8)];
  return IntValue(byte >> (bit % 8) & 1);
}

ScalarFunction Function(std::vector<SqlType> parameters, SqlType result,
                        std::function<Value(Arguments)> call) {
  ScalarFunction function;
  function.argument_count_min = parameters.size();
  function.parameters = std::move(parameters);
  function.result = std::move(result);
  function.call = std::move(call);
  return function;
}

[[noreturn]] void RaiseOutsideInterval(const std::string& function) {
  RaiseSql(313, 16, 3,
           "An insufficient number of arguments were supplied for the procedure or "
           "function " +
               function + ".");
}

// The columns at a change table's end that the functions do not show: __$command_id.
std::size_t HiddenColumns(const TableMeta& table) {
  return HasCommandId(table) && Does(Behaviour::kFunctionHidesCommandId) ? 1 : 0;
}

// The order of the clustered index.
std::vector<ScanShape::Order> ChangeOrder(const TableMeta& table) {
  std::vector<ScanShape::Order> order = {{0, false}, {2, false}, {3, false}};
  if (HasCommandId(table)) {
    order.insert(order.begin() + 1, {table.columns.size() - 1, false});
  }
  return order;
}

// The rows of one instance's change table between two LSNs, both included.
class ChangeCursor final : public RowCursor {
 public:
  ChangeCursor(Session& session, const TablePtr& table, const Lsn& first,
               const Lsn& last, bool old_images)
      : table_(std::make_shared<StoredTable>(session, session.current(), table)),
        count_(table->columns.size()),
        old_images_(old_images) {
    ScanRequest request;
    request.shape.constraints = {
        {0, Comparison::kGreaterOrEqual},
        {0, Does(Behaviour::kIntervalClosed) ? Comparison::kLessOrEqual
                                             : Comparison::kLess}};
    request.values = {LsnValue(first), LsnValue(last)};
    request.shape.order = ChangeOrder(*table);
    for (std::size_t i = 0; i < count_; ++i) request.shape.columns.push_back(i);
    cursor_ = table_->Open(request);
  }
  // One row without __$end_lsn and __$command_id.
  bool Next(Row& row) override {
    while (cursor_->Next(raw_)) {
      const auto* operation = std::get_if<std::int64_t>(&raw_[3].held);
      if (!old_images_ && operation != nullptr && *operation == 3 &&
          Does(Behaviour::kOldImagesOnRequest)) {
        continue;
      }
      row.clear();
      row.push_back(raw_[0]);
      const std::size_t end = count_ - HiddenColumns(table_->meta());
      for (std::size_t i = 2; i < end; ++i) row.push_back(raw_[i]);
      return true;
    }
    return false;
  }

 private:
  std::shared_ptr<StoredTable> table_;
  std::unique_ptr<RowCursor> cursor_;
  std::size_t count_;
  bool old_images_;
  Row raw_;
};

struct Range {
  Lsn first;
  Lsn last;
  TablePtr table;
  CaptureInstance instance;
};

// Checks rights and interval as the functions do.
Range RangeOf(Session& session, const std::string& function, const std::string& name,
              Arguments arguments) {
  const std::shared_ptr<Database>& database = session.current();
  const std::optional<Lsn> max = SessionMaxLsn(session);
  const CatalogPtr catalog = session.CatalogOf(database);
  const CaptureInstance* instance = catalog->FindInstance(name);
  if (instance == nullptr) {
    RaiseSql(208, 16, 1, "Invalid object name 'cdc." + function + "'.");
  }
  if (!session.MayReadInstance(*database, *catalog, *instance)) {
    RaiseSql(229, 14, 5,
             "The SELECT permission was denied on the object '" + function +
                 "', database '" + database->name() + "', schema 'cdc'.");
  }
  std::optional<Lsn> first = LsnArgument(arguments[0]);
  std::optional<Lsn> last = LsnArgument(arguments[1]);
  const Lsn min = instance->start_lsn.value_or(Lsn{});
  if (!Does(Behaviour::kNullEndRefused)) {
    if (!first) first = min;
    if (!last) last = max;
  }
  if (!first || !last || !max || min.IsZero() ||
      (*first < min && Does(Behaviour::kBelowMinRefused)) ||
      (*last > *max && Does(Behaviour::kAboveMaxRefused)) ||
      (*first > *last && Does(Behaviour::kReversedEndsRefused))) {
    const bool net = function.substr(0, kNetChanges.size()) == kNetChanges;
    RaiseOutsideInterval(net ? "cdc.fn_cdc_get_net_changes_ ... "
                             : "cdc.fn_cdc_get_all_changes_ ... ");
  }
  return {*first, *last, catalog->TableById(instance->change_table_id), *instance};
}

// The last image of each key, and what happened to it as a whole.
std::vector<Row> NetChanges(const Range& range, RowCursor& changes,
                            const std::string& filter) {
  struct Net {
    std::int64_t first_operation = 0;
    Row last;
    Bytes mask;
  };
  std::map<std::string, Net> by_key;
  std::vector<std::string> order;
  Row row;
  while (changes.Next(row)) {
    std::string key;
    if (!Does(Behaviour::kNetChangesPerKey)) key = std::to_string(order.size());
    for (const std::int32_t id : range.instance.key_column_ids) {
      for (std::size_t i = 0; i < range.instance.columns.size(); ++i) {
        if (range.instance.columns[i].column_id != id) continue;
        Cell cell;
        EncodeCell(range.table->columns[i + kFirstCaptured].type, row[i + 4], cell);
        AppendCell(key, cell);
      }
    }
    Net& net = by_key[key];
    const std::int64_t operation = std::get<std::int64_t>(row[2].held);
    if (net.last.empty()) {
      net.first_operation = operation;
      order.push_back(key);
    }
    if (const auto* mask = std::get_if<Bytes>(&row[3].held); mask && operation == 4) {
      net.mask.resize(std::max(net.mask.size(), mask->size()));
      for (std::size_t i = 0; i < mask->size(); ++i) {
        net.mask[i] = static_cast<std::uint8_t>(net.mask[i] | (*mask)[i]);
      }
    }
    net.last = row;
  }
  std::vector<Row> rows;
  for (const std::string& key : order) {
    Net& net = by_key[key];
    const std::int64_t last = std::get<std::int64_t>(net.last[2].held);
    const bool born = net.first_operation == 2;
    if (born && last == 1) continue;
    std::int64_t operation = last == 1 ? 1 : born ? 2 : 4;
    if (filter == "all with merge" && operation != 1) operation = 5;
    net.last[2] = IntValue(operation);
    net.last[3] =
        filter == "all with mask" && operation == 4 ? Value{net.mask, {}} : Value{};
    rows.push_back(std::move(net.last));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::get<Bytes>(a[0].held) < std::get<Bytes>(b[0].held);
  });
  return rows;
}

}  // namespace

std::optional<TableFunction> CdcTableFunction(Session& session,
                                              const std::string& given_name) {
  const std::string prefix = LowerAscii(given_name.substr(0, kAllChanges.size()));
  const bool all = prefix == kAllChanges;
  const bool net = prefix == kNetChanges;
  if (!all && !net) return std::nullopt;
  const std::string instance_name = given_name.substr(kAllChanges.size());
  const std::string name = prefix + instance_name;
  const CatalogPtr catalog = session.CatalogOf(session.current());
  const CaptureInstance* instance = catalog->FindInstance(instance_name);
  if (instance == nullptr || (net && !instance->net_changes)) return std::nullopt;
  const TablePtr table = catalog->TableById(instance->change_table_id);
  if (table == nullptr) return std::nullopt;
  TableFunction function;
  function.parameters = {BinaryType(10), BinaryType(10), NVarChar(30)};
  function.argument_count_min = 3;
  for (std::size_t i = 0; i < table->columns.size() - HiddenColumns(*table); ++i) {
    const ColumnMeta& column = table->columns[i];
    if (i != 1)
      function.columns.push_back(Info(column.name, column.type, column.nullable));
  }
  function.call = [&session, name, instance_name,
                   net](Arguments arguments) -> std::unique_ptr<RowCursor> {
    const Range range = RangeOf(session, name, instance_name, arguments);
    const std::string filter = LowerAscii(Trim(TextArgument(arguments[2])));
    if (!net) {
      if (filter != "all" && filter != "all update old") {
        RaiseOutsideInterval("cdc.fn_cdc_get_all_changes_ ... ");
      }
      return std::make_unique<ChangeCursor>(session, range.table, range.first,
                                            range.last, filter == "all update old");
    }
    if (filter != "all" && filter != "all with mask" && filter != "all with merge") {
      RaiseOutsideInterval("cdc.fn_cdc_get_net_changes_ ... ");
    }
    ChangeCursor changes(session, range.table, range.first, range.last, false);
    return std::make_unique<RowsCursor>(NetChanges(range, changes, filter));
  };
  return function;
}

std::optional<ScalarFunction> CdcFunction(Session& session, const std::string& name) {
  const SqlType lsn = BinaryType(10);
  if (name == "fn_cdc_get_max_lsn") {
    return Function({}, lsn, [&session](Arguments) {
      const std::optional<Lsn> max = SessionMaxLsn(session);
      return max ? LsnValue(*max) : Value{};
    });
  }
  if (name == "fn_cdc_get_min_lsn") {
    return Function({SysName()}, lsn, [&session](Arguments arguments) {
      return LsnValue(SessionMinLsn(session, TextArgument(arguments[0])));
    });
  }
  if (name == "fn_cdc_increment_lsn" || name == "fn_cdc_decrement_lsn") {
    const bool up = name == "fn_cdc_increment_lsn";
    return Function({lsn}, lsn, [up](Arguments arguments) {
      const std::optional<Lsn> given = LsnArgument(arguments[0]);
      if (!given) return Value{};
      return LsnValue(up ? given->Incremented() : given->Decremented());
    });
  }
  if (name == "fn_cdc_map_lsn_to_time") {
    return Function({lsn}, DateTimeType(), [&session](Arguments arguments) {
      return MapLsnToTime(session, LsnArgument(arguments[0]));
    });
  }
  if (name == "fn_cdc_map_time_to_lsn") {
    return Function({NVarChar(30), DateTimeType()}, lsn,
                    [&session](Arguments arguments) {
                      return MapTimeToLsn(session, TextArgument(arguments[0]),
                                          arguments[1] ? arguments[1]->value : Value{});
                    });
  }
  if (name == "fn_cdc_get_column_ordinal") {
    return Function({SysName(), SysName()}, IntType(), [&session](Arguments arguments) {
      const auto ordinal = ColumnOrdinal(session, TextArgument(arguments[0]),
                                         TextArgument(arguments[1]));
      return ordinal ? IntValue(*ordinal) : Value{};
    });
  }
  if (name == "fn_cdc_is_bit_set") {
    return Function({IntType(), VarBinaryOf(128)}, BitType(), [](Arguments arguments) {
      std::optional<std::int64_t> position;
      if (arguments[0]) {
        const auto* integer = std::get_if<std::int64_t>(&arguments[0]->value.held);
        if (integer != nullptr) position = *integer;
      }
      return IsBitSet(position, arguments[1] ? arguments[1]->value : Value{});
    });
  }
  if (name == "fn_cdc_has_column_changed") {
    return Function({SysName(), SysName(), VarBinaryOf(128)}, BitType(),
                    [&session](Arguments arguments) {
                      const auto ordinal =
                          ColumnOrdinal(session, TextArgument(arguments[0]),
                                        TextArgument(arguments[1]));
                      return IsBitSet(ordinal ? std::optional<std::int64_t>(*ordinal)
                                              : std::nullopt,
                                      arguments[2] ? arguments[2]->value : Value{});
                    });
  }
  return std::nullopt;
}

}  // namespace mssql_cdc::sim
