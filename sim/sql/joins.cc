// The operators that join, and what they keep of their right side.

#include <unordered_map>

#include "sim/sql/operators.h"
#include "sim/sql/saved_row.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

class NestedLoop final : public Operator {
 public:
  NestedLoop(OperatorPtr left, OperatorPtr right, std::vector<Bound> conditions,
             bool keeps_left, std::vector<Slot> right_slots)
      : left_(std::move(left)),
        right_(std::move(right)),
        conditions_(std::move(conditions)),
        keeps_left_(keeps_left),
        right_slots_(std::move(right_slots)) {}
  void Open(Context& context) override {
    right_->Forget();
    left_->Open(context);
    inside_ = false;
  }
  bool Next(Context& context) override {
    for (;;) {
      if (!inside_) {
        if (!left_->Next(context)) return false;
        right_->Open(context);
        inside_ = true;
        matched_ = false;
      }
      while (right_->Next(context)) {
        CheckStop(context);
        if (!AllHold(conditions_, context)) continue;
        matched_ = true;
        return true;
      }
      inside_ = false;
      if (keeps_left_ && !matched_) {
        SetNull(right_slots_, context);
        return true;
      }
    }
  }

 private:
  OperatorPtr left_, right_;
  std::vector<Bound> conditions_;
  bool keeps_left_;
  std::vector<Slot> right_slots_;
  bool inside_ = false;
  bool matched_ = false;
};

class Spool final : public Operator {
 public:
  Spool(OperatorPtr input, std::vector<Slot> slots)
      : input_(std::move(input)), slots_(std::move(slots)) {}
  void Open(Context& context) override {
    at_ = 0;
    if (filled_) return;
    filled_ = true;
    input_->Open(context);
    while (input_->Next(context)) rows_.push_back(Save(slots_, context));
  }
  bool Next(Context& context) override {
    if (at_ == rows_.size()) return false;
    Restore(slots_, rows_[at_++], context);
    return true;
  }
  void Forget() override {
    filled_ = false;
    rows_.clear();
  }

 private:
  OperatorPtr input_;
  std::vector<Slot> slots_;
  std::vector<Row> rows_;
  bool filled_ = false;
  std::size_t at_ = 0;
};

// What depends on nothing but a few slots of the left side is read once for each run of
// equal values in them: changes come in the order of their commits, and each looks up
// the time of its own.
class Remembered final : public Operator {
 public:
  Remembered(OperatorPtr input, std::vector<Slot> known, std::vector<Slot> slots)
      : input_(std::move(input)), known_(std::move(known)), slots_(std::move(slots)) {}

  void Open(Context& context) override {
    at_ = 0;
    replays_ = complete_ && IsSame(context);
    if (replays_) return;
    complete_ = false;
    records_ = true;
    rows_.clear();
    key_ = Save(known_, context);
    input_->Open(context);
  }
  bool Next(Context& context) override {
    if (replays_) {
      if (at_ == rows_.size()) return false;
      // A single row is still where it was.
      if (rows_.size() > 1) Restore(slots_, rows_[at_], context);
      ++at_;
      return true;
    }
    if (!input_->Next(context)) {
      complete_ = records_;
      return false;
    }
    if (rows_.size() == kRowCountMax) records_ = false;
    if (records_) rows_.push_back(Save(slots_, context));
    return true;
  }
  void Forget() override {
    complete_ = false;
    input_->Forget();
  }

 private:
  static constexpr std::size_t kRowCountMax = 8;

  bool IsSame(Context& context) const {
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (!(context.slots[known_[i]] == key_[i])) return false;
    }
    return true;
  }

  OperatorPtr input_;
  std::vector<Slot> known_, slots_;
  Row key_;
  std::vector<Row> rows_;
  std::size_t at_ = 0;
  bool records_ = false;
  bool complete_ = false;  // rows_ are all rows there are for key_.
  bool replays_ = false;
};

class HashJoin final : public Operator {
 public:
  HashJoin(OperatorPtr left, OperatorPtr right, std::vector<HashKeySpec> keys,
           std::vector<Bound> conditions, bool keeps_left,
           std::vector<Slot> right_slots)
      : left_(std::move(left)),
        right_(std::move(right)),
        keys_(std::move(keys)),
        conditions_(std::move(conditions)),
        keeps_left_(keeps_left),
        right_slots_(std::move(right_slots)) {}

  void Open(Context& context) override {
    rows_.clear();
    right_->Open(context);
    std::string key;
    while (right_->Next(context)) {
      if (Key(context, false, key)) rows_[key].push_back(Save(right_slots_, context));
    }
    left_->Open(context);
    found_ = nullptr;
    inside_ = false;
  }

