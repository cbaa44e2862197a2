// SPDX-License-Identifier: Apache-2.0
//
// An input vector in integers of 13 bits with their sign, for products with experts' weights in
// words of 16 bits: in a block of 32 columns, x = scale * integer, rounded, with scale = max |x| /
// kMostInputWord. 32 products with weights of at most kMostBookInteger fit 32 bits. Against f32 an
// input is off by at most 2^-13 of its block's largest value. This header is the layout; kernels
// fill and read it.

#ifndef WASTE_CORE_KERNELS_WORD_INPUT_H_
#define WASTE_CORE_KERNELS_WORD_INPUT_H_

#include <cstdint>

#include "base/checked.h"
#include "quant/book_forms.h"

namespace waste {

inline constexpr int64_t kWordBlock = 32;
inline constexpr int32_t kMostInputWord = 4094;
static_assert(kWordBlock * int64_t{kMostInputWord} * (kMostBookInteger + 1) <= INT32_MAX);

// Inputs of many columns each, [inputs, columns]; a block's columns beyond the last are 0. A part
// of an input that begins at a block is an input.
struct WordInputs {
  int16_t* integers;  // rows of `columns`, filled up to whole blocks
  float* scales;      // rows of one a block
  int64_t blocks;     // of a row

  static constexpr int64_t Blocks(int64_t columns) {
    return (columns + kWordBlock - 1) / kWordBlock;
  }
  // Floats of memory that `count` inputs take: never more than themselves in f32, filled up.
  static constexpr int64_t Floats(int64_t count, int64_t columns) {
    return count * Blocks(columns) * (kWordBlock / 2 + 1);
  }
  // In memory of that size, aligned as floats are.
  static WordInputs In(float* memory, int64_t count, int64_t columns) {
    const int64_t blocks = Blocks(columns);
    return {reinterpret_cast<int16_t*>(memory), memory + count * blocks * (kWordBlock / 2), blocks};
  }
  // From input i and block `block` on.
  WordInputs At(int64_t i, int64_t block) const {
    const int64_t at = i * blocks + block;
    return {integers + at * kWordBlock, scales + at, blocks};
  }
};

}  // namespace waste

#endif  // WASTE_CORE_KERNELS_WORD_INPUT_H_
