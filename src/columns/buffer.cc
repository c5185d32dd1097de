#include "columns/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "columns/block_pool.h"

namespace mssql_cdc::columns {
namespace {

// Up to it freed buffers go to the next batch without page faults; beyond it, copying
// while growing would cost more than the faults. A size that blocks are kept by, so
// that no block is larger.
constexpr std::size_t kBlockSizeBytesMax = 16u << 20;
constexpr std::size_t kPageSizeBytes = 4096;
constexpr std::size_t kLineSizeBytes = 64;

std::size_t RoundUp(std::size_t count, std::size_t unit) {
  return (count + unit - 1) / unit * unit;
}

std::uint8_t* MapPages(std::size_t count) {
  void* pages =
      mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::uint8_t*>(pages);
}

}  // namespace

void Buffer::Grow(std::size_t count) {
  std::size_t grown = capacity_ + capacity_ / 2;
  if (grown < count) grown = count;
  if (grown <= kBlockSizeBytesMax) {
    const Block block = TakeBlock(RoundUp(grown, kLineSizeBytes));
    if (capacity_ != 0) {
      std::memcpy(block.bytes, bytes_, capacity_);
      DropBlock({bytes_, capacity_, skew_});
    }
    bytes_ = block.bytes;
    grown = block.size_bytes;
    skew_ = block.skew;
  } else {
    grown = RoundUp(grown, kPageSizeBytes);
    if (capacity_ > kBlockSizeBytesMax) {
      void* moved = mremap(bytes_, capacity_, grown, MREMAP_MAYMOVE);
      if (moved == MAP_FAILED) throw std::bad_alloc();
      bytes_ = static_cast<std::uint8_t*>(moved);
    } else {
      std::uint8_t* bytes = MapPages(grown);
      if (capacity_ != 0) {
        std::memcpy(bytes, bytes_, capacity_);
        DropBlock({bytes_, capacity_, skew_});
      }
      bytes_ = bytes;
      skew_ = 0;
    }
  }
  capacity_ = grown;
}

void Buffer::Free() {
  if (capacity_ > kBlockSizeBytesMax) {
    munmap(bytes_, capacity_);
  } else if (capacity_ != 0) {
    GiveBlock({bytes_, capacity_, skew_});
  }
}

}  // namespace mssql_cdc::columns
