// SPDX-License-Identifier: Apache-2.0
//
// The look-up tables of expert_tables.h with AVX-512 VBMI. A table of 256 bytes is four registers:
// two vpermi2b and a blend look 64 indices up. A block's bytes hold its rows' stages in turn; the
// stages are pulled apart by blends, shifts and rotations that leave the rows in an order of their
// own (Indices::Row), undone once a matrix is summed. Runs only where
// CpuHas(Isa::kAvx512Vbmi). Any thread.

#include "kernels/tables.h"

#if defined(__x86_64__)

#if !defined(__clang__)
// GCC 12's own header makes "undefined" vectors by reading an uninitialised variable.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include "kernels/expert_tables.h"

#define WASTE_SIMD \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,fma,f16c")))
#define WASTE_OP WASTE_SIMD __attribute__((always_inline)) inline
#define WASTE_UNROLL _Pragma("GCC unroll 16")

namespace waste {
namespace {

constexpr int64_t kBlocksAtOnce = 2;  // that share the loads of the tables
constexpr int64_t kBlocksAhead = 4;   // that are fetched meanwhile, of a group 1.5 KB and more
constexpr int64_t kMostBlocks = 32;   // of one pass over the tables
constexpr int64_t kLine = 64;         // bytes of a cache line and of a register

// Bit p is set where p % 3 == first.
constexpr uint64_t EveryThird(int first) {
  uint64_t mask = 0;
  for (int p = first; p < 64; p += 3) mask |= uint64_t{1} << p;
  return mask;
}

constexpr uint64_t kThirds[3] = {EveryThird(0), EveryThird(1), EveryThird(2)};
constexpr uint32_t kThirdWords[3] = {static_cast<uint32_t>(kThirds[0]),
                                     static_cast<uint32_t>(kThirds[1]),
                                     static_cast<uint32_t>(kThirds[2])};

WASTE_OP __m512i LoadLine(const uint8_t* from) { return _mm512_loadu_si512(from); }

// Byte p of `out` is byte (p + by) % 64 of `bytes`.
WASTE_OP __m512i RotateBytes(__m512i bytes, int by) {
  alignas(64) static constexpr auto kNumbers = [] {
    struct {
      uint8_t at[128];
    } numbers{};
    for (int i = 0; i < 128; ++i) numbers.at[i] = static_cast<uint8_t>(i % 64);
    return numbers;
  }();
  return _mm512_permutexvar_epi8(LoadLine(kNumbers.at + by), bytes);
}

// Three bytes a row. Of the 192 bytes, byte 64 k + p belongs to row (64 k + p) / 3; for a stage s
// exactly one k fits a position p, and rotated by s the rows of all stages stand in stage 0's
// order.
WASTE_OP void PullThreeApart(const uint8_t* bytes, __m512i (&out)[3]) {
  const __m512i z[3] = {LoadLine(bytes), LoadLine(bytes + 64), LoadLine(bytes + 128)};
  WASTE_UNROLL
  for (int s = 0; s < 3; ++s) {
    // k = (s - p) mod 3
    const __m512i two = _mm512_mask_blend_epi8(kThirds[(s + 2) % 3], z[0], z[1]);
    const __m512i all = _mm512_mask_blend_epi8(kThirds[(s + 1) % 3], two, z[2]);
    out[s] = s == 0 ? all : RotateBytes(all, s);
  }
}

constexpr int64_t RowOfThree(int64_t p) { return (64 * ((3 - p % 3) % 3) + p) / 3; }

// Bytes 0, 2, ... of `a` and of `b` in turn; and bytes 1, 3, ...
WASTE_OP __m512i EvenBytes(__m512i a, __m512i b) {
  return _mm512_mask_blend_epi8(0xAAAAAAAAAAAAAAAAu, a, _mm512_slli_epi16(b, 8));
}
WASTE_OP __m512i OddBytes(__m512i a, __m512i b) {
  return _mm512_mask_blend_epi8(0xAAAAAAAAAAAAAAAAu, _mm512_srli_epi16(a, 8), b);
}
// The same with words.
WASTE_OP __m512i EvenWords(__m512i a, __m512i b) {
  return _mm512_mask_blend_epi16(0xAAAAAAAAu, a, _mm512_slli_epi32(b, 16));
}
WASTE_OP __m512i OddWords(__m512i a, __m512i b) {
  return _mm512_mask_blend_epi16(0xAAAAAAAAu, _mm512_srli_epi32(a, 16), b);
}

// Indices of a stage: Load gives one register a stage, Row the row that position p stands for.
struct TwoStages {
  static constexpr int kStages = 2;
  static constexpr int64_t kBytes = 2, kEntries = 256;

