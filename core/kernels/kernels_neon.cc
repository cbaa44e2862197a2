// SPDX-License-Identifier: Apache-2.0
//
// NEON as every aarch64 has it (ARMv8.0, with conversion from f16): the vector operations and trunk
// decoders that the .inc files build the table from. A Vec is two registers, eight lanes, because
// formats come in eights (three bytes of Q3G, a vector of a codebook); lanes are summed in the
// order of AVX2, so the two give the same bits. Runs only where CpuHas(Isa::kNeon). Any thread.

#include "kernels/tables.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "base/check.h"
#include "base/checked.h"
#include "kernels/fetch_ahead.h"
#include "kernels/unroll.h"

#define WASTE_SIMD  // the plain machine has all of it
#define WASTE_OP __attribute__((always_inline)) inline

namespace waste {
namespace {

struct Vec {
  float32x4_t low;
  float32x4_t high;
};
using Eight = Vec;

constexpr int64_t kLanes = 8;
constexpr int kProductSums = 8, kProductVectors = 2;  // and 2 inputs, a factor: 22 of 32 registers
constexpr bool kFuseTrunk = false;
constexpr int kFusedInputs = 2;
constexpr int kBlockInputs = 2;  // 8 sums, 2 inputs and a weight, in pairs: 22 of 32 registers

struct Mask {
  uint32x4_t low;
  uint32x4_t high;
};

WASTE_OP int32x4_t CountFrom(int32_t first) {
  const int32x4_t counts = {0, 1, 2, 3};
  return vaddq_s32(counts, vdupq_n_s32(first));
}

WASTE_OP Mask FirstLanes(int64_t n) {
  const int32x4_t count = vdupq_n_s32(static_cast<int32_t>(n));
  return {vcgtq_s32(count, CountFrom(0)), vcgtq_s32(count, CountFrom(4))};
}

WASTE_OP Vec Set1(float value) { return {vdupq_n_f32(value), vdupq_n_f32(value)}; }
WASTE_OP Vec Zero() { return Set1(0.0f); }
WASTE_OP Vec Load(const float* from) { return {vld1q_f32(from), vld1q_f32(from + 4)}; }
WASTE_OP Vec LoadFirst(const float* from, int64_t n) {
  float lanes[kLanes] = {};  // there are no masked loads and stores
  __builtin_memcpy(lanes, from, static_cast<size_t>(n) * sizeof(float));
  return Load(lanes);
}
WASTE_OP void Store(float* to, Vec value) {
  vst1q_f32(to, value.low);
  vst1q_f32(to + 4, value.high);
}
WASTE_OP void StoreFirst(float* to, int64_t n, Vec value) {
  float lanes[kLanes];
  Store(lanes, value);
  __builtin_memcpy(to, lanes, static_cast<size_t>(n) * sizeof(float));
}
WASTE_OP Vec Add(Vec a, Vec b) { return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)}; }
WASTE_OP Vec Sub(Vec a, Vec b) { return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)}; }
WASTE_OP Vec Mul(Vec a, Vec b) { return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)}; }
WASTE_OP Vec Fma(Vec a, Vec b, Vec c) {
  return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}

// There is no store past the caches that leaves a line alone: an ordinary one.
WASTE_OP void StorePast(float* to, Vec value) { Store(to, value); }
WASTE_OP void EndPast() {}
WASTE_OP bool IsVectorAligned(const float*) { return true; }

WASTE_OP Vec Div(Vec a, Vec b) { return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)}; }

// then[i] where the mask is set.
WASTE_OP Vec Choose(Mask mask, Vec then, Vec otherwise) {
  return {vbslq_f32(mask.low, then.low, otherwise.low),
          vbslq_f32(mask.high, then.high, otherwise.high)};
}
WASTE_OP Vec Max(Vec a, Vec b) {
  return Choose({vcgtq_f32(a.low, b.low), vcgtq_f32(a.high, b.high)}, a, b);
}
WASTE_OP Vec Min(Vec a, Vec b) {
  return Choose({vcltq_f32(a.low, b.low), vcltq_f32(a.high, b.high)}, a, b);
}
WASTE_OP Vec Round(Vec v) { return {vrndnq_f32(v.low), vrndnq_f32(v.high)}; }
WASTE_OP float32x4_t Power2Of(float32x4_t n) {
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
}
WASTE_OP Vec Power2(Vec n) { return {Power2Of(n.low), Power2Of(n.high)}; }
WASTE_OP Vec AbsLess(Vec a, Vec b, Vec then, Vec otherwise) {
  return Choose({vcaltq_f32(a.low, b.low), vcaltq_f32(a.high, b.high)}, then, otherwise);
}

WASTE_OP float Sum(Vec v) {
  const float32x4_t four = vaddq_f32(v.low, v.high);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vpadds_f32(two);
}

WASTE_OP Eight ZeroEight() { return Zero(); }
WASTE_OP Eight LoadEight(const float* from) { return Load(from); }
WASTE_OP void StoreEight(float* to, Eight value) { Store(to, value); }
WASTE_OP Eight AddEight(Eight a, Eight b) { return Add(a, b); }
WASTE_OP Vec Join(const Eight (&eights)[1]) { return eights[0]; }

