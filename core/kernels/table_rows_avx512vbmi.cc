// SPDX-License-Identifier: Apache-2.0
//
// Rows by the look-up tables of expert_tables.h with AVX-512 VBMI; build_table_avx512vbmi.cc fills
// them. A table of 256 bytes is four registers, in which permutes and blends look 64 indices up.
// Rows are summed in the order in which index_stages_avx512.inc leaves them, which is undone once a
// matrix is summed. Runs only where CpuHas(Isa::kAvx512Vbmi). Any thread.

#include "kernels/tables.h"

#if defined(__x86_64__)

#include "kernels/avx512_intrinsics.h"
#include "kernels/expert_tables.h"
#include "kernels/fetch_ahead.h"
#include "kernels/unroll.h"

#define WASTE_SIMD \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,fma,f16c")))
#define WASTE_OP WASTE_SIMD __attribute__((always_inline)) inline

namespace waste {
namespace {

constexpr int64_t kBlocksAtOnce = 2;  // that share the loads of the tables
constexpr int64_t kBlocksAhead = 4;   // that are fetched meanwhile, of a group 1.5 KB and more

#include "kernels/index_stages_avx512.inc"

// 64 indices, and which of them have their highest bit set, and the one below it.
template <Permutes kPermutes>
struct Indices {
  __m512i bytes;
  __mmask64 highest, second;

  WASTE_OP explicit Indices(__m512i indices)
      : bytes(indices), highest(_mm512_movepi8_mask(indices)) {
    if constexpr (kPermutes == Permutes::kOfOneRegister)
      second = _mm512_movepi8_mask(_mm512_add_epi8(indices, indices));
  }
};

// One table in registers.
template <int64_t kEntries, Permutes kPermutes>
struct ByteTable {
  __m512i part[kEntries / 64];

  WASTE_OP void Load(const uint8_t* from) {
    WASTE_UNROLL
    for (int64_t i = 0; i < kEntries / 64; ++i) {
      part[i] = LoadLine(from + 64 * i);
      asm("" : "+v"(part[i]));  // or the compiler would load it again for each block
    }
  }
  WASTE_OP __m512i At(const Indices<kPermutes>& indices) const {
    if constexpr (kEntries == 64) {
      return _mm512_permutexvar_epi8(indices.bytes, part[0]);
    } else {
      return _mm512_mask_blend_epi8(indices.highest, InHalf(indices, 0), InHalf(indices, 2));
    }
  }
  // Among 128 entries from those of part `first` on.
  WASTE_OP __m512i InHalf(const Indices<kPermutes>& indices, int first) const {
    if constexpr (kPermutes == Permutes::kOfTwoRegisters) {
      return _mm512_permutex2var_epi8(part[first], indices.bytes, part[first + 1]);
    } else {
      return _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(indices.bytes, part[first]),
                                          indices.second, indices.bytes, part[first + 1]);
    }
  }
};

// Sums of bytes, apart for even and odd positions: `all` has both, the odd ones 256 times.
struct WordSums {
  __m512i all, odd;

  WASTE_OP void Add(__m512i bytes) {
    all = _mm512_add_epi16(all, bytes);
    odd = _mm512_add_epi16(odd, _mm512_srli_epi16(bytes, 8));
  }
  WASTE_OP __m512i Even() const { return _mm512_sub_epi16(all, _mm512_slli_epi16(odd, 8)); }
};

// Adds the group's part of 64 rows, low + kBase * high, to `sums`, or writes it there.
template <typename Codes>
WASTE_OP void AddGroup(const WordSums& low, const WordSums& high, float delta, bool is_first,
                       float* sums) {
  const auto there = static_cast<__mmask16>(is_first ? 0 : 0xFFFF);
  const __m512i weights =
      _mm512_set1_epi32(static_cast<int32_t>(TableBase(Codes::kStages)) << 16 | 1);
  const __m512i evens[2] = {low.Even(), high.Even()};
  const __m512i odds[2] = {low.odd, high.odd};
  const __m512 factor = _mm512_set1_ps(delta);
  const __m512i pairs[4] = {
      _mm512_unpacklo_epi16(evens[0], evens[1]), _mm512_unpackhi_epi16(evens[0], evens[1]),
      _mm512_unpacklo_epi16(odds[0], odds[1]), _mm512_unpackhi_epi16(odds[0], odds[1])};
  WASTE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m512 value = _mm512_cvtepi32_ps(_mm512_madd_epi16(pairs[i], weights));
    _mm512_storeu_ps(sums + 16 * i,
                     _mm512_fmadd_ps(value, factor, _mm512_maskz_loadu_ps(there, sums + 16 * i)));
  }
}