  WASTE_OP static void Load(const uint8_t* bytes, __m512i (&out)[2]) {
    const __m512i a = LoadLine(bytes), b = LoadLine(bytes + 64);
    out[0] = EvenBytes(a, b);
    out[1] = OddBytes(a, b);
  }
  static constexpr int64_t Row(int64_t p) { return p % 2 * 32 + p / 2; }
};

struct ThreeStages {
  static constexpr int kStages = 3;
  static constexpr int64_t kBytes = 3, kEntries = 256;

  WASTE_OP static void Load(const uint8_t* bytes, __m512i (&out)[3]) { PullThreeApart(bytes, out); }
  static constexpr int64_t Row(int64_t p) { return RowOfThree(p); }
};

struct FourStages {
  static constexpr int kStages = 4;
  static constexpr int64_t kBytes = 4, kEntries = 256;

  WASTE_OP static void Load(const uint8_t* bytes, __m512i (&out)[4]) {
    const __m512i z0 = LoadLine(bytes), z1 = LoadLine(bytes + 64);
    const __m512i z2 = LoadLine(bytes + 128), z3 = LoadLine(bytes + 192);
    const __m512i even_a = EvenBytes(z0, z1), odd_a = OddBytes(z0, z1);
    const __m512i even_b = EvenBytes(z2, z3), odd_b = OddBytes(z2, z3);
    out[0] = EvenWords(even_a, even_b);
    out[1] = EvenWords(odd_a, odd_b);
    out[2] = OddWords(even_a, even_b);
    out[3] = OddWords(odd_a, odd_b);
  }
  static constexpr int64_t Row(int64_t p) { return p % 4 * 16 + p / 4; }
};

// Pairs of stages as words, pulled apart as three bytes are; then the bytes of each pair.
struct SixStages {
  static constexpr int kStages = 6;
  static constexpr int64_t kBytes = 6, kEntries = 256;

  // Of 96 words, word 32 k + w; k = (w - s) mod 3 has pair s, because 32 k = -k mod 3.
  WASTE_OP static void PullPairsApart(const uint8_t* bytes, __m512i (&out)[3]) {
    const __m512i z[3] = {LoadLine(bytes), LoadLine(bytes + 64), LoadLine(bytes + 128)};
    WASTE_UNROLL
    for (int s = 0; s < 3; ++s) {
      const __m512i two = _mm512_mask_blend_epi16(kThirdWords[(s + 1) % 3], z[0], z[1]);
      const __m512i all = _mm512_mask_blend_epi16(kThirdWords[(s + 2) % 3], two, z[2]);
      out[s] = s == 0 ? all : RotateBytes(all, 2 * s);
    }
  }
  WASTE_OP static void Load(const uint8_t* bytes, __m512i (&out)[6]) {
    __m512i first[3], second[3];
    PullPairsApart(bytes, first);
    PullPairsApart(bytes + 192, second);
    WASTE_UNROLL
    for (int s = 0; s < 3; ++s) {
      out[2 * s] = EvenBytes(first[s], second[s]);
      out[2 * s + 1] = OddBytes(first[s], second[s]);
    }
  }
  static constexpr int64_t Row(int64_t p) {
    const int64_t w = p / 2;
    return p % 2 * 32 + (32 * (w % 3) + w) / 3;
  }
};

// Look-ups in 64 entries see the low six bits only, so what stands above them need not be cleared.
struct PackedStages {
  static constexpr int kStages = 4;
  static constexpr int64_t kBytes = 3, kEntries = 64;

