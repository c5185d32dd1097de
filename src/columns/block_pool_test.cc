#include "columns/block_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "columns/buffer.h"

namespace mssql_cdc::columns {
namespace {

TEST(BlockPool, ABlockIsAlignedAndHardlyLargerThanAsked) {
  const std::size_t sizes[] = {64,       4032,    4096,     4097,
                               5120,     5121,    10'000,   160'000,
                               262'144,  262'145, 1u << 20, (1u << 20) + 64,
                               16u << 20};
  for (const std::size_t size : sizes) {
    const Block block = TakeBlock(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.bytes) % 64, 0u) << size;
    EXPECT_GE(block.size_bytes, size);
    EXPECT_LE(block.size_bytes, size + size / 4) << size;
    std::memset(block.bytes, 0xA5, block.size_bytes);
    GiveBlock(block);
  }
}

// Buffer tells its blocks from mapped pages by their size.
TEST(BlockPool, NoBlockUpTo16MiBIsLarger) {
  const Block block = TakeBlock((16u << 20) - 64);
  EXPECT_LE(block.size_bytes, 16u << 20);
  GiveBlock(block);
}

TEST(BlockPool, WhatIsKeptIsBounded) {
  std::vector<Block> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(TakeBlock(1u << 20));
  for (const Block& block : blocks) {
    GiveBlock(block);
    EXPECT_LE(KeptBlocksSizeBytes(), kKeptBlocksSizeBytesMax);
  }
}

TEST(BlockPool, ABufferOfEverySizeKeepsItsBytesWhileItGrows) {
  Buffer buffer;
  std::uint32_t count = 0;
  for (std::size_t size = 4; size <= 40u << 20; size += size / 3 + 4) {
    buffer.Reserve(size);
    for (; (count + 1) * sizeof(count) <= size; ++count) {
      buffer.Append(&count, sizeof(count));
    }
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t value;
    std::memcpy(&value, buffer.data() + i * sizeof(value), sizeof(value));
    ASSERT_EQ(value, i);
  }
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(BlockPool, TheBlockFreedLastIsTakenFirst) {
  const Block first = TakeBlock(100'000);
  const Block second = TakeBlock(100'000);
  GiveBlock(first);
  GiveBlock(second);
  const Block again = TakeBlock(99'000);
  EXPECT_EQ(again.bytes, second.bytes);
  EXPECT_EQ(again.skew, second.skew);
  GiveBlock(again);
}
#endif

}  // namespace
}  // namespace mssql_cdc::columns
