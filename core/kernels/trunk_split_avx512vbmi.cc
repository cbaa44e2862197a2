// SPDX-License-Identifier: Apache-2.0
//
// Trunk rows times a split input (split_input.h) with AVX-512 VNNI: vpdpbusd multiplies 64 bytes
// and adds them four by four. Q4G weights are bytes from 0 to 15 and Q8G weights are moved up by
// 128, because that instruction takes unsigned ones; what that adds to a row is its scales times
// the sums of the input's groups, and is taken off in the end. One core keeps up with memory, which
// decoding to f32 does not. Runs only where CpuHas(Isa::kAvx512Vbmi). Any thread.

#include "kernels/tables.h"

#if defined(__x86_64__)

#include "base/check.h"
#include "kernels/avx512_intrinsics.h"
#include "kernels/fetch_ahead.h"
#include "kernels/split_input.h"
#include "kernels/unroll.h"

#define WASTE_SIMD \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")))
#define WASTE_OP WASTE_SIMD __attribute__((always_inline)) inline

namespace waste {
namespace {

constexpr int64_t kPartRows = 32;          // that stay in the nearer caches for several inputs
constexpr int64_t kPrefetchBytes = 16384;  // ahead
constexpr int64_t kScalesAtOnce = 16;

WASTE_OP __m512i LoadBytes(const uint8_t* from) { return _mm512_loadu_si512(from); }

// The largest magnitude among `count` <= 128 floats. Compared as integers, whose order is that of
// magnitudes, with infinity above all numbers and a NaN above infinity: maximum of floats would
// drop a NaN.
WASTE_OP float LargestOf(const float* x, int64_t count) {
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  __m512i largest = _mm512_setzero_si512();
  for (int64_t i = 0; i < count; i += 16) {
    const __m512i bits = _mm512_maskz_loadu_epi32(FirstLanes(count - i), x + i);
    largest = _mm512_max_epi32(largest, _mm512_and_si512(bits, magnitude));
  }
  const int32_t most = _mm512_reduce_max_epi32(largest);
  float value;
  __builtin_memcpy(&value, &most, 4);
  return value;
}

// 16 columns as integers, of which `count` are there.
WASTE_OP __m256i Integers(const float* x, int64_t count, __m512 inverse) {
  const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(FirstLanes(count), x), inverse);
  return _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(scaled));
}

// Words 0, 2, 4, ... before 1, 3, 5, ...
WASTE_OP __m512i EvenFirst(__m512i words) {
  alignas(64) static constexpr auto kOrder = [] {
    struct {
      uint16_t at[32];
    } order{};
    for (int i = 0; i < 32; ++i) order.at[i] = static_cast<uint16_t>(i < 16 ? 2 * i : 2 * i - 31);
    return order;
  }();
  return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder.at), words);
}

WASTE_OP void StoreHalf(uint8_t* to, __m128i bytes) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
}

// Bytes of 32 words; `by_parity` is where those of even columns go, 64 before those of odd ones.
WASTE_OP void StoreBytes(__m512i words, uint8_t* by_parity, uint8_t* natural) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(natural), _mm512_cvtepi16_epi8(words));
  const __m256i bytes = _mm512_cvtepi16_epi8(EvenFirst(words));
  StoreHalf(by_parity, _mm256_castsi256_si128(bytes));
  StoreHalf(by_parity + 64, _mm256_extracti128_si256(bytes, 1));
}

// `count` columns of one group; returns the sum of its integers.
WASTE_SIMD int32_t SplitGroup(const float* x, int64_t count, float inverse, uint8_t* out) {
  const __m512 factor = _mm512_set1_ps(inverse);
  __m512i sum = _mm512_setzero_si512();
  for (int64_t part = 0; part < 4; ++part) {
    const int64_t left = count - 32 * part;
    const __m512i q =
        _mm512_inserti64x4(_mm512_castsi256_si512(Integers(x + 32 * part, left, factor)),
                           Integers(x + 32 * part + 16, left - 16, factor), 1);
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(q, _mm512_set1_epi16(1)));
    // q = 256 high + low with low from -128 to 127.
    const __m512i high = _mm512_srai_epi16(_mm512_add_epi16(q, _mm512_set1_epi16(128)), 8);
    StoreBytes(high, out + kSplitEvenOdd + 16 * part, out + kSplitNatural + 32 * part);
    StoreBytes(q, out + kSplitEvenOdd + 128 + 16 * part, out + kSplitNatural + 128 + 32 * part);
  }
  return _mm512_reduce_add_epi32(sum);
}

