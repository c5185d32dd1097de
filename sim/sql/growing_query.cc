#include "sim/sql/growing_query.h"

#include <algorithm>
#include <utility>

#include "sim/kept_rows.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::size_t kLsnSizeBytes = 10;
// A part is handed over when it has gathered so much; a greater row is not kept, so
// that a large value is in memory once.
constexpr std::size_t kPartSizeBytes = 8u << 20;
constexpr std::size_t kRowSizeBytesMax = 64u << 10;
// Between two looks at whether the client wants more.
constexpr std::size_t kSendSizeBytes = 1u << 20;

struct Interval {
  std::string after;  // Empty: from the beginning.
  std::string through = std::string(kLsnSizeBytes, '\xFF');
};

// One less; empty below the least.
std::string Below(std::string lsn) {
  for (std::size_t i = lsn.size(); i-- > 0;) {
    if (lsn[i] != '\0') {
      lsn[i] = static_cast<char>(lsn[i] - 1);
      return lsn;
    }
    lsn[i] = '\xFF';
  }
  return {};
}

std::optional<std::string> LsnOf(const Value& value) {
  const auto* bytes = std::get_if<Bytes>(&value.held);
  if (bytes == nullptr || bytes->size() != kLsnSizeBytes) return std::nullopt;
  return std::string(bytes->begin(), bytes->end());
}

// Absent: the bounds are no LSNs, or exclude everything.
std::optional<Interval> IntervalOf(const GrowingQuery& query, Context& context) {
  Interval interval;
  for (const ScanConstraintSpec& bound : query.bounds) {
    const SqlType& type = query.sources[0]->columns()[0].type;
    const std::optional<Value> value = ValueInColumn(bound, type, context);
    const std::optional<std::string> lsn = value ? LsnOf(*value) : std::nullopt;
    if (!lsn) return std::nullopt;
    const Comparison comparison = bound.comparison;
    if (comparison == Comparison::kGreater) {
      interval.after = std::max(interval.after, *lsn);
    } else if (comparison != Comparison::kLess &&
               comparison != Comparison::kLessOrEqual) {
      interval.after = std::max(interval.after, Below(*lsn));
    }
    if (comparison == Comparison::kLess) {
      interval.through = std::min(interval.through, Below(*lsn));
    } else if (comparison == Comparison::kLessOrEqual ||
               comparison == Comparison::kEqual) {
      interval.through = std::min(interval.through, *lsn);
    }
  }
  if (interval.through <= interval.after) return std::nullopt;
  return interval;
}

// Puts rows together to parts while they are sent.
class Recorder {
 public:
  Recorder(KeptRows& kept, KeptRows::Key key, Interval interval)
      : kept_(kept), key_(std::move(key)), interval_(std::move(interval)) {
    recording_ = interval_.after < interval_.through;
    Begin(interval_.after);
  }

  // Sends a row, and keeps it if it belongs to the interval.
  bool Send(const Row& row, const Value& lsn, ReplySink& sink) {
    if (recording_) Place(row, lsn);
    if (!recording_) return sink.Row(row);
    bytes_.clear();
    if (!sink.RowAsBytes(row, bytes_)) return false;
    part_->rows.Append(bytes_);
    ++row_count_;
    return true;
  }

  // All rows of the interval were sent.
  void Finish() {
    if (!recording_) return;
    CloseCommit();
    HandOver(interval_.through);
  }

 private:
  void Begin(std::string after) {
    part_ = std::make_shared<KeptPart>();
    part_->after = std::move(after);
    row_count_ = 0;
  }

  void Place(const Row& row, const Value& value) {
    const std::optional<std::string> lsn = LsnOf(value);
    if (!lsn || *lsn < last_ || *lsn <= interval_.after) {
      // Not in the order of the commits: none of it may be kept.
      kept_.Drop(key_);
      recording_ = false;
      return;
    }
    if (*lsn != last_) {
      CloseCommit();
      if (*lsn > interval_.through) {
        HandOver(interval_.through);
        recording_ = false;
        return;
      }
      if (part_->rows.size_bytes() >= kPartSizeBytes) HandOver(last_);
      last_ = *lsn;
    }
    if (recording_ && SizeOf(row) > kRowSizeBytesMax) GiveUp();
  }

