// SPDX-License-Identifier: Apache-2.0
//
// Trunk rows times inputs in words (word_tiles_avx512.inc), for the many rows of a prompt. Weights
// of Q4G and Q8G are integers already; a tile is one group of 64 rows, which lie row by row and are
// turned: words of four bytes are, and what is in them is taken apart afterwards. Runs only where
// CpuHas(Isa::kAvx512Vbmi). Any thread.

#include "kernels/tables.h"

#if defined(__x86_64__)

#include "base/check.h"
#include "kernels/avx512_intrinsics.h"
#include "kernels/fetch_ahead.h"
#include "kernels/unroll.h"

#define WASTE_SIMD \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")))
#define WASTE_OP WASTE_SIMD __attribute__((always_inline)) inline

namespace waste {
namespace {

#include "kernels/word_tiles_avx512.inc"

constexpr int64_t kLine = 64;         // bytes of a register
constexpr int64_t kFastInputs = 128;  // more leave the second cache, and turning is cheap
static_assert(kFastInputs <= kMostInputs);
static_assert(kTrunkGroup * kTileRows <= kTileWords);

// Turns 16 registers of 16 words of four bytes.
WASTE_OP void Turn(__m512i (&rows)[kLanes]) {
  __m512i other[kLanes];
  WASTE_UNROLL
  for (int64_t i = 0; i < kLanes; i += 2) {
    other[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    other[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  WASTE_UNROLL
  for (int64_t i = 0; i < kLanes; i += 4) {  // rows i to i + 3; register i + k has words 4 j + k
    rows[i] = _mm512_unpacklo_epi64(other[i], other[i + 2]);
    rows[i + 1] = _mm512_unpackhi_epi64(other[i], other[i + 2]);
    rows[i + 2] = _mm512_unpacklo_epi64(other[i + 1], other[i + 3]);
    rows[i + 3] = _mm512_unpackhi_epi64(other[i + 1], other[i + 3]);
  }
  WASTE_UNROLL
  for (int64_t k = 0; k < 4; ++k) {  // eight rows of words k, 8 + k; then of 4 + k, 12 + k
    other[k] = _mm512_shuffle_i32x4(rows[k], rows[4 + k], 0x88);
    other[4 + k] = _mm512_shuffle_i32x4(rows[k], rows[4 + k], 0xDD);
    other[8 + k] = _mm512_shuffle_i32x4(rows[8 + k], rows[12 + k], 0x88);
    other[12 + k] = _mm512_shuffle_i32x4(rows[8 + k], rows[12 + k], 0xDD);
  }
  WASTE_UNROLL
  for (int64_t k = 0; k < 4; ++k) {
    rows[k] = _mm512_shuffle_i32x4(other[k], other[8 + k], 0x88);
    rows[8 + k] = _mm512_shuffle_i32x4(other[k], other[8 + k], 0xDD);
    rows[4 + k] = _mm512_shuffle_i32x4(other[4 + k], other[12 + k], 0x88);
    rows[12 + k] = _mm512_shuffle_i32x4(other[4 + k], other[12 + k], 0xDD);
  }
}

// A format's group of one row, as lines of 64 bytes, and how four bytes of it become words: the
// pairs of kPairs columns, each kPairWords after the one before.
struct Q4Words {
  static constexpr int64_t kLines = 1, kPairs = 4;

  // A byte is a pair: its lower half the even column.
  WASTE_OP static void Store(__m512i bytes, int16_t* tile) {
    const __m512i nibbles = _mm512_set1_epi32(0x000F000F), eight = _mm512_set1_epi16(8);
    WASTE_UNROLL
    for (int q = 0; q < kPairs; ++q) {
      const __m512i even = _mm512_srli_epi32(bytes, static_cast<unsigned>(8 * q));
      const __m512i odd = q < 2 ? _mm512_slli_epi32(bytes, static_cast<unsigned>(12 - 8 * q))
                                : _mm512_srli_epi32(bytes, static_cast<unsigned>(8 * q - 12));
      const __m512i both = _mm512_mask_blend_epi16(0xAAAAAAAAu, even, odd);
      _mm512_storeu_si512(tile + q * kPairWords,
                          _mm512_sub_epi16(_mm512_and_si512(both, nibbles), eight));
    }
  }
};

struct Q8Words {
  static constexpr int64_t kLines = 2, kPairs = 2;

  WASTE_OP static void Store(__m512i bytes, int16_t* tile) {
    const __m512i even = _mm512_srai_epi16(_mm512_slli_epi16(bytes, 8), 8);
    const __m512i odd = _mm512_srai_epi16(bytes, 8);
    _mm512_storeu_si512(tile,
                        _mm512_mask_blend_epi16(0xAAAAAAAAu, even, _mm512_slli_epi32(odd, 16)));
    _mm512_storeu_si512(tile + kPairWords,
                        _mm512_mask_blend_epi16(0xAAAAAAAAu, _mm512_srli_epi32(even, 16), odd));
  }
};

// `count` <= kTileRows rows from `row` on. A row beyond them is the last one again, and its sums
// are dropped.
struct Block {
  const TrunkMatrix& w;
  int64_t groups, row, count;

  int64_t Row(int64_t i) const { return row + (i < count ? i : count - 1); }

  template <typename Format>
  WASTE_SIMD void Decode(int64_t group, int16_t* tile) const {
    constexpr int64_t kGroupBytes = Format::kLines * kLine;
    const uint8_t* const first = w.payload + group * kGroupBytes;
    const int64_t row_bytes = groups * kGroupBytes;
    for (int64_t r = 0; r < kTileRows; r += kLanes) {
      for (int64_t line = 0; line < Format::kLines; ++line) {
        __m512i rows[kLanes];
        WASTE_UNROLL
        for (int64_t i = 0; i < kLanes; ++i)
          rows[i] = _mm512_loadu_si512(first + Row(r + i) * row_bytes + line * kLine);
        Turn(rows);
        int16_t* to = tile + line * kLanes * Format::kPairs * kPairWords + 2 * r;
        WASTE_UNROLL
        for (int64_t i = 0; i < kLanes; ++i, to += Format::kPairs * kPairWords)
          Format::Store(rows[i], to);
      }
    }
  }

  WASTE_SIMD void Scales(int64_t group, float* scales) const {
    uint16_t halves[kTileRows];
    for (int64_t i = 0; i < kTileRows; ++i)
      __builtin_memcpy(halves + i, w.scales + 2 * (Row(i) * groups + group), 2);
    for (int64_t i = 0; i < kTileRows; i += kLanes)
      _mm512_storeu_ps(
          scales + i,
          _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves + i))));
  }
};

template <typename Format>
WASTE_SIMD void TrunkWordsAs(const TrunkMatrix& w, int64_t row_begin, int64_t row_end,
                             const TrunkInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                             float* memory) {
  const Scratch scratch(memory);
  float scales[kTileRows];
  const __m512 one = _mm512_set1_ps(1.0f), ones[kRowVectors] = {one, one, one, one};
  for (int64_t r = row_begin; r < row_end; r += kTileRows) {
    const int64_t rows = row_end - r < kTileRows ? row_end - r : kTileRows;
    const Block block{w, TrunkRowGroups(w.columns), r, rows};
    for (int64_t i = 0; i < batch; i += kFastInputs) {
      const int64_t count = batch - i < kFastInputs ? batch - i : kFastInputs;
      for (int64_t g = 0; g < block.groups; ++g) {
        block.Decode<Format>(g, scratch.tile);
        block.Scales(g, scales);
        MultiplyInputs(Tile{scratch.tile, 1, 0.0f, scales, g == 0}, inputs.At(i, g), count,
                       scratch.sums);
      }
      WriteSums(scratch.sums, count, ones, rows, y + i * y_stride + r, y_stride);
    }
  }
}

WASTE_SIMD void TrunkWords(const TrunkMatrix& w, int64_t row_begin, int64_t row_end,
                           const TrunkInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                           float* scratch) {
  if (w.format == TrunkFormat::kQ4G)
    return TrunkWordsAs<Q4Words>(w, row_begin, row_end, inputs, batch, y, y_stride, scratch);
  WASTE_CHECK(w.format == TrunkFormat::kQ8G);
  TrunkWordsAs<Q8Words>(w, row_begin, row_end, inputs, batch, y, y_stride, scratch);
}

WASTE_SIMD void RoundInput(const float* x, int64_t columns, int16_t* integers, float* scales) {
  RoundBlocks<TrunkInputs>(x, columns, integers, scales);
}

}  // namespace

void AddTrunkWordKernels(Kernels& kernels) {
  kernels.round_trunk_input = RoundInput;
  kernels.trunk_words = TrunkWords;
}

}  // namespace waste

#endif
