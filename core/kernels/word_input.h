// SPDX-License-Identifier: Apache-2.0
//
// Input vectors in words: in a block of columns, x = scale * integer, rounded, with scale = max |x|
// / kMost. kMost is such that a block's products with the weights of a matrix, in integers too, fit
// 32 bits. Against f32 an input is off by at most half a kMost-th of its block's largest value.
// This header is the layout; kernels fill and read it.

#ifndef WASTE_CORE_KERNELS_WORD_INPUT_H_
#define WASTE_CORE_KERNELS_WORD_INPUT_H_

#include <cstdint>

#include "quant/book_forms.h"
#include "quant/trunk_format.h"

namespace waste {

// Inputs of as many columns each, [inputs, columns]; a block's columns beyond the last are 0. A
// part of an input that begins at a block is an input.
template <int64_t kBlockColumns, int32_t kMostInteger>
struct WordInputs {
  static constexpr int64_t kBlock = kBlockColumns;
  static constexpr int32_t kMost = kMostInteger;

  int16_t* integers;  // rows of `columns`, filled up to whole blocks
  float* scales;      // rows of one a block
  int64_t blocks;     // of a row

  static constexpr int64_t Blocks(int64_t columns) { return (columns + kBlock - 1) / kBlock; }
  // Floats of memory that `count` inputs take.
  static constexpr int64_t Floats(int64_t count, int64_t columns) {
    return count * Blocks(columns) * (kBlock / 2 + 1);
  }
  // In memory of that size, aligned as floats are.
  static WordInputs In(float* memory, int64_t count, int64_t columns) {
    const int64_t blocks = Blocks(columns);
    return {reinterpret_cast<int16_t*>(memory), memory + count * blocks * (kBlock / 2), blocks};
  }
  // From input i and block `block` on.
  WordInputs At(int64_t i, int64_t block) const {
    const int64_t at = i * blocks + block;
    return {integers + at * kBlock, scales + at, blocks};
  }
};

// Of weights in 15 bits, kMostBookInteger rounded up.
using ExpertInputs = WordInputs<32, 4094>;
static_assert(ExpertInputs::kBlock * int64_t{ExpertInputs::kMost} * (kMostBookInteger + 1) <=
              INT32_MAX);

// Of weights in 8 bits or 4, by their groups.
using TrunkInputs = WordInputs<kTrunkGroup, 32767>;
static_assert(TrunkInputs::kBlock * int64_t{TrunkInputs::kMost} * 128 <= INT32_MAX);

}  // namespace waste

#endif  // WASTE_CORE_KERNELS_WORD_INPUT_H_
