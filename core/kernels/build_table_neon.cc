// SPDX-License-Identifier: Apache-2.0
//
// Fills the look-up tables of expert_tables.h with NEON, for table_rows_neon.cc to read: the
// products of whole books with a vector of x, then in bytes. Any thread.

#include "kernels/tables.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "kernels/expert_tables.h"
#include "kernels/unroll.h"

#define WASTE_OP __attribute__((always_inline)) inline

namespace waste {
namespace {

struct Span {
  float low, high;
};

// T[e] = x . C[:, e] for all entries of one book.
Span MultiplyBook(const float* x, const float* turned, int64_t entries, float* products) {
  constexpr int64_t kAtOnce = 8;  // chains of multiply-adds
  float32x4_t low = vdupq_n_f32(__builtin_huge_valf()), high = vnegq_f32(low);
  for (int64_t e = 0; e < entries; e += 4 * kAtOnce) {
    float32x4_t sums[kAtOnce];
    WASTE_UNROLL
    for (int64_t j = 0; j < kAtOnce; ++j)
      sums[j] = vmulq_n_f32(vld1q_f32(turned + e + 4 * j), x[0]);
    for (int64_t i = 1; i < kVectorSize; ++i) {
      WASTE_UNROLL
      for (int64_t j = 0; j < kAtOnce; ++j)
        sums[j] = vfmaq_n_f32(sums[j], vld1q_f32(turned + i * entries + e + 4 * j), x[i]);
    }
    WASTE_UNROLL
    for (int64_t j = 0; j < kAtOnce; ++j) {
      vst1q_f32(products + e + 4 * j, sums[j]);
      low = vminq_f32(low, sums[j]);
      high = vmaxq_f32(high, sums[j]);
    }
  }
  return {vminvq_f32(low), vmaxvq_f32(high)};  // a NaN stays
}

// What QuantiseBook needs of a group. A step so small that its inverse is not finite is 0.
struct Steps {
  float inverse_delta;
  uint16_t base;
  uint16_t inverse_base;
  int32_t shift;  // q / base = q * inverse_base >> shift, exact for all that occurs
};

Steps MakeSteps(float delta, int64_t stages) {
  const auto base = static_cast<int32_t>(TableBase(stages));
  const int32_t shift = base > 64 ? 22 : 21;
  return {delta > 0 ? 1.0f / delta : 0.0f, static_cast<uint16_t>(base),
          static_cast<uint16_t>(((1 << shift) + base - 1) / base), shift};
}

// Eight of round((T - low) / delta).
WASTE_OP uint16x8_t Quantise(const float* products, float32x4_t scale, float32x4_t shift) {
  const uint32x4_t first = vcvtnq_u32_f32(vfmaq_f32(shift, vld1q_f32(products), scale));
  const uint32x4_t second = vcvtnq_u32_f32(vfmaq_f32(shift, vld1q_f32(products + 4), scale));
  return vqmovn_high_u32(vqmovn_u32(first), second);
}

void QuantiseBook(const float* products, float low, const Steps& steps, int64_t entries,
                  uint8_t* table) {
  const float32x4_t scale = vdupq_n_f32(steps.inverse_delta);
  const float32x4_t shift = vdupq_n_f32(-low * steps.inverse_delta);
  const int32x4_t down = vdupq_n_s32(-steps.shift);
  for (int64_t e = 0; e < entries; e += 8) {
    const uint16x8_t q = Quantise(products + e, scale, shift);
    const uint32x4_t first = vshlq_u32(vmull_n_u16(vget_low_u16(q), steps.inverse_base), down);
    const uint32x4_t second = vshlq_u32(vmull_high_n_u16(q, steps.inverse_base), down);
    const uint16x8_t high = vmovn_high_u32(vmovn_u32(first), second);
    vst1_u8(table + e, vmovn_u16(vmlsq_n_u16(q, high, steps.base)));
    vst1_u8(table + entries + e, vmovn_u16(high));
  }
}

}  // namespace

void BuildTableNeon(const ExpertMatrix& w, const float* x, int64_t group,
                    const IndexChunks& /*next*/, uint8_t* table, float* products) {
  Span spans[kMostTableBooks];
  const int64_t stages = w.codec.stages, entries = w.codec.entries;
  const int64_t first = group * TableVectors(w.codec), count = GroupVectors(w, group);
  float widest[kMaxStages] = {}, offset = 0.0f;
  for (int64_t book = 0; book < count * stages; ++book) {
    const int64_t v = book / stages, s = book % stages;
    spans[book] =
        MultiplyBook(x + (first + v) * kVectorSize, w.forms[static_cast<size_t>(s)].turned, entries,
                     products + book * entries);
    offset += spans[book].low;
    const float width = spans[book].high - spans[book].low;
    if (width > widest[s] || width != width) widest[s] = width;  // a NaN stays
  }
  const TableHeader header = MakeTableHeader(w.codec, widest, offset);
  __builtin_memcpy(table, &header, sizeof header);
  const Steps steps = MakeSteps(header.delta, stages);
  for (int64_t book = 0; book < count * stages; ++book)
    QuantiseBook(products + book * entries, spans[book].low, steps, entries,
                 table + kTableHeaderBytes + book * 2 * entries);
}

}  // namespace waste

#endif
