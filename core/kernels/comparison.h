// SPDX-License-Identifier: Apache-2.0
//
// What the comparisons of kernels_checked.h share: how far two results may be apart, and what is
// said of those that are farther. Only for kernels_checked*.cc. Pure functions; any thread.

#ifndef WASTE_CORE_KERNELS_COMPARISON_H_
#define WASTE_CORE_KERNELS_COMPARISON_H_

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <string>

namespace waste {

inline constexpr double kRounding = 0x1p-24;    // the largest relative error of one rounding
inline constexpr double kUnderflow = 0x1p-140;  // what sums of the smallest numbers may lose

inline double Magnitude(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::fabs(double{a[i]} * b[i]);
  return sum;
}

// Both sides are as far as `bound` from the exact value, whose terms have this `magnitude`. Nothing
// is said of terms that overflow or are no numbers.
inline std::string CompareValue(const char* what, int64_t index, float fast, float scalar,
                                double bound, double magnitude) {
  if (!(magnitude <= double{FLT_MAX})) return {};
  if (std::fabs(double{fast} - scalar) <= 2 * bound + kUnderflow) return {};
  return std::string(what) + " " + std::to_string(index) + ": " + std::to_string(fast) +
         ", scalar " + std::to_string(scalar) + ", more than " + std::to_string(2 * bound) +
         " apart";
}

}  // namespace waste

#endif  // WASTE_CORE_KERNELS_COMPARISON_H_
