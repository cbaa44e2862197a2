// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 (F, BW, DQ, VL): the vector operations and trunk decoders that the .inc files build the
// table from. The file is compiled for the plain machine; each function asks for the ISA itself,
// and nothing of the standard library is called from one. Runs only where CpuHas(Isa::kAvx512). Any
// thread.

#include "kernels/tables.h"

#if defined(__x86_64__)

#include "base/check.h"
#include "base/checked.h"
#include "kernels/avx512_intrinsics.h"
#include "kernels/fetch_ahead.h"
#include "kernels/unroll.h"

#define WASTE_SIMD __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define WASTE_OP WASTE_SIMD __attribute__((always_inline)) inline

namespace waste {
namespace {

using Vec = __m512;
using Eight = __m256;

constexpr int64_t kLanes = 16;
constexpr int kProductSums = 16, kProductVectors = 4;  // and 4 inputs, factors from memory
constexpr bool kFuseTrunk = true;
constexpr int kFusedInputs = 4;
constexpr int kBlockInputs = 6;  // 24 sums, 6 inputs and a weight: 31 of 32 registers

WASTE_OP Vec Zero() { return _mm512_setzero_ps(); }
WASTE_OP Vec Set1(float value) { return _mm512_set1_ps(value); }
WASTE_OP Vec Load(const void* from) { return _mm512_loadu_ps(from); }
WASTE_OP Vec LoadFirst(const void* from, int64_t n) {
  return _mm512_maskz_loadu_ps(FirstLanes(n), from);
}
WASTE_OP void Store(float* to, Vec value) { _mm512_storeu_ps(to, value); }
WASTE_OP void StoreFirst(float* to, int64_t n, Vec value) {
  _mm512_mask_storeu_ps(to, FirstLanes(n), value);
}
WASTE_OP void StorePast(float* to, Vec value) { _mm512_stream_ps(to, value); }
WASTE_OP void EndPast() { _mm_sfence(); }
WASTE_OP bool IsVectorAligned(const float* at) {
  return reinterpret_cast<uintptr_t>(at) % sizeof(Vec) == 0;
}
WASTE_OP Vec Add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
WASTE_OP Vec Sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
WASTE_OP Vec Mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
WASTE_OP Vec Fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }

WASTE_OP Vec Div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
WASTE_OP Vec Max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
WASTE_OP Vec Min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
WASTE_OP Vec Round(Vec v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT); }
WASTE_OP Vec Power2(Vec n) { return _mm512_scalef_ps(_mm512_set1_ps(1.0f), n); }
WASTE_OP Vec AbsLess(Vec a, Vec b, Vec then, Vec otherwise) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(_mm512_abs_ps(a), b, _CMP_LT_OQ), otherwise, then);
}

WASTE_OP float Sum(Vec v) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

WASTE_OP Eight ZeroEight() { return _mm256_setzero_ps(); }
WASTE_OP Eight LoadEight(const float* from) { return _mm256_loadu_ps(from); }
WASTE_OP void StoreEight(float* to, Eight value) { _mm256_storeu_ps(to, value); }
WASTE_OP Eight AddEight(Eight a, Eight b) { return _mm256_add_ps(a, b); }
WASTE_OP Vec Join(const Eight (&eights)[2]) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(eights[0]), eights[1], 1);
}

WASTE_OP float HalfAt(const uint8_t* bytes) {
  uint16_t half;
  __builtin_memcpy(&half, bytes, 2);
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

WASTE_OP int32_t Int32At(const uint8_t* bytes) {
  int32_t value;
  __builtin_memcpy(&value, bytes, 4);
  return value;
}

// Bytes low..low+3 in each of the lower eight lanes, high..high+3 in the upper ones.
WASTE_OP __m512i SpreadWords(const uint8_t* low, const uint8_t* high) {
  return _mm512_mask_set1_epi32(_mm512_set1_epi32(Int32At(low)), 0xFF00, Int32At(high));
}

#include "kernels/simd_dense.inc"
#include "kernels/simd_functions.inc"
#include "kernels/simd_rows.inc"

struct F32 : NaturalOrder {
  static constexpr int64_t kGroupBytes = kTrunkGroup * 4;

  struct Group {
    const uint8_t* bytes;
  };
  WASTE_OP static Group BeginGroup(const uint8_t* row, const uint8_t*, int64_t g) {
    return {row + g * kGroupBytes};
  }
  WASTE_OP static Vec At(const Group& group, int64_t v) { return Load(group.bytes + v * 64); }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    return LoadFirst(group.bytes + v * 64, n);
  }
};

struct F16 : NaturalOrder {
  static constexpr int64_t kGroupBytes = kTrunkGroup * 2;

  struct Group {
    const uint8_t* bytes;
  };
  WASTE_OP static Group BeginGroup(const uint8_t* row, const uint8_t*, int64_t g) {
    return {row + g * kGroupBytes};
  }
  WASTE_OP static Vec At(const Group& group, int64_t v) {
    return _mm512_cvtph_ps(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(group.bytes + v * 32)));
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(FirstLanes(n), group.bytes + v * 32));
  }
};

