// A fuzz target with a mistake in it. tools/fuzz.py demands that the fuzzer finds it: a
// run that finds nothing says something only if this one is found.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 2 && data[0] == 'T' && data[1] == 'D' && data[2] == 'S') std::abort();
  return 0;
}
