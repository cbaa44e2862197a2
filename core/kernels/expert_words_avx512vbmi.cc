// SPDX-License-Identifier: Apache-2.0
//
// Rows of experts times inputs in integers (word_input.h) with AVX-512 VNNI, for the many rows of a
// prompt (word_tiles_avx512.inc). A weight is the sum of the stages' entries over the sum of their
// steps (book_forms.h), rounded to 15 bits. Runs only where CpuHas(Isa::kAvx512Vbmi). Any thread.

#include "kernels/tables.h"

#if defined(__x86_64__)

#include "base/check.h"
#include "kernels/avx512_intrinsics.h"
#include "kernels/fetch_ahead.h"
#include "kernels/unroll.h"
#include "kernels/word_input.h"

#define WASTE_SIMD \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")))
#define WASTE_OP WASTE_SIMD __attribute__((always_inline)) inline

namespace waste {
namespace {

#include "kernels/stage_indices.inc"
#include "kernels/word_tiles_avx512.inc"

constexpr int64_t kTileBlocks = 4;  // of columns: 16 KB of weights, in the nearest cache
static_assert(kTileRows == kIndexBlock);
static_assert(kTileBlocks * ExpertInputs::kBlock * kTileRows <= kTileWords);

// Weights as integers: value = step * integer. Books so small that a step has no inverse are 0.
struct WeightScale {
  float step, inverse;

  explicit WeightScale(const ExpertMatrix& w) : step(0.0f) {
    for (int s = 0; s < w.codec.stages; ++s) step += w.forms[static_cast<size_t>(s)].step;
    constexpr float kLeast = 1e-34f;
    inverse = step < kLeast ? 0.0f : 1.0f / step;
  }
};

// A block of rows of a matrix, as its decoder sees it.
template <typename Indices>
struct Block {
  static constexpr int64_t kVectorStep = kIndexBlock * Indices::kBytes;

  const float* books[Indices::kStages];
  const uint8_t* indices;
  int64_t vectors;
  float inverse;