// The first n lanes of a format whose rows are padded to whole groups.
template <typename Format>
WASTE_OP Vec KeepFirst(const typename Format::Group& group, int64_t v, int64_t n) {
  return _mm512_maskz_mov_ps(FirstLanes(n), Format::At(group, v));
}

struct Q8G : NaturalOrder {
  static constexpr int64_t kGroupBytes = kTrunkGroup;

  struct Group {
    Vec scale;
    const uint8_t* bytes;
  };
  WASTE_OP static Group BeginGroup(const uint8_t* row, const uint8_t* scales, int64_t g) {
    return {Set1(HalfAt(scales + 2 * g)), row + g * kGroupBytes};
  }
  WASTE_OP static Vec At(const Group& group, int64_t v) {
    const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i*>(group.bytes + v * 16));
    return Mul(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q)), group.scale);
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    return KeepFirst<Q8G>(group, v, n);
  }
};

// The sixteen possible weights of the group are the table; a nibble picks one. One load spreads a
// vector's eight bytes to all lanes: even lanes see the lower four, odd ones the upper four. The
// order of lanes that follows is cheaper than to load twice.
struct Q4G {
  static constexpr int64_t kGroupBytes = kTrunkGroup / 2;

  struct Group {
    Vec weights;
    const uint8_t* bytes;
  };
  WASTE_OP static Group BeginGroup(const uint8_t* row, const uint8_t* scales, int64_t g) {
    const Vec integers = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    return {Mul(integers, Set1(HalfAt(scales + 2 * g))), row + g * kGroupBytes};
  }
  WASTE_OP static Vec At(const Group& group, int64_t v) {
    int64_t bytes;
    __builtin_memcpy(&bytes, group.bytes + v * 8, 8);
    const __m512i shifts =
        _mm512_setr_epi32(0, 0, 4, 4, 8, 8, 12, 12, 16, 16, 20, 20, 24, 24, 28, 28);
    const __m512i nibbles = _mm512_srlv_epi32(_mm512_set1_epi64(bytes), shifts);
    return _mm512_permutexvar_ps(nibbles, group.weights);  // looks at the low four bits only
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    return FromNatural(_mm512_maskz_mov_ps(FirstLanes(n), ToNatural(At(group, v))));
  }
  WASTE_OP static Vec ToNatural(Vec weights) {
    const __m512i lanes = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm512_permutexvar_ps(lanes, weights);
  }
  WASTE_OP static Vec FromNatural(Vec values) {
    const __m512i lanes = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    return _mm512_permutexvar_ps(lanes, values);
  }
};

// Eight possible weights, twice in the table because the fourth bit is the next field's. A vector
// is six bytes; the fourth byte of its upper word is the next vector's first, or the row's spare
// byte.
struct Q3G : NaturalOrder {
  static constexpr int64_t kGroupBytes = kTrunkGroup * 3 / 8;

  struct Group {
    Vec weights;
    const uint8_t* bytes;
  };

  WASTE_OP static Group BeginGroup(const uint8_t* row, const uint8_t* scales, int64_t g) {
    const Vec integers = _mm512_setr_ps(-4, -3, -2, -1, 0, 1, 2, 3, -4, -3, -2, -1, 0, 1, 2, 3);
    return {Mul(integers, Set1(HalfAt(scales + 2 * g))), row + g * kGroupBytes};
  }
  WASTE_OP static Vec At(const Group& group, int64_t v) {
    const uint8_t* const bytes = group.bytes + v * 6;
    const __m512i shifts =
        _mm512_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21, 0, 3, 6, 9, 12, 15, 18, 21);
    const __m512i fields = _mm512_srlv_epi32(SpreadWords(bytes, bytes + 3), shifts);
    return _mm512_permutexvar_ps(fields, group.weights);
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    return KeepFirst<Q3G>(group, v, n);
  }
};

#include "kernels/simd_sources.inc"
#include "kernels/simd_transposed.inc"

constexpr Kernels kTable = {.isa = Isa::kAvx512,
                            .dot = Dot,
                            .axpy = Axpy,
                            .multiply = Multiply,
                            .scale_rows = ScaleRows,
                            .multiply_add = MultiplyAdd,
                            .exp = Exp,
                            .sigmoid = Sigmoids,
                            .softplus = Softpluses,
                            .tanh = Tanhs,
                            .trunk_rows = TrunkRows,
                            .trunk_transposed = TrunkTransposed,
                            .split_input = nullptr,
                            .split_rows = nullptr,
                            .round_trunk_input = nullptr,
                            .trunk_words = nullptr,
                            .expert_rows = ExpertRows,
                            .round_expert_input = nullptr,
                            .expert_words = nullptr,
                            .build_table = nullptr,
                            .table_rows = nullptr,
                            .finish_rows = nullptr,
                            .delta_step = DeltaStep,
                            .decayed_dots = DecayedDots};

}  // namespace

const Kernels* Avx512Kernels() { return &kTable; }

}  // namespace waste

#else

namespace waste {

const Kernels* Avx512Kernels() { return nullptr; }

}  // namespace waste

#endif