  WASTE_OP static __m512i Select(__m512i a, __m512i b, uint8_t of_a) {
    return _mm512_ternarylogic_epi64(a, b, _mm512_set1_epi8(static_cast<char>(of_a)), 0xE4);
  }
  WASTE_OP static void Load(const uint8_t* bytes, __m512i (&out)[4]) {
    __m512i b[3];
    PullThreeApart(bytes, b);
    out[0] = b[0];
    out[1] = Select(_mm512_srli_epi16(b[0], 6), _mm512_slli_epi16(b[1], 2), 0x03);
    out[2] = Select(_mm512_srli_epi16(b[1], 4), _mm512_slli_epi16(b[2], 4), 0x0F);
    out[3] = _mm512_srli_epi16(b[2], 2);
  }
  static constexpr int64_t Row(int64_t p) { return RowOfThree(p); }
};

// One table in registers.
template <int64_t kEntries>
struct ByteTable {
  __m512i part[kEntries / 64];

  WASTE_OP void Load(const uint8_t* from) {
    WASTE_UNROLL
    for (int64_t i = 0; i < kEntries / 64; ++i) {
      part[i] = LoadLine(from + 64 * i);
      asm("" : "+v"(part[i]));  // or the compiler would load it again for each block
    }
  }
  // `upper`: which indices have their highest bit set.
  WASTE_OP __m512i At(__m512i indices, __mmask64 upper) const {
    if constexpr (kEntries == 64) {
      return _mm512_permutexvar_epi8(indices, part[0]);
    } else {
      return _mm512_mask_blend_epi8(upper, _mm512_permutex2var_epi8(part[0], indices, part[1]),
                                    _mm512_permutex2var_epi8(part[2], indices, part[3]));
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

// Adds the group's part of 64 rows, low + kBase * high, to `sums`.
template <typename Codes>
WASTE_OP void AddGroup(const WordSums& low, const WordSums& high, float delta, float* sums) {
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
    _mm512_store_ps(sums + 16 * i, _mm512_fmadd_ps(value, factor, _mm512_load_ps(sums + 16 * i)));
  }
}

// Which position of a block AddGroup leaves in float i of its sums.
constexpr int64_t PositionOf(int64_t i) {
  const int64_t part = i / 16, lane = i % 16 / 4, word = i % 4;
  return 16 * lane + part % 2 * 8 + 2 * word + part / 2;
}

// One group of vectors for kBlocks blocks, `block_bytes` apart. `next` is where the blocks that
// come after begin, and are fetched.
template <typename Codes, int64_t kBlocks>
WASTE_SIMD void GroupOfBlocks(const uint8_t* table, int64_t vectors, float delta,
                              const uint8_t* bytes, int64_t block_bytes, const uint8_t* next,
                              float* sums) {
  constexpr int64_t kStep = kIndexBlock * Codes::kBytes;
  WordSums low[kBlocks] = {}, high[kBlocks] = {};
  for (int64_t v = 0; v < vectors; ++v) {
    __m512i codes[kBlocks][Codes::kStages], low_bytes[kBlocks], high_bytes[kBlocks];
    WASTE_UNROLL
    for (int64_t b = 0; b < kBlocks; ++b) {
      Codes::Load(bytes + b * block_bytes + v * kStep, codes[b]);
      WASTE_UNROLL
      for (int64_t line = 0; line < kStep; line += kLine)
        __builtin_prefetch(next + b * block_bytes + v * kStep + line, 0, 2);
    }
    WASTE_UNROLL
    for (int s = 0; s < Codes::kStages; ++s) {
      ByteTable<Codes::kEntries> low_table, high_table;
      low_table.Load(table);
      high_table.Load(table + Codes::kEntries);
      table += 2 * Codes::kEntries;
      WASTE_UNROLL
      for (int64_t b = 0; b < kBlocks; ++b) {
        const __mmask64 upper = _mm512_movepi8_mask(codes[b][s]);
        const __m512i l = low_table.At(codes[b][s], upper);
        const __m512i h = high_table.At(codes[b][s], upper);
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
    AddGroup<Codes>(low[b], high[b], delta, sums + b * kIndexBlock);
}

WASTE_OP float HalfAt(const uint8_t* bytes) {
  uint16_t half;
  __builtin_memcpy(&half, bytes, 2);
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

// Float i of `sums` is of row kRows.at[i].
template <typename Codes>
WASTE_SIMD void StoreBlock(const float* sums, float offset, const uint8_t* scales, int64_t count,
                           float* y) {
  static constexpr auto kRows = [] {
    struct {
      uint8_t at[kIndexBlock];
    } rows{};
    for (int64_t i = 0; i < kIndexBlock; ++i)
      rows.at[i] = static_cast<uint8_t>(Codes::Row(PositionOf(i)));
    return rows;
  }();
  for (int64_t i = 0; i < kIndexBlock; ++i) {
    const int64_t row = kRows.at[i];
    if (row < count) y[row] = HalfAt(scales + 2 * row) * (sums[i] + offset);
  }
}

// At most kMostBlocks blocks from row_begin on.
template <typename Codes>
WASTE_SIMD void SomeBlocks(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                           const uint8_t* tables, float* y) {
  alignas(64) float sums[kMostBlocks * kIndexBlock];
  const int64_t vectors = w.columns / kVectorSize;
  const int64_t group_vectors = TableVectors(w.codec);
  const int64_t group_bytes = TableGroupBytes(w.codec);
  const int64_t block_bytes = vectors * kIndexBlock * Codes::kBytes;
  const int64_t blocks = (row_end - row_begin + kIndexBlock - 1) / kIndexBlock;
  const uint8_t* const first = w.indices + row_begin / kIndexBlock * block_bytes;
  for (int64_t i = 0; i < blocks * kIndexBlock; ++i) sums[i] = 0.0f;
  float offset = 0.0f;
  for (int64_t v = 0; v < vectors; v += group_vectors, tables += group_bytes) {
    TableHeader header;
    __builtin_memcpy(&header, tables, sizeof header);
    offset += header.offset;
    const int64_t count = vectors - v < group_vectors ? vectors - v : group_vectors;
    const uint8_t* bytes = first + v * kIndexBlock * Codes::kBytes;
    const uint8_t* const next_group = bytes + count * kIndexBlock * Codes::kBytes;
    for (int64_t b = 0; b < blocks; b += kBlocksAtOnce) {
      const uint8_t* const here = bytes + b * block_bytes;
      const int64_t ahead = b + kBlocksAhead;
      const uint8_t* const next = ahead < blocks ? bytes + ahead * block_bytes
                                                 : next_group + (ahead - blocks) * block_bytes;
      float* const to = sums + b * kIndexBlock;
      if (blocks - b >= kBlocksAtOnce)
        GroupOfBlocks<Codes, kBlocksAtOnce>(tables + kTableHeaderBytes, count, header.delta, here,
                                            block_bytes, next, to);
      else
        GroupOfBlocks<Codes, 1>(tables + kTableHeaderBytes, count, header.delta, here, block_bytes,
                                next, to);
    }
  }
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t row = row_begin + b * kIndexBlock;
    StoreBlock<Codes>(sums + b * kIndexBlock, offset, w.scales + 2 * row,
                      row_end - row < kIndexBlock ? row_end - row : kIndexBlock, y + row);
  }
}

template <typename Codes>
WASTE_SIMD void TableRowsAs(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                            const uint8_t* tables, float* y) {
  constexpr int64_t kRows = kMostBlocks * kIndexBlock;
  for (int64_t r = row_begin; r < row_end; r += kRows)
    SomeBlocks<Codes>(w, r, row_end - r < kRows ? row_end : r + kRows, tables, y);
}

WASTE_SIMD void TableRows(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                          const uint8_t* tables, float* y) {
  if (w.codec.kind == IndexKind::kPacked6)
    return TableRowsAs<PackedStages>(w, row_begin, row_end, tables, y);
  switch (w.codec.stages) {
    case 2:
      return TableRowsAs<TwoStages>(w, row_begin, row_end, tables, y);
    case 3:
      return TableRowsAs<ThreeStages>(w, row_begin, row_end, tables, y);
    case 4:
      return TableRowsAs<FourStages>(w, row_begin, row_end, tables, y);
    default:
      return TableRowsAs<SixStages>(w, row_begin, row_end, tables, y);
  }
}

struct Span {
  float low, high;
};

// T[e] = x . C[:, e] for all entries of one book.
WASTE_SIMD Span MultiplyBook(const float* x, const float* turned, int64_t entries,
                             float* products) {
  constexpr int64_t kAtOnce = 4;  // chains of multiply-adds
  __m512 factor[kVectorSize];
  for (int64_t i = 0; i < kVectorSize; ++i) factor[i] = _mm512_set1_ps(x[i]);
  __m512 low = _mm512_set1_ps(__builtin_huge_valf()), high = _mm512_set1_ps(-__builtin_huge_valf());
  for (int64_t e = 0; e < entries; e += 16 * kAtOnce) {
    __m512 sum[kAtOnce];
    WASTE_UNROLL
    for (int64_t j = 0; j < kAtOnce; ++j)
      sum[j] = _mm512_mul_ps(factor[0], _mm512_loadu_ps(turned + e + 16 * j));
    WASTE_UNROLL
    for (int64_t i = 1; i < kVectorSize; ++i) {
      WASTE_UNROLL
      for (int64_t j = 0; j < kAtOnce; ++j)
        sum[j] =
            _mm512_fmadd_ps(factor[i], _mm512_loadu_ps(turned + i * entries + e + 16 * j), sum[j]);
    }
    WASTE_UNROLL
    for (int64_t j = 0; j < kAtOnce; ++j) {
      _mm512_storeu_ps(products + e + 16 * j, sum[j]);
      low = _mm512_min_ps(low, sum[j]);
      high = _mm512_max_ps(high, sum[j]);
    }
  }
  return {_mm512_reduce_min_ps(low), _mm512_reduce_max_ps(high)};
}

// What `QuantiseBook` needs of a group. A step so small that its inverse is not finite is 0.
struct Steps {
  float inverse_delta;
  int base;
  int shift;         // q / base = (q * inverse_base >> 16) >> shift, exact for all that occurs
  int inverse_base;  // 16 bits
};

WASTE_OP Steps MakeSteps(float delta, int64_t stages) {
  const int base = static_cast<int>(TableBase(stages));
  const int shift = base > 64 ? 6 : 5;
  return {delta > 0 ? 1.0f / delta : 0.0f, base, shift, ((1 << (16 + shift)) + base - 1) / base};
}

// q = round((T - low) / delta) = base * high byte + low byte.
WASTE_SIMD void QuantiseBook(const float* products, float low, const Steps& steps, int64_t entries,
                             uint8_t* table) {
  const __m512 scale = _mm512_set1_ps(steps.inverse_delta);
  const __m512 shift = _mm512_set1_ps(-low * steps.inverse_delta);
  const __m512i inverse = _mm512_set1_epi16(static_cast<int16_t>(steps.inverse_base));
  const __m512i base = _mm512_set1_epi16(static_cast<int16_t>(steps.base));
  const __m128i down = _mm_cvtsi32_si128(steps.shift);
  for (int64_t e = 0; e < entries; e += 32) {
    const __m512i first =
        _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_loadu_ps(products + e), scale, shift));
    const __m512i second =
        _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_loadu_ps(products + e + 16), scale, shift));
    const __m512i q = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(first)),
                                         _mm512_cvtepi32_epi16(second), 1);
    const __m512i high = _mm512_srl_epi16(_mm512_mulhi_epu16(q, inverse), down);
    const __m512i low_part = _mm512_sub_epi16(q, _mm512_mullo_epi16(high, base));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(table + e), _mm512_cvtepi16_epi8(low_part));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(table + entries + e),
                        _mm512_cvtepi16_epi8(high));
  }
}

