// SPDX-License-Identifier: Apache-2.0
//
// AVX2 with FMA and F16C: the vector operations and trunk decoders that the .inc files build the
// table from. The file is compiled for the plain machine; each function asks for the ISA itself,
// and nothing of the standard library is called from one. Runs only where CpuHas(Isa::kAvx2). Any
// thread.

#include "kernels/tables.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "base/check.h"
#include "base/checked.h"
#include "kernels/fetch_ahead.h"
#include "kernels/unroll.h"

#define WASTE_SIMD __attribute__((target("avx2,fma,f16c")))
#define WASTE_OP WASTE_SIMD __attribute__((always_inline)) inline

namespace waste {
namespace {

using Vec = __m256;
using Eight = __m256;

constexpr int64_t kLanes = 8;
constexpr int kProductSums = 12, kProductVectors = 2;  // and 2 inputs, a factor: 15 registers
constexpr bool kFuseTrunk = false;
constexpr int kFusedInputs = 2;
constexpr int kBlockInputs = 3;  // 12 sums, 3 inputs and a weight: all 16 registers

WASTE_OP __m256i FirstLanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

WASTE_OP Vec Zero() { return _mm256_setzero_ps(); }
WASTE_OP Vec Set1(float value) { return _mm256_set1_ps(value); }
WASTE_OP Vec Load(const float* from) { return _mm256_loadu_ps(from); }
WASTE_OP Vec LoadFirst(const float* from, int64_t n) {
  return _mm256_maskload_ps(from, FirstLanes(n));
}
WASTE_OP void Store(float* to, Vec value) { _mm256_storeu_ps(to, value); }
WASTE_OP void StoreFirst(float* to, int64_t n, Vec value) {
  _mm256_maskstore_ps(to, FirstLanes(n), value);
}
WASTE_OP void StorePast(float* to, Vec value) { _mm256_stream_ps(to, value); }
WASTE_OP void EndPast() { _mm_sfence(); }
WASTE_OP bool IsVectorAligned(const float* at) {
  return reinterpret_cast<uintptr_t>(at) % sizeof(Vec) == 0;
}
WASTE_OP Vec Add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
WASTE_OP Vec Sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
WASTE_OP Vec Mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
WASTE_OP Vec Fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }

WASTE_OP Vec Div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
WASTE_OP Vec Max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
WASTE_OP Vec Min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
WASTE_OP Vec Round(Vec v) {
  return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
WASTE_OP Vec Power2(Vec n) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
}
WASTE_OP Vec AbsLess(Vec a, Vec b, Vec then, Vec otherwise) {
  const Vec magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
  return _mm256_blendv_ps(otherwise, then, _mm256_cmp_ps(magnitude, b, _CMP_LT_OQ));
}

WASTE_OP float Sum(Vec v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

WASTE_OP Eight ZeroEight() { return Zero(); }
WASTE_OP Eight LoadEight(const float* from) { return Load(from); }
WASTE_OP void StoreEight(float* to, Eight value) { Store(to, value); }
WASTE_OP Eight AddEight(Eight a, Eight b) { return Add(a, b); }
WASTE_OP Vec Join(const Eight (&eights)[1]) { return eights[0]; }

WASTE_OP float HalfAt(const uint8_t* bytes) {
  uint16_t half;
  __builtin_memcpy(&half, bytes, 2);
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

// Bytes 0 to 3 in each lane.
WASTE_OP __m256i SpreadWord(const uint8_t* bytes) {
  int32_t word;
  __builtin_memcpy(&word, bytes, 4);
  return _mm256_set1_epi32(word);
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
  WASTE_OP static Vec At(const Group& group, int64_t v) {
    return _mm256_castsi256_ps(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(group.bytes + v * 32)));
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    return _mm256_castsi256_ps(_mm256_maskload_epi32(
        reinterpret_cast<const int32_t*>(group.bytes + v * 32), FirstLanes(n)));
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
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(group.bytes + v * 16)));
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    alignas(16) uint8_t halves[16] = {};  // there is no masked load of halves
    __builtin_memcpy(halves, group.bytes + v * 16, static_cast<size_t>(2 * n));
    return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(halves)));
  }
};

// The first n lanes of a format whose rows are padded to whole groups.
template <typename Format>
WASTE_OP Vec KeepFirst(const typename Format::Group& group, int64_t v, int64_t n) {
  return _mm256_and_ps(Format::At(group, v), _mm256_castsi256_ps(FirstLanes(n)));
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
    const __m128i q = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(group.bytes + v * 8));
    return Mul(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)), group.scale);
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    return KeepFirst<Q8G>(group, v, n);
  }
};

// nibble * scale - 8 * scale, fused: 8 * scale is exact, so this is (nibble - 8) * scale rounded
// once, as the format means it.
struct Q4G : NaturalOrder {
  static constexpr int64_t kGroupBytes = kTrunkGroup / 2;

  struct Group {
    Vec scale;
    Vec offset;
    const uint8_t* bytes;
  };
  WASTE_OP static Group BeginGroup(const uint8_t* row, const uint8_t* scales, int64_t g) {
    const float scale = HalfAt(scales + 2 * g);
    return {Set1(scale), Set1(-8.0f * scale), row + g * kGroupBytes};
  }
  WASTE_OP static Vec At(const Group& group, int64_t v) {
    const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const __m256i fields = _mm256_srlv_epi32(SpreadWord(group.bytes + v * 4), shifts);
    const __m256i nibbles = _mm256_and_si256(fields, _mm256_set1_epi32(15));
    return Fma(_mm256_cvtepi32_ps(nibbles), group.scale, group.offset);
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    return KeepFirst<Q4G>(group, v, n);
  }
};

// The eight possible weights of the group are the table; three bits pick one. A vector is three
// bytes; the fourth that is loaded is the next vector's first, or the row's spare byte.
struct Q3G : NaturalOrder {
  static constexpr int64_t kGroupBytes = kTrunkGroup * 3 / 8;

  struct Group {
    Vec weights;
    const uint8_t* bytes;
  };
  WASTE_OP static Group BeginGroup(const uint8_t* row, const uint8_t* scales, int64_t g) {
    const Vec integers = _mm256_setr_ps(-4, -3, -2, -1, 0, 1, 2, 3);
    return {Mul(integers, Set1(HalfAt(scales + 2 * g))), row + g * kGroupBytes};
  }
  WASTE_OP static Vec At(const Group& group, int64_t v) {
    const __m256i shifts = _mm256_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21);
    const __m256i fields = _mm256_srlv_epi32(SpreadWord(group.bytes + v * 3), shifts);
    return _mm256_permutevar8x32_ps(group.weights, fields);  // looks at the low three bits only
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    return KeepFirst<Q3G>(group, v, n);
  }
};

#include "kernels/simd_sources.inc"
#include "kernels/simd_transposed.inc"

constexpr Kernels kTable = {.isa = Isa::kAvx2,
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

const Kernels* Avx2Kernels() { return &kTable; }

}  // namespace waste

#else

namespace waste {

const Kernels* Avx2Kernels() { return nullptr; }

}  // namespace waste

#endif
