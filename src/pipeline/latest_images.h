// Which row of bronze is the newest image of each key, and what becomes of silver's
// rows when they meet it.
//
// Rows are known by their place in a read of bronze (ordinal), so that only keys and
// order are held: the images themselves are read once more when it is decided which
// ones silver gets.

#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "cdc/lsn.h"

namespace mssql_cdc::pipeline {

// The order of changes of one table; absent parts come first.
struct ChangeOrder {
  cdc::Lsn lsn;
  std::int64_t command_id = std::numeric_limits<std::int64_t>::min();
  bool has_seqval = false;
  cdc::Lsn seqval;
  int operation = 0;

  auto operator<=>(const ChangeOrder&) const = default;
};

class LatestImages {
 public:
  struct Image {
    ChangeOrder order;
    std::int64_t ordinal = 0;
    std::uint32_t key_begin = 0;  // In keys_, of block key_block.
    std::uint32_t key_size = 0;
    std::uint32_t key_block = 0;
    bool is_of_chunk = false;  // A row of a chunk has the key, newest or not.
    // Silver has this image or a newer one, or the key is gone: nothing is to be added.
    bool is_settled = false;

    bool is_gone() const { return order.operation == 1 || order.operation == 3; }
  };

  // A row of bronze with that key.
  void Offer(std::uint64_t hash, std::string_view key, const ChangeOrder& order,
             std::int64_t ordinal, bool is_of_chunk);

  Image* Find(std::uint64_t hash, std::string_view key);

  std::size_t size() const { return images_.size(); }
  std::size_t SizeBytes() const;
  const std::vector<Image>& images() const { return images_; }
  std::string_view KeyOf(const Image& image) const;
  void Clear();

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t index = kNone;
  };

  // The slot that has the key, or the free one where it belongs.
  std::size_t Locate(std::uint64_t hash, std::string_view key) const;
  void Grow();
  void KeepKey(std::string_view key, Image& image);

  std::vector<Slot> slots_;  // A power of two, at most two thirds full.
  std::vector<Image> images_;
  std::vector<std::vector<char>> keys_;  // Blocks, filled one after the other.
};

struct SilverRow {
  std::optional<cdc::Lsn> lsn;  // _start_lsn
  // Of the chunk applied now that covers the key, if range deletes apply.
  std::optional<cdc::Lsn> chunk_stamp;
};

// Whether a row of silver goes, and with `image` (nullptr: none has the key) noted as
// settled where it does not replace the row.
bool Goes(const SilverRow& row, LatestImages::Image* image, bool rebuild);

}  // namespace mssql_cdc::pipeline
