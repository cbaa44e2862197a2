// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on sizes that come from files: a result that does not fit int64_t is no result. Every
// length of a container goes through these, so that a shape product cannot wrap into a small
// number. Pure functions; any thread.

#ifndef WASTE_CORE_BASE_CHECKED_H_
#define WASTE_CORE_BASE_CHECKED_H_

#include <cstdint>
#include <optional>

namespace waste {

inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<int64_t> CheckedMultiply(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// a / b rounded up; a >= 0, b > 0, and a + b - 1 must not overflow.
inline constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The smallest multiple of b that is at least a, under the same conditions.
inline constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDivide(a, b) * b; }

}  // namespace waste

#endif  // WASTE_CORE_BASE_CHECKED_H_