// Which position of a block AddGroup leaves in float i of its sums.
constexpr int64_t PositionOf(int64_t i) {
  const int64_t part = i / 16, lane = i % 16 / 4, word = i % 4;
  return 16 * lane + part % 2 * 8 + 2 * word + part / 2;
}

// One group of vectors for kBlocks blocks, `block_bytes` apart. `next` is where the blocks that
// come after begin, and are fetched.
template <typename Codes, Permutes kPermutes, int64_t kBlocks>
WASTE_SIMD void GroupOfBlocks(const uint8_t* table, int64_t vectors, float delta,
                              const uint8_t* bytes, int64_t block_bytes, uintptr_t next,
                              bool is_first, float* sums) {
  constexpr int64_t kStep = kIndexBlock * Codes::kBytes;
  WordSums low[kBlocks] = {}, high[kBlocks] = {};
  for (int64_t v = 0; v < vectors; ++v) {
    __m512i codes[kBlocks][Codes::kStages], low_bytes[kBlocks], high_bytes[kBlocks];
    WASTE_UNROLL
    for (int64_t b = 0; b < kBlocks; ++b) {
      Codes::Load(bytes + b * block_bytes + v * kStep, codes[b]);
      WASTE_UNROLL
      for (int64_t line = 0; line < kStep; line += kLine)
        FetchLine(next + static_cast<uintptr_t>(b * block_bytes + v * kStep + line));
    }
    WASTE_UNROLL
    for (int s = 0; s < Codes::kStages; ++s) {
      ByteTable<Codes::kEntries, kPermutes> low_table, high_table;
      low_table.Load(table);
      high_table.Load(table + Codes::kEntries);
      table += 2 * Codes::kEntries;
      WASTE_UNROLL
      for (int64_t b = 0; b < kBlocks; ++b) {
        const Indices<kPermutes> indices(codes[b][s]);
        const __m512i l = low_table.At(indices), h = high_table.At(indices);
        constexpr int kTogether = static_cast<int>(TableSumStages(Codes::kStages));
        low_bytes[b] = s % kTogether == 0 ? l : _mm512_add_epi8(low_bytes[b], l);
        high_bytes[b] = s % kTogether == 0 ? h : _mm512_add_epi8(high_bytes[b], h);
        if (s % kTogether < kTogether - 1) continue;
        low[b].Add(low_bytes[b]);
        high[b].Add(high_bytes[b]);
      }
    }
  }
  WASTE_UNROLL
  for (int64_t b = 0; b < kBlocks; ++b)
    AddGroup<Codes>(low[b], high[b], delta, is_first, sums + b * kIndexBlock);
}

template <typename Codes, Permutes kPermutes>
WASTE_SIMD void TableRowsAs(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                            int64_t group, const uint8_t* table, const IndexChunks& next,
                            bool is_first, float* sums) {
  const IndexChunks chunks = ChunksOf(w, row_begin, row_end, group);
  const int64_t vectors = chunks.bytes / (kIndexBlock * Codes::kBytes);
  const float delta = HeaderOf(table).delta;
  for (int64_t b = 0; b < chunks.count; b += kBlocksAtOnce) {
    const uint8_t* const here = chunks.first + b * chunks.stride;
    const int64_t ahead = b + kBlocksAhead;
    const uintptr_t fetched = ahead < chunks.count
                                  ? AddressAt(chunks.first, ahead * chunks.stride)
                                  : AddressAt(next.first, (ahead - chunks.count) * next.stride);
    float* const to = sums + b * kIndexBlock;
    if (chunks.count - b >= kBlocksAtOnce)
      GroupOfBlocks<Codes, kPermutes, kBlocksAtOnce>(table + kTableHeaderBytes, vectors, delta,
                                                     here, chunks.stride, fetched, is_first, to);
    else
      GroupOfBlocks<Codes, kPermutes, 1>(table + kTableHeaderBytes, vectors, delta, here,
                                         chunks.stride, fetched, is_first, to);
  }
}

