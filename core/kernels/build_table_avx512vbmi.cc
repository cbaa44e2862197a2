// SPDX-License-Identifier: Apache-2.0
//
// Fills the look-up tables of expert_tables.h with AVX-512, for table_rows_avx512vbmi.cc to read:
// the products of whole books with vectors of x, then in bytes. While it computes it fetches the
// indices that come next, which would else wait for memory that idles meanwhile. Runs only where
// CpuHas(Isa::kAvx512Vbmi). Any thread.

#include "kernels/tables.h"

#if defined(__x86_64__)

#include "kernels/avx512_intrinsics.h"
#include "kernels/expert_tables.h"

#define WASTE_SIMD \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,fma,f16c")))
#define WASTE_OP WASTE_SIMD __attribute__((always_inline)) inline
#define WASTE_UNROLL _Pragma("GCC unroll 16")

namespace waste {
namespace {

// Fetches chunks of indices into the second cache, some lines at a time.
class Fetcher {
 public:
  explicit Fetcher(const IndexChunks& chunks) : chunks_(chunks) {}

  WASTE_OP void Fetch(int64_t lines) {
    for (; lines > 0 && chunk_ < chunks_.count; --lines) {
      FetchLine(AddressAt(chunks_.first, chunk_ * chunks_.stride + at_));
      at_ += kLine;
      if (at_ < chunks_.bytes) continue;
      at_ = 0;
      ++chunk_;
    }
  }

 private:
  static constexpr int64_t kLine = 64;
  const IndexChunks& chunks_;
  int64_t chunk_ = 0, at_ = 0;
};

struct Span {
  float low, high;
};

// T[e] = x . C[:, e] for all entries of one book and `kVectors` vectors of x, which share the loads
// of the book. Those of vector v go to products + v * product_stride.
template <int kVectors>
WASTE_SIMD void MultiplyBook(const float* x, const float* turned, int64_t entries, float* products,
                             int64_t product_stride, Span* spans, int64_t span_stride) {
  constexpr int64_t kAtOnce = 4;  // chains of multiply-adds of a vector
  __m512 factor[kVectors][kVectorSize], low[kVectors], high[kVectors];
  WASTE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    WASTE_UNROLL
    for (int64_t i = 0; i < kVectorSize; ++i) factor[v][i] = _mm512_set1_ps(x[v * kVectorSize + i]);
    low[v] = _mm512_set1_ps(__builtin_huge_valf());
    high[v] = _mm512_set1_ps(-__builtin_huge_valf());
  }
  for (int64_t e = 0; e < entries; e += 16 * kAtOnce) {
    __m512 sum[kVectors][kAtOnce];
    WASTE_UNROLL
    for (int64_t i = 0; i < kVectorSize; ++i) {
      WASTE_UNROLL
      for (int64_t j = 0; j < kAtOnce; ++j) {
        const __m512 book = _mm512_loadu_ps(turned + i * entries + e + 16 * j);
        WASTE_UNROLL
        for (int v = 0; v < kVectors; ++v)
          sum[v][j] = i == 0 ? _mm512_mul_ps(factor[v][i], book)
                             : _mm512_fmadd_ps(factor[v][i], book, sum[v][j]);
      }
    }
    WASTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      WASTE_UNROLL
      for (int64_t j = 0; j < kAtOnce; ++j) {
        _mm512_storeu_ps(products + v * product_stride + e + 16 * j, sum[v][j]);
        low[v] = _mm512_min_ps(low[v], sum[v][j]);
        high[v] = _mm512_max_ps(high[v], sum[v][j]);
      }
    }
  }
  WASTE_UNROLL
  for (int v = 0; v < kVectors; ++v)
    spans[v * span_stride] = {_mm512_reduce_min_ps(low[v]), _mm512_reduce_max_ps(high[v])};
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

// Of 64 entries whose words were packed two registers at a time, lane by lane: where entry e's low
// byte stands among the 128 bytes. Its high one is next to it.
constexpr auto PlacesOfBytes(int first) {
  struct {
    uint8_t at[64];
  } places{};
  for (int e = 0; e < 64; ++e) {
    const int part = e / 16, lane = e % 16 / 4, word = e % 4;
    places.at[e] =
        static_cast<uint8_t>(part / 2 * 64 + 2 * (lane * 8 + part % 2 * 4 + word) + first);
  }
  return places;
}

// q = round((T - low) / delta) = base * high byte + low byte.
WASTE_SIMD void QuantiseBook(const float* products, float low, const Steps& steps, int64_t entries,
                             uint8_t* table) {
  alignas(64) static constexpr auto kLows = PlacesOfBytes(0), kHighs = PlacesOfBytes(1);
  const __m512 scale = _mm512_set1_ps(steps.inverse_delta);
  const __m512 shift = _mm512_set1_ps(-low * steps.inverse_delta);
  const __m512i inverse = _mm512_set1_epi16(static_cast<int16_t>(steps.inverse_base));
  const __m512i rest = _mm512_set1_epi16(static_cast<int16_t>(256 - steps.base));
  const __m128i down = _mm_cvtsi32_si128(steps.shift);
  const __m512i lows = _mm512_load_si512(kLows.at), highs = _mm512_load_si512(kHighs.at);
  for (int64_t e = 0; e < entries; e += 64) {
    __m512i words[2];  // low byte, then high byte
    WASTE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const float* const from = products + e + 32 * i;
      const __m512i first =
          _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_loadu_ps(from), scale, shift));
      const __m512i second =
          _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_loadu_ps(from + 16), scale, shift));
      const __m512i q = _mm512_packs_epi32(first, second);
      const __m512i high = _mm512_srl_epi16(_mm512_mulhi_epu16(q, inverse), down);
      words[i] = _mm512_add_epi16(q, _mm512_mullo_epi16(high, rest));
    }
    _mm512_storeu_si512(table + e, _mm512_permutex2var_epi8(words[0], lows, words[1]));
    _mm512_storeu_si512(table + entries + e, _mm512_permutex2var_epi8(words[0], highs, words[1]));
  }
}

