// SPDX-License-Identifier: Apache-2.0
//
// Rows of experts times inputs in integers (word_input.h) with AVX-512 VNNI, for the many rows of a
// prompt: vpdpwssd multiplies 32 pairs of words and adds them two by two, twice what a multiply-add
// of floats does. A tile of 64 rows and some columns is decoded once for all inputs: the sum of the
// stages' entries over the sum of their steps (book_forms.h), rounded to 15 bits, lies as
// [pair of columns, row, 2], so that a lane is a row, a pair of inputs is broadcast, and no lanes
// are to be added in the end. Runs only where CpuHas(Isa::kAvx512Vbmi). Any thread.

#include "kernels/tables.h"

#if defined(__x86_64__)

#include "base/check.h"
#include "kernels/avx512_intrinsics.h"
#include "kernels/fetch_ahead.h"
#include "kernels/unroll.h"
#include "kernels/word_input.h"

#define WASTE_SIMD \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,bmi2,fma,f16c")))
#define WASTE_OP WASTE_SIMD __attribute__((always_inline)) inline

namespace waste {
namespace {

#include "kernels/stage_indices.inc"

constexpr int64_t kLanes = 16;
constexpr int64_t kRowVectors = kIndexBlock / kLanes;
constexpr int64_t kTileBlocks = 4;  // of columns: 16 KB of weights, in the nearest cache
constexpr int64_t kPairs = kWordBlock / 2;
constexpr int64_t kPairWords = 2 * kIndexBlock;  // of a pair of columns, all rows
constexpr int kInputsAtOnce = 3;                 // 12 sums of integers and 12 of floats
static_assert(kTileBlocks * kPairs * kPairWords <= kRowsScratch * 2);

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
      for (int64_t row = 0; row < kIndexBlock; row += kLanes) SixteenRows(v, row, tile);
    }
    constexpr int64_t kBlockVectors = kWordBlock / kVectorSize;
    const int64_t missing = RoundUp(count, kBlockVectors) - count;
    if (missing > 0)
      __builtin_memset(tile, 0, static_cast<size_t>(missing * kPairsOfVector * kPairWords * 2));
  }
};

// Where the sums of some rows go, y[input * stride + row].
struct Sums {
  float* y;
  int64_t stride;
  __mmask16 there[kRowVectors];

  WASTE_OP Sums(float* to, int64_t y_stride, int64_t rows) : y(to), stride(y_stride) {
    for (int64_t j = 0; j < kRowVectors; ++j) there[j] = FirstLanes(rows - j * kLanes);
  }
  WASTE_OP __m512 Load(int64_t input, int64_t j) const {
    return _mm512_maskz_loadu_ps(there[j], y + input * stride + j * kLanes);
  }
  WASTE_OP void Store(int64_t input, int64_t j, __m512 value) const {
    _mm512_mask_storeu_ps(y + input * stride + j * kLanes, there[j], value);
  }
};

// Decoded weights: `blocks` blocks of columns, the matrix's first ones or later ones.
struct Tile {
  const int16_t* words;
  int64_t blocks;
  float step;
  bool is_first;
};

// Adds the tile's columns of kInputs inputs from number `first` on to their sums; the first columns
// are written there.
template <int kInputs>
WASTE_SIMD void MultiplyTile(const Tile& tile, const WordInputs& inputs, int64_t first,
                             const Sums& sums) {
  const int16_t* words = tile.words;
  __m512 total[kRowVectors][kInputs];
  WASTE_UNROLL
  for (int64_t j = 0; j < kRowVectors; ++j) {
    WASTE_UNROLL
    for (int64_t i = 0; i < kInputs; ++i)
      total[j][i] = tile.is_first ? _mm512_setzero_ps() : sums.Load(first + i, j);
  }
  for (int64_t b = 0; b < tile.blocks; ++b) {
    const WordInputs in = inputs.At(first, b);
    __m512i sum[kRowVectors][kInputs];
    WASTE_UNROLL
    for (int64_t j = 0; j < kRowVectors; ++j) {
      WASTE_UNROLL
      for (int64_t i = 0; i < kInputs; ++i) sum[j][i] = _mm512_setzero_si512();
    }
    for (int64_t p = 0; p < kPairs; ++p, words += kPairWords) {
      __m512i weights[kRowVectors];
      WASTE_UNROLL
      for (int64_t j = 0; j < kRowVectors; ++j)
        weights[j] = _mm512_loadu_si512(words + 2 * kLanes * j);
      WASTE_UNROLL
      for (int64_t i = 0; i < kInputs; ++i) {
        int32_t pair;
        __builtin_memcpy(&pair, in.integers + i * in.blocks * kWordBlock + 2 * p, 4);
        const __m512i x = _mm512_set1_epi32(pair);
        WASTE_UNROLL
        for (int64_t j = 0; j < kRowVectors; ++j)
          sum[j][i] = _mm512_dpwssd_epi32(sum[j][i], weights[j], x);
      }
    }
    WASTE_UNROLL
    for (int64_t i = 0; i < kInputs; ++i) {
      const __m512 scale = _mm512_set1_ps(in.scales[i * in.blocks] * tile.step);
      WASTE_UNROLL
      for (int64_t j = 0; j < kRowVectors; ++j)
        total[j][i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[j][i]), scale, total[j][i]);
    }
  }
  WASTE_UNROLL
  for (int64_t j = 0; j < kRowVectors; ++j) {
    WASTE_UNROLL
    for (int64_t i = 0; i < kInputs; ++i) sums.Store(first + i, j, total[j][i]);
  }
}

