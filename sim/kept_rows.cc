#include "sim/kept_rows.h"

#include <algorithm>
#include <utility>

namespace mssql_cdc::sim {
namespace {

constexpr std::size_t kPieceSizeBytes = 1u << 20;
// What a commit, a part and an entry take beside their bytes, roughly.
constexpr std::size_t kCommitSizeBytes = 64;
constexpr std::size_t kPartSizeBytes = 512;

std::size_t SizeOf(const KeptPart& part) {
  return part.rows.size_bytes() + part.commits.size() * kCommitSizeBytes +
         kPartSizeBytes;
}

// The first commit of a part above `lsn`, as a number.
std::size_t FirstAbove(const KeptPart& part, const std::string& lsn) {
  const auto found = std::upper_bound(
      part.commits.begin(), part.commits.end(), lsn,
      [](const std::string& a, const KeptPart::Commit& b) { return a < b.lsn; });
  return static_cast<std::size_t>(found - part.commits.begin());
}

}  // namespace

void ByteRope::Append(std::string_view bytes) {
  size_bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (pieces_.empty() || pieces_.back().size() == kPieceSizeBytes) {
      pieces_.emplace_back();
      if (pieces_.size() > 1) pieces_.back().reserve(kPieceSizeBytes);
    }
    const std::string_view fits =
        bytes.substr(0, kPieceSizeBytes - pieces_.back().size());
    pieces_.back() += fits;
    bytes.remove_prefix(fits.size());
  }
}

std::string_view ByteRope::At(std::size_t offset, std::size_t end) const {
  const std::string& piece = pieces_[offset / kPieceSizeBytes];
  return std::string_view(piece).substr(offset % kPieceSizeBytes, end - offset);
}

void ByteRope::Trim() {
  if (!pieces_.empty()) pieces_.back().shrink_to_fit();
}

KeptRows::Found KeptRows::Find(const Key& key, const std::string& after,
                               const std::string& through) {
  Found found;
  found.through = after;
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(key);
  if (at == entries_.end()) return found;
  Entry& entry = at->second;
  entry.last_use = ++use_count_;
  if (after < entry.parts.front()->after) return found;
  auto part = std::upper_bound(
      entry.parts.begin(), entry.parts.end(), after,
      [](const std::string& lsn, const auto& item) { return lsn < item->through; });
  for (; part != entry.parts.end() && (*part)->after < through; ++part) {
    const KeptPart& kept = **part;
    found.through = std::min(kept.through, through);
    const std::size_t first = FirstAbove(kept, after);
    const std::size_t end = FirstAbove(kept, through);
    if (first >= end) continue;
    const KeptPart::Commit before =
        first > 0 ? kept.commits[first - 1] : KeptPart::Commit{};
    const KeptPart::Commit& last = kept.commits[end - 1];
    found.row_count += last.end_row_count - before.end_row_count;
    found.slices.push_back({*part, before.end_size_bytes, last.end_size_bytes});
  }
  found_row_count_ += found.row_count;
  return found;
}

bool KeptRows::Add(const Key& key, std::shared_ptr<const KeptPart> part) {
  const std::size_t size = SizeOf(*part);
  const std::lock_guard lock(mutex_);
  EraseOlder(key);
  auto at = entries_.find(key);
  if (at != entries_.end() && at->second.parts.back()->through != part->after) {
    // Somebody else may have kept the same commits meanwhile.
    const KeptPart& last = *at->second.parts.back();
    const bool known =
        part->after >= at->second.parts.front()->after && part->after < last.through;
    if (known) return part->through <= last.through;
    Erase(at);
    at = entries_.end();
  }
  if (!MakeRoom(key, size)) return false;
  Entry& entry = entries_[key];
  entry.last_use = ++use_count_;
  entry.size_bytes += size;
  size_bytes_ += size;
  entry.parts.push_back(std::move(part));
  return true;
}

void KeptRows::Drop(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(key);
  if (at != entries_.end()) Erase(at);
}

std::size_t KeptRows::size_bytes() const {
  const std::lock_guard lock(mutex_);
  return size_bytes_;
}

std::uint64_t KeptRows::found_row_count() const {
  const std::lock_guard lock(mutex_);
  return found_row_count_;
}

void KeptRows::Erase(std::map<Key, Entry>::iterator entry) {
  size_bytes_ -= entry->second.size_bytes;
  entries_.erase(entry);
}

void KeptRows::EraseOlder(const Key& key) {
  auto at = entries_.lower_bound(Key{key.database_id, 0, {}});
  while (at != entries_.end() && at->first.database_id == key.database_id &&
         at->first.rewrite_count < key.rewrite_count) {
    const auto next = std::next(at);
    Erase(at);
    at = next;
  }
}

bool KeptRows::MakeRoom(const Key& key, std::size_t size_bytes) {
  while (size_bytes_ + size_bytes > size_bytes_max_) {
    auto oldest = entries_.end();
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if (at->first == key) continue;
      if (oldest == entries_.end() || at->second.last_use < oldest->second.last_use) {
        oldest = at;
      }
    }
    if (oldest == entries_.end()) return false;
    Erase(oldest);
  }
  return true;
}

}  // namespace mssql_cdc::sim
