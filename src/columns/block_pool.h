// Where the buffers of batches come from and go to: freed blocks are kept for the next
// batch.
//
// A batch is many middling blocks that are freed together. The heap would give them
// back to the system and the next batch would fault every page in anew, which costs
// more than decoding into it. What is kept is bounded for the whole process, and the
// block freed last goes out first: it is the warmest.

#pragma once

#include <cstddef>
#include <cstdint>

namespace mssql_cdc::columns {

struct Block {
  std::uint8_t* bytes = nullptr;  // 64-byte aligned.
  std::size_t size_bytes = 0;
  // Bytes between the allocation and `bytes`. The columns of a batch are written side
  // by side; were all of them at the same place within a page, they would fight for the
  // same few lines of the cache.
  std::size_t skew = 0;
};

// At least `size_bytes`, at most a quarter more (or as asked, if small); what is in
// them is not known. Throws std::bad_alloc. From any thread.
Block TakeBlock(std::size_t size_bytes);

// Takes back what TakeBlock gave. From any thread, not necessarily the same.
void GiveBlock(const Block& block);

// As GiveBlock, to the heap: of a block that its buffer has outgrown, so that the next
// batch will ask for a larger one.
void DropBlock(const Block& block);

// The bytes kept now, and how many there can be.
std::size_t KeptBlocksSizeBytes();
inline constexpr std::size_t kKeptBlocksSizeBytesMax = std::size_t{32} << 20;

}  // namespace mssql_cdc::columns