// The tables of group g.
WASTE_SIMD void BuildGroup(const ExpertMatrix& w, const float* x, int64_t g, float* products,
                           uint8_t* table) {
  Span spans[kMostTableBooks];
  const int64_t stages = w.codec.stages, entries = w.codec.entries;
  const int64_t first = g * TableVectors(w.codec), vectors = w.columns / kVectorSize;
  const int64_t count =
      vectors - first < TableVectors(w.codec) ? vectors - first : TableVectors(w.codec);
  float widest[kMaxStages] = {}, offset = 0.0f;
  for (int64_t v = 0; v < count; ++v)
    for (int64_t s = 0; s < stages; ++s) {
      const int64_t book = v * stages + s;
      spans[book] =
          MultiplyBook(x + (first + v) * kVectorSize, w.turned_books[static_cast<size_t>(s)],
                       entries, products + book * entries);
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

WASTE_SIMD void BuildTables(const ExpertMatrix& w, const float* x, int64_t group_begin,
                            int64_t group_end, uint8_t* tables, float* scratch) {
  for (int64_t g = group_begin; g < group_end; ++g)
    BuildGroup(w, x, g, scratch, tables + g * TableGroupBytes(w.codec));
}

}  // namespace

void AddTableKernels(Kernels& kernels) {
  kernels.build_tables = BuildTables;
  kernels.table_rows = TableRows;
}

}  // namespace waste

#endif
