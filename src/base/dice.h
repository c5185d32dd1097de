// Random numbers that a seed reproduces on every platform.

#pragma once

#include <cstdint>

namespace mssql_cdc {

// splitmix64, written out because the standard library's distributions may differ
// between implementations and a seed must mean the same run everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  // A number from 0 up to and excluding `count`. Requires 0 < count.
  std::uint64_t Below(std::uint64_t count) { return Next() % count; }
  // True `numerator` times in `denominator`. Requires 0 < denominator.
  bool Chance(std::uint32_t numerator, std::uint32_t denominator) {
    return Next() % denominator < numerator;
  }
  // A number from 0 up to and excluding 1.
  double Fraction() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace mssql_cdc