WASTE_OP float HalfAt(const uint8_t* bytes) {
  __fp16 half;
  __builtin_memcpy(&half, bytes, 2);
  return static_cast<float>(half);
}

WASTE_OP Vec FromHalves(float16x8_t halves) {
  return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
}

WASTE_OP uint32_t WordAt(const uint8_t* bytes) {
  uint32_t word;
  __builtin_memcpy(&word, bytes, 4);
  return word;
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
    const uint8_t* const at = group.bytes + v * 32;
    return {vreinterpretq_f32_u8(vld1q_u8(at)), vreinterpretq_f32_u8(vld1q_u8(at + 16))};
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    float lanes[kLanes] = {};
    __builtin_memcpy(lanes, group.bytes + v * 32, static_cast<size_t>(n) * sizeof(float));
    return Load(lanes);
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
    return FromHalves(vreinterpretq_f16_u8(vld1q_u8(group.bytes + v * 16)));
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    uint8_t halves[16] = {};
    __builtin_memcpy(halves, group.bytes + v * 16, static_cast<size_t>(2 * n));
    return FromHalves(vreinterpretq_f16_u8(vld1q_u8(halves)));
  }
};

// The first n lanes of a format whose rows are padded to whole groups.
template <typename Format>
WASTE_OP Vec KeepFirst(const typename Format::Group& group, int64_t v, int64_t n) {
  const Vec all = Format::At(group, v);
  const Mask keep = FirstLanes(n);
  return {vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(all.low), keep.low)),
          vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(all.high), keep.high))};
}

struct ScaledGroup {
  float32x4_t scale;
  const uint8_t* bytes;
};

WASTE_OP Vec Scaled(int32x4_t low, int32x4_t high, float32x4_t scale) {
  return {vmulq_f32(vcvtq_f32_s32(low), scale), vmulq_f32(vcvtq_f32_s32(high), scale)};
}

struct Q8G : NaturalOrder {
  using Group = ScaledGroup;
  static constexpr int64_t kGroupBytes = kTrunkGroup;

  WASTE_OP static Group BeginGroup(const uint8_t* row, const uint8_t* scales, int64_t g) {
    return {vdupq_n_f32(HalfAt(scales + 2 * g)), row + g * kGroupBytes};
  }
  WASTE_OP static Vec At(const Group& group, int64_t v) {
    const int16x8_t q = vmovl_s8(vreinterpret_s8_u8(vld1_u8(group.bytes + v * 8)));
    return Scaled(vmovl_s16(vget_low_s16(q)), vmovl_high_s16(q), group.scale);
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    return KeepFirst<Q8G>(group, v, n);
  }
};

// Eight fields of kBits bits that follow each other in a word, less half of their range. Changing a
// field's highest bit makes it that difference in two's complement; each lane shifts its own field
// to the top and back down, which spreads the sign.
template <int kBits>
struct PackedFields : NaturalOrder {
  using Group = ScaledGroup;
  static constexpr int64_t kGroupBytes = kTrunkGroup * kBits / 8;
  static constexpr int kRest = 32 - kBits;
  static constexpr uint32_t kHighBits = kBits == 4 ? 0x88888888 : 0x00924924;

  WASTE_OP static Group BeginGroup(const uint8_t* row, const uint8_t* scales, int64_t g) {
    return {vdupq_n_f32(HalfAt(scales + 2 * g)), row + g * kGroupBytes};
  }
  WASTE_OP static Vec At(const Group& group, int64_t v) {
    const int32x4_t low = {kRest, kRest - kBits, kRest - 2 * kBits, kRest - 3 * kBits};
    const int32x4_t high = vsubq_s32(low, vdupq_n_s32(4 * kBits));
    const uint32x4_t word =
        veorq_u32(vdupq_n_u32(WordAt(group.bytes + v * kBits)), vdupq_n_u32(kHighBits));
    const int32x4_t signs = vreinterpretq_s32_u32(word);
    return Scaled(vshrq_n_s32(vshlq_s32(signs, low), kRest),
                  vshrq_n_s32(vshlq_s32(signs, high), kRest), group.scale);
  }
  WASTE_OP static Vec First(const Group& group, int64_t v, int64_t n) {
    return KeepFirst<PackedFields>(group, v, n);
  }
};

using Q4G = PackedFields<4>;
using Q3G =
    PackedFields<3>;  // the fourth byte of a word is the next one's first, or the row's spare

#include "kernels/simd_sources.inc"
#include "kernels/simd_transposed.inc"

constexpr Kernels kTable = {.isa = Isa::kNeon,
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
                            .build_table = BuildTableNeon,
                            .table_rows = TableRowsNeon,
                            .finish_rows = FinishRowsNeon,
                            .delta_step = DeltaStep,
                            .decayed_dots = DecayedDots};

}  // namespace

const Kernels* NeonKernels() { return &kTable; }

}  // namespace waste

#else

namespace waste {

const Kernels* NeonKernels() { return nullptr; }

}  // namespace waste

#endif
