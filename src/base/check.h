// CHECK: a statement about our own code that must hold, in release too. Never reachable
// from bytes, options or replies: those produce an Error.

#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, \
                   #condition);                                             \
      std::abort();                                                         \
    }                                                                       \
  } while (false)
