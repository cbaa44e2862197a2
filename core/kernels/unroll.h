// SPDX-License-Identifier: Apache-2.0
//
// WASTE_UNROLL, before a loop of a constant count, at most 16: sums in an array stay in registers
// only if every loop over them is unrolled. Builds with sanitizers have nothing to be fast at and
// would compile a kernel file for a minute, so they do without.

#ifndef WASTE_CORE_KERNELS_UNROLL_H_
#define WASTE_CORE_KERNELS_UNROLL_H_

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WASTE_UNROLL
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WASTE_UNROLL
#endif
#endif

#if !defined(WASTE_UNROLL)
#define WASTE_UNROLL _Pragma("GCC unroll 16")
#endif

#endif  // WASTE_CORE_KERNELS_UNROLL_H_