WASTE_SIMD void SplitInputs(const float* x, int64_t columns, uint8_t* out) {
  const int64_t groups = (columns + kTrunkGroup - 1) / kTrunkGroup;
  float* const scales = reinterpret_cast<float*>(out + groups * kSplitGroupBytes);
  float* const sums = scales + SplitScales(columns);
  for (int64_t g = 0; g < SplitScales(columns); ++g) scales[g] = sums[g] = 0.0f;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t left = columns - g * kTrunkGroup;
    const int64_t count = left < kTrunkGroup ? left : kTrunkGroup;
    const float largest = LargestOf(x + g * kTrunkGroup, count);
    // Below, 1 / scale may be infinite, and nothing is lost. What is not finite stays so.
    scales[g] = largest < 1e-30f ? 0.0f : largest / kSplitMost;
    const float inverse = largest < 1e-30f ? 0.0f : kSplitMost / largest;
    sums[g] = scales[g] * static_cast<float>(SplitGroup(x + g * kTrunkGroup, count, inverse,
                                                        out + g * kSplitGroupBytes));
  }
}

// A group's 128 weights as two times 64 unsigned bytes, `kOffset` too large, in the order of the
// input's bytes at kInput. kRows rows share the loads of the input: of longer ones fewer, because a
// CPU follows few streams well.
struct Q4Bytes {
  static constexpr int64_t kGroupBytes = kTrunkGroup / 2;
  static constexpr int64_t kInput = kSplitEvenOdd;
  static constexpr float kOffset = 8.0f;
  static constexpr int64_t kRows = 4;

  WASTE_OP static void Load(const uint8_t* from, __m512i& first, __m512i& second) {
    const __m512i bytes = LoadBytes(from), nibble = _mm512_set1_epi8(15);
    first = _mm512_and_si512(bytes, nibble);
    second = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), nibble);
  }
};

struct Q8Bytes {
  static constexpr int64_t kGroupBytes = kTrunkGroup;
  static constexpr int64_t kInput = kSplitNatural;
  static constexpr float kOffset = 128.0f;
  static constexpr int64_t kRows = 1;

  WASTE_OP static void Load(const uint8_t* from, __m512i& first, __m512i& second) {
    const __m512i up = _mm512_set1_epi8(static_cast<char>(128));
    first = _mm512_xor_si512(LoadBytes(from), up);
    second = _mm512_xor_si512(LoadBytes(from + 64), up);
  }
};

struct Rows {
  const uint8_t* payload;
  const uint8_t* scales;
  int64_t groups;
};