  // Eight weights of row i of eight.
  WASTE_OP __m256 Weights(const uint64_t (&words)[Indices::kBytes], int64_t i) const {
    __m256 sum = _mm256_loadu_ps(books[0] + Indices::EntryAt(words, i, 0));
    WASTE_UNROLL
    for (int s = 1; s < Indices::kStages; ++s)
      sum = _mm256_add_ps(sum, _mm256_loadu_ps(books[s] + Indices::EntryAt(words, i, s)));
    return sum;
  }
  // Integers of rows i and i + 4.
  WASTE_OP __m512i TwoRows(const uint64_t (&words)[Indices::kBytes], int64_t i) const {
    const __m512 weights =
        _mm512_insertf32x8(_mm512_castps256_ps512(Weights(words, i)), Weights(words, i + 4), 1);
    return _mm512_cvtps_epi32(_mm512_mul_ps(weights, _mm512_set1_ps(inverse)));
  }
  // Of eight rows: pairs of columns 0 and 2 of rows 0 to 3, then of rows 4 to 7; and 1 and 3.
  WASTE_OP void EightRows(const uint8_t* bytes, __m512 (&out)[2]) const {
    uint64_t words[Indices::kBytes];
    __builtin_memcpy(words, bytes, sizeof words);
    const __m512 first =
        _mm512_castsi512_ps(_mm512_packs_epi32(TwoRows(words, 0), TwoRows(words, 1)));
    const __m512 second =
        _mm512_castsi512_ps(_mm512_packs_epi32(TwoRows(words, 2), TwoRows(words, 3)));
    out[0] = _mm512_shuffle_ps(first, second, 0x88);
    out[1] = _mm512_shuffle_ps(first, second, 0xDD);
  }
  // Vector v of 16 rows from `row` on to four pairs of the tile.
  WASTE_OP void SixteenRows(int64_t v, int64_t row, int16_t* tile) const {
    const uint8_t* const bytes = indices + v * kVectorStep + row * Indices::kBytes;
    __m512 low[2], high[2];
    EightRows(bytes, low);
    EightRows(bytes + 8 * Indices::kBytes, high);
    WASTE_UNROLL
    for (int64_t i = 0; i < 2; ++i) {
      int16_t* const to = tile + 2 * row + i * kPairWords;
      _mm512_storeu_ps(to, _mm512_shuffle_f32x4(low[i], high[i], 0x88));
      _mm512_storeu_ps(to + 2 * kPairWords, _mm512_shuffle_f32x4(low[i], high[i], 0xDD));
    }
  }
  // `count` vectors from `first` on, then zeros to a whole block of columns. Fetches the same of
  // the next rows.
  WASTE_SIMD void Decode(int64_t first, int64_t count, int16_t* tile) const {
    constexpr int64_t kPairsOfVector = kVectorSize / 2;
    for (int64_t v = first; v < first + count; ++v, tile += kPairsOfVector * kPairWords) {
      for (int64_t line = 0; line < kVectorStep; line += 64)
        FetchLine(AddressAt(indices, (vectors + v) * kVectorStep + line));
      for (int64_t row = 0; row < kTileRows; row += kLanes) SixteenRows(v, row, tile);
    }
    constexpr int64_t kBlockVectors = ExpertInputs::kBlock / kVectorSize;
    const int64_t missing = RoundUp(count, kBlockVectors) - count;
    if (missing > 0)
      __builtin_memset(tile, 0, static_cast<size_t>(missing * kPairsOfVector * kPairWords * 2));
  }
};

// A block of rows times at most kMostInputs inputs.
template <typename Indices>
WASTE_SIMD void MultiplyBlock(const Block<Indices>& block, float step, const ExpertInputs& inputs,
                              int64_t count, const Scratch& scratch) {
  constexpr int64_t kTileVectors = kTileBlocks * ExpertInputs::kBlock / kVectorSize;
  for (int64_t v = 0; v < block.vectors; v += kTileVectors) {
    const int64_t left = block.vectors - v, vectors = left < kTileVectors ? left : kTileVectors;
    block.Decode(v, vectors, scratch.tile);
    const int64_t blocks = ExpertInputs::Blocks(vectors * kVectorSize);
    MultiplyInputs({scratch.tile, blocks, step, nullptr, v == 0},
                   inputs.At(0, v * kVectorSize / ExpertInputs::kBlock), count, scratch.sums);
  }
}

template <typename Indices>
WASTE_SIMD void ExpertWordsAs(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                              const ExpertInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                              float* memory) {
  const Scratch scratch(memory);
  const WeightScale scale(w);
  Block<Indices> block;
  for (int s = 0; s < Indices::kStages; ++s) block.books[s] = w.books[static_cast<size_t>(s)];
  block.vectors = w.columns / kVectorSize;
  block.inverse = scale.inverse;
  for (int64_t r = row_begin; r < row_end; r += kTileRows) {
    block.indices = w.indices + r / kIndexBlock * block.vectors * Block<Indices>::kVectorStep;
    __m512 scales[kRowVectors];
    for (int64_t j = 0; j < kRowVectors; ++j) {
      const __mmask16 there = FirstLanes(row_end - r - j * kLanes);
      const uint8_t* const from = w.scales + 2 * (r + j * kLanes);
      scales[j] = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(there, from));
    }
    for (int64_t i = 0; i < batch; i += kMostInputs) {
      const int64_t count = batch - i < kMostInputs ? batch - i : kMostInputs;
      MultiplyBlock(block, scale.step, inputs.At(i, 0), count, scratch);
      WriteSums(scratch.sums, count, scales, row_end - r, y + i * y_stride + r, y_stride);
    }
  }
}

WASTE_SIMD void ExpertWords(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                            const ExpertInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                            float* scratch) {
  ForIndices(w.codec, [&](auto indices) {
    ExpertWordsAs<decltype(indices)>(w, row_begin, row_end, inputs, batch, y, y_stride, scratch);
  });
}

WASTE_SIMD void RoundInput(const float* x, int64_t columns, int16_t* integers, float* scales) {
  RoundBlocks<ExpertInputs>(x, columns, integers, scales);
}

}  // namespace

void AddExpertWordKernels(Kernels& kernels) {
  kernels.round_expert_input = RoundInput;
  kernels.expert_words = ExpertWords;
}

}  // namespace waste

#endif
