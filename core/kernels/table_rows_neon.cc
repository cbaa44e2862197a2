// SPDX-License-Identifier: Apache-2.0
//
// Rows by the look-up tables of expert_tables.h with NEON; build_table_neon.cc fills them. tbl
// looks 16 indices up in 64 bytes; a table of 256 is four of them, where an index beyond a part's
// reach leaves what the others found (tbx). A part of the low bytes and the same part of the high
// ones are in registers at once, for all 64 rows of a block. Any thread.

#include "kernels/tables.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "kernels/expert_tables.h"
#include "kernels/unroll.h"

#define WASTE_OP __attribute__((always_inline)) inline

namespace waste {
namespace {

constexpr int64_t kChunkRows = 16;  // of one register of indices
constexpr int64_t kChunks = kIndexBlock / kChunkRows;
constexpr int64_t kPart = 64;             // entries that one look-up sees
constexpr int64_t kPrefetchAhead = 1024;  // bytes

// Load gives one register a stage: the indices of 16 rows.
template <int kStagesOf>
struct ByteStages {
  static constexpr int kStages = kStagesOf;
  static constexpr int64_t kBytes = kStagesOf, kEntries = 256;

  WASTE_OP static void Load(const uint8_t* bytes, uint8x16_t (&out)[kStages]) {
    if constexpr (kStages == 2) Keep(vld2q_u8(bytes), out);
    if constexpr (kStages == 3) Keep(vld3q_u8(bytes), out);
    if constexpr (kStages == 4) Keep(vld4q_u8(bytes), out);
    if constexpr (kStages == 6) {  // a row is two triples
      const uint8x16x3_t a = vld3q_u8(bytes), b = vld3q_u8(bytes + 48);
      WASTE_UNROLL
      for (int s = 0; s < 3; ++s) {
        out[s] = vuzp1q_u8(a.val[s], b.val[s]);
        out[3 + s] = vuzp2q_u8(a.val[s], b.val[s]);
      }
    }
  }
  template <typename Loaded>
  WASTE_OP static void Keep(const Loaded& loaded, uint8x16_t (&out)[kStages]) {
    WASTE_UNROLL
    for (int s = 0; s < kStages; ++s) out[s] = loaded.val[s];
  }
};

struct PackedStages {
  static constexpr int kStages = 4;
  static constexpr int64_t kBytes = 3, kEntries = 64;

  WASTE_OP static void Load(const uint8_t* bytes, uint8x16_t (&out)[kStages]) {
    const uint8x16x3_t b = vld3q_u8(bytes);
    const uint8x16_t six = vdupq_n_u8(63);
    out[0] = vandq_u8(b.val[0], six);
    out[1] = vandq_u8(vsliq_n_u8(vshrq_n_u8(b.val[0], 6), b.val[1], 2), six);
    out[2] = vandq_u8(vsliq_n_u8(vshrq_n_u8(b.val[1], 4), b.val[2], 4), six);
    out[3] = vshrq_n_u8(b.val[2], 2);
  }
};

// The bytes of one stage, low and high, of a block's rows. `table` has the entries' low bytes, then
// their high ones.
template <int64_t kEntries>
WASTE_OP void LookUp(const uint8_t* table, uint8x16_t (&indices)[kChunks],
                     uint8x16_t (&low)[kChunks], uint8x16_t (&high)[kChunks]) {
  WASTE_UNROLL
  for (int64_t part = 0; part < kEntries / kPart; ++part) {
    const uint8x16x4_t lows = vld1q_u8_x4(table + part * kPart);
    const uint8x16x4_t highs = vld1q_u8_x4(table + kEntries + part * kPart);
    WASTE_UNROLL
    for (int64_t c = 0; c < kChunks; ++c) {
      if (part == 0) {
        low[c] = vqtbl4q_u8(lows, indices[c]);
        high[c] = vqtbl4q_u8(highs, indices[c]);
      } else {
        indices[c] = vsubq_u8(indices[c], vdupq_n_u8(kPart));
        low[c] = vqtbx4q_u8(low[c], lows, indices[c]);
        high[c] = vqtbx4q_u8(high[c], highs, indices[c]);
      }
    }
  }
}

// Sums of a block's rows in 16 bits.
struct WordSums {
  uint16x8_t words[kChunks][2] = {};