  bool Next(Context& context) override {
    std::string key;
    for (;;) {
      if (!inside_) {
        if (!left_->Next(context)) return false;
        found_ = nullptr;
        if (Key(context, true, key)) {
          const auto at = rows_.find(key);
          if (at != rows_.end()) found_ = &at->second;
        }
        inside_ = true;
        matched_ = false;
        at_ = 0;
      }
      while (found_ != nullptr && at_ < found_->size()) {
        Restore(right_slots_, (*found_)[at_++], context);
        if (!AllHold(conditions_, context)) continue;
        matched_ = true;
        return true;
      }
      inside_ = false;
      if (keeps_left_ && !matched_) {
        SetNull(right_slots_, context);
        return true;
      }
    }
  }

 private:
  // False if a part is NULL, which equals nothing.
  bool Key(Context& context, bool left, std::string& key) const {
    key.clear();
    Value value;
    for (const HashKeySpec& spec : keys_) {
      (left ? spec.left : spec.right)->evaluate(context, value);
      if (value.IsNull()) return false;
      AppendHashKey(value, spec.type, spec.rule, key);
    }
    return true;
  }

  OperatorPtr left_, right_;
  std::vector<HashKeySpec> keys_;
  std::vector<Bound> conditions_;
  bool keeps_left_;
  std::vector<Slot> right_slots_;
  std::unordered_map<std::string, std::vector<Row>> rows_;
  const std::vector<Row>* found_ = nullptr;
  std::size_t at_ = 0;
  bool inside_ = false;
  bool matched_ = false;
};

class FullJoin final : public Operator {
 public:
  FullJoin(OperatorPtr left, OperatorPtr right, std::vector<Bound> conditions,
           std::vector<Slot> left_slots, std::vector<Slot> right_slots)
      : left_(std::move(left)),
        right_(std::move(right)),
        conditions_(std::move(conditions)),
        left_slots_(std::move(left_slots)),
        right_slots_(std::move(right_slots)) {}

  void Open(Context& context) override {
    rows_.clear();
    right_->Open(context);
    while (right_->Next(context)) rows_.push_back(Save(right_slots_, context));
    matched_.assign(rows_.size(), false);
    left_->Open(context);
    inside_ = false;
    tail_ = false;
    at_ = 0;
  }

  bool Next(Context& context) override {
    while (!tail_) {
      if (!inside_) {
        if (!left_->Next(context)) {
          tail_ = true;
          at_ = 0;
          break;
        }
        inside_ = true;
        any_ = false;
        at_ = 0;
      }
      while (at_ < rows_.size()) {
        const std::size_t row = at_++;
        Restore(right_slots_, rows_[row], context);
        if (!AllHold(conditions_, context)) continue;
        any_ = true;
        matched_[row] = true;
        return true;
      }
      inside_ = false;
      if (!any_) {
        SetNull(right_slots_, context);
        return true;
      }
    }
    while (at_ < rows_.size()) {
      const std::size_t row = at_++;
      if (matched_[row]) continue;
      Restore(right_slots_, rows_[row], context);
      SetNull(left_slots_, context);
      return true;
    }
    return false;
  }

 private:
  OperatorPtr left_, right_;
  std::vector<Bound> conditions_;
  std::vector<Slot> left_slots_, right_slots_;
  std::vector<Row> rows_;
  std::vector<bool> matched_;
  bool inside_ = false, any_ = false, tail_ = false;
  std::size_t at_ = 0;
};

}  // namespace

OperatorPtr MakeNestedLoop(OperatorPtr left, OperatorPtr right,
                           std::vector<Bound> conditions, bool keeps_left,
                           std::vector<Slot> right_slots) {
  return std::make_unique<NestedLoop>(std::move(left), std::move(right),
                                      std::move(conditions), keeps_left,
                                      std::move(right_slots));
}
OperatorPtr MakeSpool(OperatorPtr input, std::vector<Slot> slots) {
  return std::make_unique<Spool>(std::move(input), std::move(slots));
}
OperatorPtr MakeRemembered(OperatorPtr input, std::vector<Slot> known,
                           std::vector<Slot> slots) {
  return std::make_unique<Remembered>(std::move(input), std::move(known),
                                      std::move(slots));
}
OperatorPtr MakeHashJoin(OperatorPtr left, OperatorPtr right,
                         std::vector<HashKeySpec> keys, std::vector<Bound> conditions,
                         bool keeps_left, std::vector<Slot> right_slots) {
  return std::make_unique<HashJoin>(std::move(left), std::move(right), std::move(keys),
                                    std::move(conditions), keeps_left,
                                    std::move(right_slots));
}
OperatorPtr MakeFullJoin(OperatorPtr left, OperatorPtr right,
                         std::vector<Bound> conditions, std::vector<Slot> left_slots,
                         std::vector<Slot> right_slots) {
  return std::make_unique<FullJoin>(std::move(left), std::move(right),
                                    std::move(conditions), std::move(left_slots),
                                    std::move(right_slots));
}

}  // namespace mssql_cdc::sim
