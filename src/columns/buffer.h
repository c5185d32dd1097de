// A growing byte array, 64-byte aligned, whose spare capacity may be written before it
// is counted: what decoders fill in place.
//
// Large buffers are mapped pages that grow by moving the mapping: growing copies
// nothing and touches nothing, so one value of many megabytes costs its own size in
// memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace mssql_cdc::columns {

class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)),
        skew_(std::exchange(other.skew_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(skew_, other.skew_);
    return *this;
  }
  ~Buffer() { Free(); }

  std::uint8_t* data() { return bytes_; }
  const std::uint8_t* data() const { return bytes_; }
  std::size_t size_bytes() const { return size_; }
  std::size_t capacity_bytes() const { return capacity_; }

  // Room for `count` bytes in all; every byte below the old capacity stays, counted or
  // not. Throws std::bad_alloc.
  void Reserve(std::size_t count) {
    if (count > capacity_) Grow(count);
  }
  // Sets how many bytes count. Requires count <= capacity_bytes(); the bytes gained are
  // whatever was written there.
  void SetSize(std::size_t count) { size_ = count; }
  void Append(const void* bytes, std::size_t count) {
    Reserve(size_ + count);
    if (count != 0) std::memcpy(bytes_ + size_, bytes, count);
    size_ += count;
  }

 private:
  void Grow(std::size_t count);
  void Free();

  std::uint8_t* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;  // Beyond kBlockSizeBytesMax mapped pages, else a Block.
  std::size_t skew_ = 0;      // Of a block: Block::skew.
};

}  // namespace mssql_cdc::columns
