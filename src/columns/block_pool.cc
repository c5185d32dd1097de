#include "columns/block_pool.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

namespace mssql_cdc::columns {
namespace {

constexpr std::size_t kPageSizeBytes = 4096;
constexpr std::size_t kLineSizeBytes = 64;
// Smaller blocks are the heap's business: it does not give them back to the system.
constexpr std::size_t kKeptSizeBytesMin = kPageSizeBytes;
// Sizes that blocks are kept by: four to every doubling.
constexpr unsigned kStepBits = 2;
constexpr std::size_t kSizeCount = 64u << kStepBits;

struct Size {
  std::size_t index;
  std::size_t size_bytes;
};

// The least of the sizes that is not below `size_bytes`.
Size SizeFor(std::size_t size_bytes) {
  const auto doubling = static_cast<unsigned>(std::bit_width(size_bytes - 1)) - 1;
  const unsigned shift = doubling - kStepBits;
  const std::size_t steps = ((size_bytes - 1) >> shift) + 1;  // 5 to 8 of 1 << shift.
  return {(std::size_t{doubling} << kStepBits) + steps - 5, steps << shift};
}

// Never destroyed: buffers may outlive every static object.
struct Pool {
  std::mutex mutex;
  std::array<std::vector<Block>, kSizeCount> blocks;
  std::size_t kept_size_bytes = 0;
};

Pool& ThePool() {
  static Pool* const pool = new Pool;
  return *pool;
}

// 0, 64, ... 4032 in turn.
std::size_t NextSkew() {
  static std::atomic<std::size_t> turn = 0;
  return ++turn % (kPageSizeBytes / kLineSizeBytes) * kLineSizeBytes;
}

Block Allocate(std::size_t size_bytes, std::size_t skew) {
  auto* bytes =
      static_cast<std::uint8_t*>(std::aligned_alloc(kLineSizeBytes, size_bytes + skew));
  if (bytes == nullptr) throw std::bad_alloc();
  return {bytes + skew, size_bytes, skew};
}

// With the address sanitizer every use of a freed buffer is to be seen.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

bool Keep(const Block& block) {
  if (!kKeeps || block.size_bytes < kKeptSizeBytesMin) return false;
  Pool& pool = ThePool();
  const std::lock_guard lock(pool.mutex);
  if (pool.kept_size_bytes + block.size_bytes > kKeptBlocksSizeBytesMax) return false;
  pool.blocks[SizeFor(block.size_bytes).index].push_back(block);
  pool.kept_size_bytes += block.size_bytes;
  return true;
}

}  // namespace

Block TakeBlock(std::size_t size_bytes) {
  if (size_bytes < kKeptSizeBytesMin) return Allocate(size_bytes, 0);
  const Size size = SizeFor(size_bytes);
  Pool& pool = ThePool();
  {
    const std::lock_guard lock(pool.mutex);
    std::vector<Block>& blocks = pool.blocks[size.index];
    if (!blocks.empty()) {
      const Block block = blocks.back();
      blocks.pop_back();
      pool.kept_size_bytes -= block.size_bytes;
      return block;
    }
  }
  return Allocate(size.size_bytes, NextSkew());
}

void DropBlock(const Block& block) { std::free(block.bytes - block.skew); }

void GiveBlock(const Block& block) {
  if (!Keep(block)) DropBlock(block);
}

std::size_t KeptBlocksSizeBytes() {
  Pool& pool = ThePool();
  const std::lock_guard lock(pool.mutex);
  return pool.kept_size_bytes;
}

}  // namespace mssql_cdc::columns
