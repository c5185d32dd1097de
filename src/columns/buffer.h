// A growing byte array, 64-byte aligned, whose spare capacity may be written before it is
// counted: what decoders fill in place.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
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
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Buffer() { std::free(bytes_); }

  std::uint8_t* data() { return bytes_; }
  const std::uint8_t* data() const { return bytes_; }
  std::size_t size_bytes() const { return size_; }
  std::size_t capacity_bytes() const { return capacity_; }

  // Room for `count` bytes in all; what is there stays. Throws std::bad_alloc.
  void Reserve(std::size_t count) {
    if (count <= capacity_) return;
    std::size_t grown = capacity_ + capacity_ / 2;
    if (grown < count) grown = count;
    grown = (grown + 63) & ~std::size_t{63};
    auto* bytes = static_cast<std::uint8_t*>(std::aligned_alloc(64, grown));
    if (bytes == nullptr) throw std::bad_alloc();
    if (size_ != 0) std::memcpy(bytes, bytes_, size_);
    std::free(bytes_);
    bytes_ = bytes;
    capacity_ = grown;
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
  std::uint8_t* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace mssql_cdc::columns
