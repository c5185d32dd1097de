#include "pipeline/latest_images.h"

#include <algorithm>

namespace mssql_cdc::pipeline {
namespace {

constexpr std::size_t kSlotCountMin = 1024;
constexpr std::size_t kKeyBlockSizeBytes = std::size_t{1} << 20;

}  // namespace

std::string_view LatestImages::KeyOf(const Image& image) const {
  return {keys_[image.key_block].data() + image.key_begin, image.key_size};
}

std::size_t LatestImages::Locate(std::uint64_t hash, std::string_view key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].index != kNone) {
    if (slots_[at].hash == hash && KeyOf(images_[slots_[at].index]) == key) return at;
    at = (at + 1) & mask;
  }
  return at;
}

void LatestImages::Grow() {
  std::vector<Slot> old(slots_.empty() ? kSlotCountMin : slots_.size() * 2);
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.index == kNone) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].index != kNone) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

void LatestImages::KeepKey(std::string_view key, Image& image) {
  if (keys_.empty() || keys_.back().size() + key.size() > keys_.back().capacity()) {
    keys_.emplace_back();
    keys_.back().reserve(std::max(kKeyBlockSizeBytes, key.size()));
  }
  std::vector<char>& block = keys_.back();
  image.key_block = static_cast<std::uint32_t>(keys_.size() - 1);
  image.key_begin = static_cast<std::uint32_t>(block.size());
  image.key_size = static_cast<std::uint32_t>(key.size());
  block.insert(block.end(), key.begin(), key.end());
}

void LatestImages::Offer(std::uint64_t hash, std::string_view key,
                         const ChangeOrder& order, std::int64_t ordinal,
                         bool is_of_chunk) {
  if ((images_.size() + 1) * 3 > slots_.size() * 2) Grow();
  const std::size_t at = Locate(hash, key);
  if (slots_[at].index == kNone) {
    Image image;
    image.order = order;
    image.ordinal = ordinal;
    image.is_of_chunk = is_of_chunk;
    KeepKey(key, image);
    slots_[at] = {hash, static_cast<std::uint32_t>(images_.size())};
    images_.push_back(image);
    return;
  }
  Image& image = images_[slots_[at].index];
  image.is_of_chunk = image.is_of_chunk || is_of_chunk;
  if (order <= image.order) return;
  image.order = order;
  image.ordinal = ordinal;
}

LatestImages::Image* LatestImages::Find(std::uint64_t hash, std::string_view key) {
  if (slots_.empty()) return nullptr;
  const std::size_t at = Locate(hash, key);
  return slots_[at].index == kNone ? nullptr : &images_[slots_[at].index];
}

std::size_t LatestImages::SizeBytes() const {
  std::size_t size_bytes =
      slots_.size() * sizeof(Slot) + images_.size() * sizeof(Image);
  for (const std::vector<char>& block : keys_) size_bytes += block.size();
  return size_bytes;
}

void LatestImages::Clear() {
  slots_.clear();
  images_.clear();
  keys_.clear();
}

bool Goes(const SilverRow& row, LatestImages::Image* image, bool rebuild) {
  const bool chunk_is_newer = row.chunk_stamp && row.lsn && *row.lsn < *row.chunk_stamp;
  if (image == nullptr) return rebuild || chunk_is_newer;
  if (chunk_is_newer && !image->is_of_chunk) {
    // The chunk was read without the key: a delete at its stamp.
    ChangeOrder deleted;
    deleted.lsn = *row.chunk_stamp;
    deleted.operation = 1;
    if (image->order < deleted) {
      image->is_settled = true;
      return true;
    }
  }
  const bool image_is_newer = row.lsn && image->order.lsn > *row.lsn;
  if (!image_is_newer) image->is_settled = true;
  return image_is_newer;
}

}  // namespace mssql_cdc::pipeline
