// SPDX-License-Identifier: Apache-2.0
//
// Asking for memory that will be read soon. What is fetched ahead need not exist, and an address
// behind the end of something may not be computed as a pointer: it is a number here. Any thread.

#ifndef WASTE_CORE_KERNELS_FETCH_AHEAD_H_
#define WASTE_CORE_KERNELS_FETCH_AHEAD_H_

#include <cstdint>

namespace waste {

// Of a byte `offset` behind `first`.
inline uintptr_t AddressAt(const void* first, int64_t offset) {
  return reinterpret_cast<uintptr_t>(first) + static_cast<uintptr_t>(offset);
}

// Asks for a cache line, into the second cache.
inline void FetchLine(uintptr_t address) {
  __builtin_prefetch(reinterpret_cast<const void*>(address), 0, 2);
}

}  // namespace waste

#endif  // WASTE_CORE_KERNELS_FETCH_AHEAD_H_