WASTE_SIMD void MultiplyInputs(const Tile& tile, const WordInputs& inputs, int64_t batch,
                               const Sums& sums) {
  int64_t i = 0;
  for (; i + kInputsAtOnce <= batch; i += kInputsAtOnce)
    MultiplyTile<kInputsAtOnce>(tile, inputs, i, sums);
  static_assert(kInputsAtOnce == 3);
  if (batch - i == 2) MultiplyTile<2>(tile, inputs, i, sums);
  if (batch - i == 1) MultiplyTile<1>(tile, inputs, i, sums);
}

WASTE_SIMD void ScaleRows(const uint8_t* scales, int64_t batch, const Sums& sums) {
  for (int64_t j = 0; j < kRowVectors; ++j) {
    const __m512 scale =
        _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(sums.there[j], scales + 2 * kLanes * j));
    for (int64_t i = 0; i < batch; ++i) sums.Store(i, j, _mm512_mul_ps(sums.Load(i, j), scale));
  }
}

template <typename Indices>
WASTE_SIMD void ExpertWordsAs(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                              const WordInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                              float* scratch) {
  int16_t* const tile = reinterpret_cast<int16_t*>(scratch);
  constexpr int64_t kTileVectors = kTileBlocks * kWordBlock / kVectorSize;
  const WeightScale scale(w);
  Block<Indices> block;
  for (int s = 0; s < Indices::kStages; ++s) block.books[s] = w.books[static_cast<size_t>(s)];
  block.vectors = w.columns / kVectorSize;
  block.inverse = scale.inverse;
  for (int64_t r = row_begin; r < row_end; r += kIndexBlock) {
    block.indices = w.indices + r / kIndexBlock * block.vectors * Block<Indices>::kVectorStep;
    const Sums sums(y + r, y_stride, row_end - r);
    for (int64_t v = 0; v < block.vectors; v += kTileVectors) {
      const int64_t left = block.vectors - v, count = left < kTileVectors ? left : kTileVectors;
      block.Decode(v, count, tile);
      const int64_t first = v * kVectorSize / kWordBlock;
      MultiplyInputs({tile, WordInputs::Blocks(count * kVectorSize), scale.step, v == 0},
                     inputs.At(0, first), batch, sums);
    }
    ScaleRows(w.scales + 2 * r, batch, sums);
  }
}

WASTE_SIMD void ExpertWords(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                            const WordInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                            float* scratch) {
  const auto run = [&]<typename Indices>(Indices) {
    ExpertWordsAs<Indices>(w, row_begin, row_end, inputs, batch, y, y_stride, scratch);
  };
  if (w.codec.kind == IndexKind::kPacked6) return run(Packed6Indices());
  switch (w.codec.stages) {
    case 2:
      return run(ByteIndices<2>());
    case 3:
      return run(ByteIndices<3>());
    case 4:
      return run(ByteIndices<4>());
    default:
      WASTE_CHECK(w.codec.stages == 6);
      return run(ByteIndices<6>());
  }
}

// One block of `count` columns. The largest magnitude is found among bits, whose order is that of
// magnitudes, with infinity above all numbers and a NaN above infinity: what is not finite makes
// the scale so too.
WASTE_SIMD float RoundBlock(const float* x, int64_t count, int16_t* integers) {
  const __m512 values[2] = {_mm512_maskz_loadu_ps(FirstLanes(count), x),
                            _mm512_maskz_loadu_ps(FirstLanes(count - kLanes), x + kLanes)};
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  const int32_t bits = _mm512_reduce_max_epi32(
      _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(values[0]), magnitude),
                       _mm512_and_si512(_mm512_castps_si512(values[1]), magnitude)));
  float largest;
  __builtin_memcpy(&largest, &bits, 4);
  constexpr float kLeast = 1e-30f, kMost = static_cast<float>(kMostInputWord);
  const __m512 inverse = _mm512_set1_ps(largest < kLeast ? 0.0f : kMost / largest);
  for (int64_t i = 0; i < 2; ++i) {
    const __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(values[i], inverse));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(integers + kLanes * i),
                        _mm512_cvtsepi32_epi16(q));
  }
  return largest < kLeast ? 0.0f : largest / kMost;
}

WASTE_SIMD void RoundInput(const float* x, int64_t columns, int16_t* integers, float* scales) {
  for (int64_t c = 0; c < columns; c += kWordBlock, integers += kWordBlock)
    *scales++ = RoundBlock(x + c, columns - c, integers);
}

}  // namespace

void AddExpertWordKernels(Kernels& kernels) {
  kernels.round_input = RoundInput;
  kernels.expert_words = ExpertWords;
}

}  // namespace waste

#endif