  void CloseCommit() {
    if (row_count_ == 0 || last_.empty()) return;
    if (!part_->commits.empty() && part_->commits.back().lsn == last_) return;
    part_->commits.push_back({last_, part_->rows.size_bytes(), row_count_});
  }

  // Keeps the commits before the one that cannot be kept whole.
  void GiveUp() {
    recording_ = false;
    if (part_->commits.empty()) return;
    part_->through = part_->commits.back().lsn;
    kept_.Add(key_, part_);
  }

  void HandOver(const std::string& through) {
    part_->through = through;
    part_->rows.Trim();
    if (part_->after < through) recording_ = kept_.Add(key_, part_);
    Begin(through);
  }

  static std::size_t SizeOf(const Row& row) {
    std::size_t size = 0;
    for (const Value& value : row) {
      if (const auto* text = std::get_if<Text>(&value.held)) size += text->size() * 2;
      if (const auto* bytes = std::get_if<Bytes>(&value.held)) size += bytes->size();
    }
    return size;
  }

  KeptRows& kept_;
  const KeptRows::Key key_;
  const Interval interval_;
  std::shared_ptr<KeptPart> part_;
  std::uint64_t row_count_ = 0;  // Of part_.
  std::string last_;             // The LSN of the row before.
  std::string bytes_;
  bool recording_ = false;
};

void SendKept(const KeptRows::Found& found, Context& context, ReplySink& sink) {
  for (const KeptRows::Slice& slice : found.slices) {
    for (std::size_t at = slice.begin; at < slice.end;) {
      CheckStop(context);
      const std::string_view bytes =
          slice.part->rows.At(at, std::min(slice.end, at + kSendSizeBytes));
      if (!sink.RowBytes(bytes)) throw StopRequested{};
      at += bytes.size();
    }
  }
}

struct Ground {
  KeptRows::Key key;
  std::string through;  // What is at or below it stays as it is.
};

// Absent: one of the sources does not only grow.
std::optional<Ground> GroundOf(const GrowingQuery& query, const std::string& form) {
  Ground ground;
  for (const auto& source : query.sources) {
    const std::optional<Growth> growth = source->growth();
    if (!growth) return std::nullopt;
    const KeptRows::Key key{growth->database_id, growth->rewrite_count, {}};
    if (source == query.sources[0]) {
      ground.key = key;
      ground.through = growth->through;
    } else if (key.database_id != ground.key.database_id) {
      return std::nullopt;
    }
    ground.key.statement += std::to_string(growth->table_id) + ' ';
  }
  ground.key.statement += query.shape + form;
  return ground;
}

}  // namespace

std::optional<std::int64_t> SendGrowing(const GrowingQuery& query,
                                        const std::vector<OutputColumn>& columns,
                                        Operator& plan, Context& context,
                                        ReplySink& sink) {
  KeptRows* kept = context.environment.kept_rows();
  const std::optional<std::string> form = sink.RowForm();
  if (kept == nullptr || !form) return std::nullopt;
  const std::optional<Ground> ground = GroundOf(query, *form);
  if (!ground) return std::nullopt;
  std::optional<Interval> asked = IntervalOf(query, context);
  if (!asked) return std::nullopt;
  const std::string through = std::min(asked->through, ground->through);
  const KeptRows::Found found = kept->Find(ground->key, asked->after, through);
  SendKept(found, context, sink);
  std::int64_t count = static_cast<std::int64_t>(found.row_count);
  if (found.through >= asked->through) return count;
  if (!found.through.empty()) {
    Value above;
    above.held = Bytes(found.through.begin(), found.through.end());
    context.floor = ScanFloor{query.sources[0].get(), std::move(above)};
  }
  Recorder recorder(*kept, ground->key, {found.through, through});
  plan.Open(context);
  Row row(columns.size());
  while (plan.Next(context)) {
    ++count;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::swap(row[i], context.slots[columns[i].slot]);
    }
    if (!recorder.Send(row, row[query.lsn_index], sink)) throw StopRequested{};
  }
  recorder.Finish();
  return count;
}

}  // namespace mssql_cdc::sim
