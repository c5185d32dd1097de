// Rows of change tables as they went over the wire, kept so that they are encoded once.
//
// What a client gets of a commit that was captured does not change any more, so the
// bytes of its rows are kept per statement shape and form of the wire, and sent again
// to whoever asks for the same commits. Only what the general path has sent is ever
// kept: this is memory, no second encoder. It knows neither tables nor types; whoever
// uses it says by the key what makes two answers the same.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace mssql_cdc::sim {

// Bytes in pieces of one size, so that they grow without being copied.
class ByteRope {
 public:
  void Append(std::string_view bytes);
  // The bytes from `offset` on as far as they lie together, at most up to `end`.
  // Requires offset < end <= size_bytes().
  std::string_view At(std::size_t offset, std::size_t end) const;
  std::size_t size_bytes() const { return size_bytes_; }
  // Gives back what is allocated and not used.
  void Trim();

 private:
  std::vector<std::string> pieces_;  // All but the last are full.
  std::size_t size_bytes_ = 0;
};

// The rows of the commits above `after`, up to and including `through`. LSNs are ten
// bytes each; an empty `after` is below all of them.
struct KeptPart {
  struct Commit {
    std::string lsn;
    std::size_t end_size_bytes = 0;  // Of `rows`, up to the commit's end.
    std::uint64_t end_row_count = 0;
  };
  std::string after;
  std::string through;
  std::vector<Commit> commits;  // In the order of their LSNs; those with rows.
  ByteRope rows;
};

class KeptRows {
 public:
  struct Key {
    std::int32_t database_id = 0;
    // Counts what changed in the database otherwise than by more commits: with a new
    // number nothing holds that was kept under an older one.
    std::uint64_t rewrite_count = 0;
    std::string statement;
    auto operator<=>(const Key&) const = default;
  };
  // A stretch of rows that lie together.
  struct Slice {
    std::shared_ptr<const KeptPart> part;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Found {
    std::string through;  // `after` where nothing is kept.
    std::uint64_t row_count = 0;
    std::vector<Slice> slices;
  };

  explicit KeptRows(std::size_t size_bytes_max) : size_bytes_max_(size_bytes_max) {}

  // What is kept of the commits above `after`, up to `through` at most.
  Found Find(const Key& key, const std::string& after, const std::string& through);
  // Keeps a part that begins where the key's last one ends; one that begins elsewhere
  // takes the place of all the key has. Makes room by giving up keys that nobody asked
  // for lately. False: it was not kept, and what follows it need not be offered.
  bool Add(const Key& key, std::shared_ptr<const KeptPart> part);
  void Drop(const Key& key);

  std::size_t size_bytes() const;
  // The rows that Find found so far.
  std::uint64_t found_row_count() const;

 private:
  struct Entry {
    std::vector<std::shared_ptr<const KeptPart>> parts;  // Each begins where one ends.
    std::size_t size_bytes = 0;
    std::uint64_t last_use = 0;
  };
  void Erase(std::map<Key, Entry>::iterator entry);
  void EraseOlder(const Key& key);
  bool MakeRoom(const Key& key, std::size_t size_bytes);

  const std::size_t size_bytes_max_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::size_t size_bytes_ = 0;
  std::uint64_t use_count_ = 0;
  std::uint64_t found_row_count_ = 0;
};

}  // namespace mssql_cdc::sim