// Calls body with the indices' struct of a codec.
template <typename Body>
void ForCodec(const ExpertCodec& codec, const Body& body) {
  if (codec.kind == IndexKind::kPacked6) return body(PackedStages());
  switch (codec.stages) {
    case 2:
      return body(TwoStages());
    case 3:
      return body(ThreeStages());
    case 4:
      return body(FourStages());
    default:
      return body(SixStages());
  }
}

template <Permutes kPermutes>
void TableRows(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, int64_t group,
               const uint8_t* table, const IndexChunks& next, bool is_first, float* sums) {
  ForCodec(w.codec, [&](auto codes) {
    TableRowsAs<decltype(codes), kPermutes>(w, row_begin, row_end, group, table, next, is_first,
                                            sums);
  });
}

// Where row r of a block stands among its sums.
template <typename Codes>
constexpr auto PlacesOfRows() {
  struct {
    int32_t at[kIndexBlock];
  } places{};
  for (int64_t i = 0; i < kIndexBlock; ++i)
    places.at[Codes::Row(PositionOf(i))] = static_cast<int32_t>(i);
  return places;
}

template <typename Codes>
WASTE_SIMD void FinishRowsAs(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                             const float* sums, int64_t parts, int64_t part_stride, float offset,
                             float* y) {
  alignas(64) static constexpr auto kPlaces = PlacesOfRows<Codes>();
  alignas(64) float total[kIndexBlock];
  for (int64_t r = row_begin; r < row_end; r += kIndexBlock, sums += kIndexBlock) {
    for (int64_t i = 0; i < kIndexBlock; i += 16) {
      __m512 sum = _mm512_loadu_ps(sums + i);
      for (int64_t part = 1; part < parts; ++part)
        sum = _mm512_add_ps(sum, _mm512_loadu_ps(sums + part * part_stride + i));
      _mm512_store_ps(total + i, _mm512_add_ps(sum, _mm512_set1_ps(offset)));
    }
    for (int64_t i = 0; i < kIndexBlock; i += 16) {
      const __mmask16 there = FirstLanes(row_end - r - i);
      const __m512 scale = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(there, w.scales + 2 * (r + i)));
      const __m512 value =
          _mm512_i32gather_ps(_mm512_load_si512(kPlaces.at + i), total, sizeof(float));
      _mm512_mask_storeu_ps(y + r - row_begin + i, there, _mm512_mul_ps(scale, value));
    }
  }
}

void FinishRows(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, const float* sums,
                int64_t parts, int64_t part_stride, float offset, float* y) {
  ForCodec(w.codec, [&](auto codes) {
    FinishRowsAs<decltype(codes)>(w, row_begin, row_end, sums, parts, part_stride, offset, y);
  });
}

}  // namespace

// A permute of two registers is three operations of Intel's CPUs, two of them of the one port that
// permutes, and one operation of AMD's.
Permutes FasterPermutes() {
  return __builtin_cpu_is("intel") ? Permutes::kOfOneRegister : Permutes::kOfTwoRegisters;
}

void AddTableRowKernels(Kernels& kernels, Permutes permutes) {
  kernels.table_rows = permutes == Permutes::kOfOneRegister ? TableRows<Permutes::kOfOneRegister>
                                                            : TableRows<Permutes::kOfTwoRegisters>;
  kernels.finish_rows = FinishRows;
}

}  // namespace waste

#endif