  WASTE_OP void Add(const uint8x16_t (&bytes)[kChunks]) {
    WASTE_UNROLL
    for (int64_t c = 0; c < kChunks; ++c) {
      words[c][0] = vaddw_u8(words[c][0], vget_low_u8(bytes[c]));
      words[c][1] = vaddw_high_u8(words[c][1], bytes[c]);
    }
  }
};

// Adds the group's part of eight rows, delta * (low + base * high), to `sums`, or writes it there.
WASTE_OP void AddWords(uint16x8_t low, uint16x8_t high, uint16_t base, float delta, bool is_first,
                       float* sums) {
  const float32x4_t none = vdupq_n_f32(0.0f);
  const uint32x4_t first = vmlal_n_u16(vmovl_u16(vget_low_u16(low)), vget_low_u16(high), base);
  const uint32x4_t second = vmlal_high_n_u16(vmovl_high_u16(low), high, base);
  const float32x4_t before[] = {is_first ? none : vld1q_f32(sums),
                                is_first ? none : vld1q_f32(sums + 4)};
  vst1q_f32(sums, vfmaq_n_f32(before[0], vcvtq_f32_u32(first), delta));
  vst1q_f32(sums + 4, vfmaq_n_f32(before[1], vcvtq_f32_u32(second), delta));
}

// One group of vectors for one block.
template <typename Codes>
void GroupOfBlock(const uint8_t* table, int64_t vectors, float delta, const uint8_t* bytes,
                  bool is_first, float* sums) {
  constexpr int64_t kStep = kIndexBlock * Codes::kBytes;
  constexpr int kTogether = static_cast<int>(TableSumStages(Codes::kStages));
  WordSums low, high;
  for (int64_t v = 0; v < vectors; ++v, bytes += kStep) {
    uint8x16_t codes[kChunks][Codes::kStages], low_bytes[kChunks], high_bytes[kChunks];
    WASTE_UNROLL
    for (int64_t c = 0; c < kChunks; ++c)
      Codes::Load(bytes + c * kChunkRows * Codes::kBytes, codes[c]);
    WASTE_UNROLL
    for (int64_t line = 0; line < kStep; line += 64)
      __builtin_prefetch(bytes + kPrefetchAhead + line);
    WASTE_UNROLL
    for (int s = 0; s < Codes::kStages; ++s) {
      uint8x16_t indices[kChunks], low_found[kChunks], high_found[kChunks];
      WASTE_UNROLL
      for (int64_t c = 0; c < kChunks; ++c) indices[c] = codes[c][s];
      LookUp<Codes::kEntries>(table, indices, low_found, high_found);
      table += 2 * Codes::kEntries;
      WASTE_UNROLL
      for (int64_t c = 0; c < kChunks; ++c) {
        const bool first = s % kTogether == 0;
        low_bytes[c] = first ? low_found[c] : vaddq_u8(low_bytes[c], low_found[c]);
        high_bytes[c] = first ? high_found[c] : vaddq_u8(high_bytes[c], high_found[c]);
      }
      if (s % kTogether < kTogether - 1) continue;
      low.Add(low_bytes);
      high.Add(high_bytes);
    }
  }
  WASTE_UNROLL
  for (int64_t c = 0; c < kChunks; ++c) {
    constexpr auto kBase = static_cast<uint16_t>(TableBase(Codes::kStages));
    float* const to = sums + c * kChunkRows;
    AddWords(low.words[c][0], high.words[c][0], kBase, delta, is_first, to);
    AddWords(low.words[c][1], high.words[c][1], kBase, delta, is_first, to + 8);
  }
}

float HalfAt(const uint8_t* bytes) {
  __fp16 half;
  __builtin_memcpy(&half, bytes, 2);
  return static_cast<float>(half);
}

template <typename Codes>
void TableRowsAs(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, int64_t group,
                 const uint8_t* table, bool is_first, float* sums) {
  const IndexChunks chunks = ChunksOf(w, row_begin, row_end, group);
  for (int64_t b = 0; b < chunks.count; ++b)
    GroupOfBlock<Codes>(table + kTableHeaderBytes, GroupVectors(w, group), HeaderOf(table).delta,
                        chunks.first + b * chunks.stride, is_first, sums + b * kIndexBlock);
}

}  // namespace

void TableRowsNeon(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, int64_t group,
                   const uint8_t* table, const IndexChunks& /*next*/, bool is_first, float* sums) {
  if (w.codec.kind == IndexKind::kPacked6)
    return TableRowsAs<PackedStages>(w, row_begin, row_end, group, table, is_first, sums);
  switch (w.codec.stages) {
    case 2:
      return TableRowsAs<ByteStages<2>>(w, row_begin, row_end, group, table, is_first, sums);
    case 3:
      return TableRowsAs<ByteStages<3>>(w, row_begin, row_end, group, table, is_first, sums);
    case 4:
      return TableRowsAs<ByteStages<4>>(w, row_begin, row_end, group, table, is_first, sums);
    default:
      return TableRowsAs<ByteStages<6>>(w, row_begin, row_end, group, table, is_first, sums);
  }
}

// The sums are in the rows' order.
void FinishRowsNeon(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, const float* sums,
                    int64_t parts, int64_t part_stride, float offset, float* y) {
  for (int64_t i = 0; i < row_end - row_begin; ++i) {
    float sum = sums[i];
    for (int64_t part = 1; part < parts; ++part) sum += sums[part * part_stride + i];
    y[i] = HalfAt(w.scales + 2 * (row_begin + i)) * (sum + offset);
  }
}

}  // namespace waste

#endif