// Rows r to r + count - 1, count <= kRows, times one input. A row beyond `count` is the last
// one again, and its sums are dropped.
template <typename Format>
WASTE_SIMD void FewRows(const Rows& w, int64_t r, int64_t count, const uint8_t* input,
                        const float* input_scales, const float* input_sums, float* y) {
  constexpr int64_t kRows = Format::kRows;
  const int64_t row_bytes = w.groups * Format::kGroupBytes;
  const uint8_t* rows[kRows];
  const uint8_t* scales[kRows];
  __m512 acc[kRows], above[kRows];
  alignas(64) float factors[kRows][kScalesAtOnce];
  WASTE_UNROLL
  for (int64_t i = 0; i < kRows; ++i) {
    const int64_t row = r + (i < count ? i : count - 1);
    rows[i] = w.payload + row * row_bytes;
    scales[i] = w.scales + row * w.groups * 2;
    acc[i] = above[i] = _mm512_setzero_ps();
  }
  for (int64_t begin = 0; begin < w.groups; begin += kScalesAtOnce) {
    const int64_t here = w.groups - begin < kScalesAtOnce ? w.groups - begin : kScalesAtOnce;
    const __m512 scale_of_input = _mm512_loadu_ps(input_scales + begin);
    const __m512 sum_of_input = _mm512_loadu_ps(input_sums + begin);
    WASTE_UNROLL
    for (int64_t i = 0; i < kRows; ++i) {
      const __m512 scale =
          _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(FirstLanes(here), scales[i] + 2 * begin));
      above[i] = _mm512_fmadd_ps(scale, sum_of_input, above[i]);
      _mm512_store_ps(factors[i], _mm512_mul_ps(scale, scale_of_input));
    }
    for (int64_t g = 0; g < here; ++g) {
      const uint8_t* const x = input + (begin + g) * kSplitGroupBytes + Format::kInput;
      const __m512i high[2] = {LoadBytes(x), LoadBytes(x + 64)};
      const __m512i low[2] = {LoadBytes(x + 128), LoadBytes(x + 192)};
      WASTE_UNROLL
      for (int64_t i = 0; i < kRows; ++i) {
        const uint8_t* const from = rows[i] + (begin + g) * Format::kGroupBytes;
        for (int64_t line = 0; line < Format::kGroupBytes; line += 64)
          FetchLine(AddressAt(from, kPrefetchBytes + line));
        __m512i first, second;
        Format::Load(from, first, second);
        const __m512i zero = _mm512_setzero_si512();
        const __m512i h =
            _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, first, high[0]), second, high[1]);
        const __m512i l =
            _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, first, low[0]), second, low[1]);
        const __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(h, 8), l);
        acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(factors[i][g]), acc[i]);
      }
    }
  }
  WASTE_UNROLL
  for (int64_t i = 0; i < kRows; ++i) {
    if (i >= count) break;
    const __m512 offset = _mm512_set1_ps(-Format::kOffset);
    y[r + i] = _mm512_reduce_add_ps(_mm512_fmadd_ps(above[i], offset, acc[i]));
  }
}

template <typename Format>
WASTE_SIMD void SplitRowsAs(const TrunkMatrix& w, int64_t row_begin, int64_t row_end,
                            const uint8_t* inputs, int64_t batch, float* y, int64_t y_stride) {
  const int64_t groups = TrunkRowGroups(w.columns), input_bytes = SplitBytes(w.columns);
  constexpr int64_t kRows = Format::kRows;
  const Rows rows{w.payload, w.scales, groups};
  for (int64_t part = row_begin; part < row_end; part += kPartRows) {
    const int64_t end = row_end - part < kPartRows ? row_end : part + kPartRows;
    for (int64_t b = 0; b < batch; ++b) {
      const uint8_t* const input = inputs + b * input_bytes;
      const auto* const scales = reinterpret_cast<const float*>(input + groups * kSplitGroupBytes);
      for (int64_t r = part; r < end; r += kRows)
        FewRows<Format>(rows, r, end - r < kRows ? end - r : kRows, input, scales,
                        scales + SplitScales(w.columns), y + b * y_stride);
    }
  }
}

WASTE_SIMD void SplitRows(const TrunkMatrix& w, int64_t row_begin, int64_t row_end,
                          const uint8_t* inputs, int64_t batch, float* y, int64_t y_stride) {
  if (w.format == TrunkFormat::kQ4G)
    return SplitRowsAs<Q4Bytes>(w, row_begin, row_end, inputs, batch, y, y_stride);
  WASTE_CHECK(w.format == TrunkFormat::kQ8G);
  SplitRowsAs<Q8Bytes>(w, row_begin, row_end, inputs, batch, y, y_stride);
}

}  // namespace

void AddSplitKernels(Kernels& kernels) {
  kernels.split_input = SplitInputs;
  kernels.split_rows = SplitRows;
}

}  // namespace waste

#endif
