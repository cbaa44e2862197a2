// SPDX-License-Identifier: Apache-2.0
//
// An input vector in integers of 16 bits, each split into two signed bytes, for instructions that
// multiply bytes: in a group of 128 columns, x = scale * (256 * high + low), rounded, with scale =
// max |x| / 32512. Against f32 that is off by at most 2^-16 of the group's largest value. This
// header is the layout; kernels fill and read it.

#ifndef WASTE_CORE_KERNELS_SPLIT_INPUT_H_
#define WASTE_CORE_KERNELS_SPLIT_INPUT_H_

#include <cstdint>

#include "quant/trunk_format.h"

namespace waste {

// [groups] of bytes, then floats: [groups padded to 16] scales, [groups padded to 16] the scale
// times the sum of a group's integers. Columns beyond the last are 0. A group has its bytes twice,
// 128 high and 128 low ones: even columns before odd ones, for nibbles, and as columns come.
inline constexpr int64_t kSplitEvenOdd = 0;
inline constexpr int64_t kSplitNatural = 2 * kTrunkGroup;
inline constexpr int64_t kSplitGroupBytes = 4 * kTrunkGroup;
inline constexpr float kSplitMost = 32512.0f;  // 127 * 256: with low from -128 to 127

inline constexpr int64_t SplitScales(int64_t columns) {
  return (columns + 16 * kTrunkGroup - 1) / (16 * kTrunkGroup) * 16;
}
inline constexpr int64_t SplitBytes(int64_t columns) {
  const int64_t groups = (columns + kTrunkGroup - 1) / kTrunkGroup;
  return groups * kSplitGroupBytes + 2 * SplitScales(columns) * 4;
}

}  // namespace waste

#endif  // WASTE_CORE_KERNELS_SPLIT_INPUT_H_
