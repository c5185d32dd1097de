#include "sim/engine/database_stay.h"

#include <utility>

namespace mssql_cdc::sim {

bool StayRegister::HoldsOthers(std::int64_t own_count) const {
  const std::lock_guard lock(mutex_);
  return count_ > own_count;
}

void StayRegister::EndAll(DatabaseStay* kept) {
  const std::lock_guard lock(mutex_);
  ++era_;
  count_ = kept == nullptr ? 0 : 1;
  if (kept != nullptr) kept->era_ = era_;
}

bool StayRegister::single_user() const {
  const std::lock_guard lock(mutex_);
  return single_user_;
}

void StayRegister::SetSingleUser(bool on) {
  const std::lock_guard lock(mutex_);
  single_user_ = on;
}

DatabaseStay::DatabaseStay(std::shared_ptr<StayRegister> place)
    : place_(std::move(place)) {
  const std::lock_guard lock(place_->mutex_);
  era_ = place_->era_;
  ++place_->count_;
}

DatabaseStay& DatabaseStay::operator=(DatabaseStay&& other) noexcept {
  if (this == &other) return *this;
  Leave();
  place_ = std::move(other.place_);
  era_ = other.era_;
  return *this;
}

bool DatabaseStay::has_ended() const {
  if (place_ == nullptr) return false;
  const std::lock_guard lock(place_->mutex_);
  return era_ != place_->era_;
}

void DatabaseStay::Leave() {
  const std::shared_ptr<StayRegister> place = std::exchange(place_, nullptr);
  if (place == nullptr) return;
  const std::lock_guard lock(place->mutex_);
  if (era_ == place->era_) --place->count_;
}

}  // namespace mssql_cdc::sim
