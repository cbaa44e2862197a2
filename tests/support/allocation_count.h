// SPDX-License-Identifier: Apache-2.0
//
// Counts what the whole test program allocates with new, to show that a call allocates nothing.
// Replaces the global operators, so one file of a program may include it. Any thread.

#ifndef WASTE_TESTS_SUPPORT_ALLOCATION_COUNT_H_
#define WASTE_TESTS_SUPPORT_ALLOCATION_COUNT_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace waste {

inline std::atomic<int64_t> allocation_count{0};

}  // namespace waste

// Not inlined: the compiler would see malloc's memory go to delete, or new's to free, and warn.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++waste::allocation_count;
  return std::malloc(size > 0 ? size : 1);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* bytes = operator new(size, std::nothrow)) return bytes;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* bytes) noexcept { std::free(bytes); }
[[gnu::noinline]] void operator delete(void* bytes, std::size_t) noexcept { std::free(bytes); }

#endif  // WASTE_TESTS_SUPPORT_ALLOCATION_COUNT_H_
