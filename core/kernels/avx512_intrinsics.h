// SPDX-License-Identifier: Apache-2.0
//
// Intrinsics for files of kernels that need AVX-512, without the warnings that GCC 12 gives of its
// own header: it makes "undefined" vectors by reading an uninitialised variable. They are off for
// the rest of the file that includes this. Empty on other machines.

#ifndef WASTE_CORE_KERNELS_AVX512_INTRINSICS_H_
#define WASTE_CORE_KERNELS_AVX512_INTRINSICS_H_

#if defined(__x86_64__)

#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include <cstdint>

namespace waste {

// The first n of 16 lanes; none of a negative n.
inline __mmask16 FirstLanes(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xFFFF : n <= 0 ? 0 : (1 << n) - 1);
}

}  // namespace waste

#endif

#endif  // WASTE_CORE_KERNELS_AVX512_INTRINSICS_H_