WASTE_SIMD void BuildTable(const ExpertMatrix& w, const float* x, int64_t group,
                           const IndexChunks& next, uint8_t* table, float* products) {
  Span spans[kMostTableBooks];
  const int64_t stages = w.codec.stages, entries = w.codec.entries;
  const int64_t first = group * TableVectors(w.codec), count = GroupVectors(w, group);
  const int64_t lines = next.count * next.bytes / 64;
  Fetcher fetcher(next);
  for (int64_t s = 0; s < stages; ++s) {  // a book stays in the nearest cache
    const float* const book = w.turned_books[static_cast<size_t>(s)];
    for (int64_t v = 0; v < count; v += 2) {
      fetcher.Fetch(2 * lines / (count * stages) + 1);
      const float* const of_v = x + (first + v) * kVectorSize;
      float* const to = products + (v * stages + s) * entries;
      if (v + 1 < count)
        MultiplyBook<2>(of_v, book, entries, to, stages * entries, spans + v * stages + s, stages);
      else
        MultiplyBook<1>(of_v, book, entries, to, 0, spans + v * stages + s, 0);
    }
  }
  float widest[kMaxStages] = {}, offset = 0.0f;
  for (int64_t book = 0; book < count * stages; ++book) {
    offset += spans[book].low;
    const float width = spans[book].high - spans[book].low;
    float& most = widest[book % stages];
    if (width > most || width != width) most = width;  // a NaN stays
  }
  const TableHeader header = MakeTableHeader(w.codec, widest, offset);
  __builtin_memcpy(table, &header, sizeof header);
  const Steps steps = MakeSteps(header.delta, stages);
  for (int64_t book = 0; book < count * stages; ++book)
    QuantiseBook(products + book * entries, spans[book].low, steps, entries,
                 table + kTableHeaderBytes + book * 2 * entries);
}

}  // namespace

void AddBuildTableKernel(Kernels& kernels) { kernels.build_table = BuildTable; }

}  // namespace waste

#endif
