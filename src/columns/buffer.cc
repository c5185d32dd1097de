#include "columns/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace mssql_cdc::columns {
namespace {

// Below it the heap hands freed buffers to the next batch without page faults; from it
// on, copying while growing would cost more than the faults.
constexpr std::size_t kMappedSizeBytesMin = 16u << 20;
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

// 0, 64, ... 4032 in turn, for buffers that are worth it.
std::size_t NextSkew(std::size_t count) {
  if (count < kPageSizeBytes) return 0;
  thread_local std::size_t turn = 0;
  turn = (turn + 1) % (kPageSizeBytes / kLineSizeBytes);
  return turn * kLineSizeBytes;
}

}  // namespace

void Buffer::Grow(std::size_t count) {
  std::size_t grown = capacity_ + capacity_ / 2;
  if (grown < count) grown = count;
  if (grown < kMappedSizeBytesMin) {
    grown = RoundUp(grown, kLineSizeBytes);
    const std::size_t skew = NextSkew(grown);
    auto* block =
        static_cast<std::uint8_t*>(std::aligned_alloc(kLineSizeBytes, grown + skew));
    if (block == nullptr) throw std::bad_alloc();
    std::uint8_t* bytes = block + skew;
    if (capacity_ != 0) std::memcpy(bytes, bytes_, capacity_);
    FreeHeap();
    bytes_ = bytes;
    skew_ = skew;
  } else {
    grown = RoundUp(grown, kPageSizeBytes);
    if (capacity_ >= kMappedSizeBytesMin) {
      void* moved = mremap(bytes_, capacity_, grown, MREMAP_MAYMOVE);
      if (moved == MAP_FAILED) throw std::bad_alloc();
      bytes_ = static_cast<std::uint8_t*>(moved);
    } else {
      std::uint8_t* bytes = MapPages(grown);
      if (capacity_ != 0) std::memcpy(bytes, bytes_, capacity_);
      FreeHeap();
      bytes_ = bytes;
    }
  }
  capacity_ = grown;
}

void Buffer::FreeHeap() {
  if (bytes_ != nullptr) std::free(bytes_ - skew_);
  skew_ = 0;
}

void Buffer::Free() {
  if (capacity_ >= kMappedSizeBytesMin) {
    munmap(bytes_, capacity_);
  } else {
    FreeHeap();
  }
}

}  // namespace mssql_cdc::columns
