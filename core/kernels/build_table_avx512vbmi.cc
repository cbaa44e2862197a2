// SPDX-License-Identifier: Apache-2.0
//
// Fills the look-up tables of expert_tables.h with AVX-512, for table_rows_avx512vbmi.cc to read:
// the products of whole books with vectors of x, in integers (book_forms.h), then in bytes. While
// it computes it fetches the indices that come next, which would else wait for memory that idles
// meanwhile. Runs only where CpuHas(Isa::kAvx512Vbmi). Any thread.

#include "kernels/tables.h"

#if defined(__x86_64__)

#include <cfloat>

#include "kernels/avx512_intrinsics.h"
#include "kernels/expert_tables.h"
#include "kernels/fetch_ahead.h"
#include "kernels/unroll.h"

#define WASTE_SIMD \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")))
#define WASTE_OP WASTE_SIMD __attribute__((always_inline)) inline

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

// A vector of x in integers: value = step * integer. The step of what is not finite is a NaN, that
// of numbers too small to be inverted is 0.
struct InputVector {
  int32_t pairs[kVectorSize / 2];  // components 2 i and 2 i + 1 in 16 bits each
  float step;
};

WASTE_SIMD InputVector RoundInput(const float* x) {
  const __m256 values = _mm256_loadu_ps(x);
  const __m256 sizes = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), values);
  float most = 0.0f, poison = 0.0f;  // not finite minus itself is a NaN
  alignas(32) float each[kVectorSize];
  _mm256_store_ps(each, sizes);
  WASTE_UNROLL
  for (int64_t i = 0; i < kVectorSize; ++i) {
    most = each[i] > most ? each[i] : most;
    poison += each[i] - each[i];
  }
  constexpr float kLeast = 1e-34f;
  const float step = most < kLeast ? 0.0f : most / static_cast<float>(kMostBookInteger);
  const float inverse = most < kLeast ? 0.0f : static_cast<float>(kMostBookInteger) / most;
  const __m256i integers = _mm256_cvtps_epi32(_mm256_mul_ps(values, _mm256_set1_ps(inverse)));
  InputVector out;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out.pairs), _mm256_cvtsepi32_epi16(integers));
  out.step = step + poison;
  return out;
}

// Integers of x . C[:, e] for all entries of one book and `kVectors` vectors of x, which share the
// loads of the book. Those of vector v go to products + v * product_stride.
template <int kVectors>
WASTE_SIMD void MultiplyBook(const InputVector* x, const int16_t* book, int64_t entries,
                             float* products, int64_t product_stride, Span* spans,
                             int64_t span_stride) {
  constexpr int64_t kPairs = kVectorSize / 2;
  constexpr int64_t kAtOnce = 4;  // chains of multiply-adds of a vector
  __m512i factor[kVectors][kPairs];
  __m512 low[kVectors], high[kVectors];
  WASTE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    WASTE_UNROLL
    for (int64_t i = 0; i < kPairs; ++i) factor[v][i] = _mm512_set1_epi32(x[v].pairs[i]);
    low[v] = _mm512_set1_ps(FLT_MAX);
    high[v] = _mm512_set1_ps(-FLT_MAX);
  }
  for (int64_t e = 0; e < entries; e += 16 * kAtOnce) {
    __m512i sum[kVectors][kAtOnce];
    WASTE_UNROLL
    for (int64_t i = 0; i < kPairs; ++i) {
      WASTE_UNROLL
      for (int64_t j = 0; j < kAtOnce; ++j) {
        const __m512i pairs = _mm512_loadu_si512(book + 2 * (i * entries + e + 16 * j));
        WASTE_UNROLL
        for (int v = 0; v < kVectors; ++v)
          sum[v][j] = i == 0 ? _mm512_madd_epi16(factor[v][i], pairs)
                             : _mm512_dpwssd_epi32(sum[v][j], factor[v][i], pairs);
      }
    }
    WASTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      WASTE_UNROLL
      for (int64_t j = 0; j < kAtOnce; ++j) {
        const __m512 product = _mm512_cvtepi32_ps(sum[v][j]);
        _mm512_storeu_ps(products + v * product_stride + e + 16 * j, product);
        low[v] = _mm512_min_ps(low[v], product);
        high[v] = _mm512_max_ps(high[v], product);
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

// q = round((T - low) / delta) = base * high byte + low byte, with T = step * product.
WASTE_SIMD void QuantiseBook(const float* products, float step, float low, const Steps& steps,
                             int64_t entries, uint8_t* table) {
  const float factor = step * steps.inverse_delta;
  const __m512 scale = _mm512_set1_ps(factor), bias = _mm512_set1_ps(-low * factor);
  const __m512i inverse = _mm512_set1_epi16(static_cast<int16_t>(steps.inverse_base));
  const __m512i base = _mm512_set1_epi16(static_cast<int16_t>(steps.base));
  const __m512i down = _mm512_set1_epi16(static_cast<int16_t>(steps.shift));
  for (int64_t e = 0; e < entries; e += 64) {
    __m512i lows[2], highs[2];  // packed lane by lane: PlaceOfEntry
    WASTE_UNROLL
    for (int i = 0; i < 2; ++i) {
      __m512i halves[2];
      WASTE_UNROLL
      for (int j = 0; j < 2; ++j)
        halves[j] = _mm512_cvtps_epi32(
            _mm512_fmadd_ps(_mm512_loadu_ps(products + e + 32 * i + 16 * j), scale, bias));
      const __m512i q = _mm512_packs_epi32(halves[0], halves[1]);
      highs[i] = _mm512_srlv_epi16(_mm512_mulhi_epu16(q, inverse), down);
      lows[i] = _mm512_sub_epi16(q, _mm512_mullo_epi16(highs[i], base));
    }
    _mm512_storeu_si512(table + e, _mm512_packus_epi16(lows[0], lows[1]));
    _mm512_storeu_si512(table + entries + e, _mm512_packus_epi16(highs[0], highs[1]));
  }
}

WASTE_SIMD void BuildTable(const ExpertMatrix& w, const float* x, int64_t group,
                           const IndexChunks& next, uint8_t* table, float* scratch) {
  Span spans[kMostTableBooks];
  InputVector inputs[kMostTableVectors];
  const int64_t stages = w.codec.stages, entries = w.codec.entries;
  const int64_t first = group * TableVectors(w.codec), count = GroupVectors(w, group);
  const int64_t lines = next.count * next.bytes / 64;
  Fetcher fetcher(next);
  for (int64_t v = 0; v < count; ++v) inputs[v] = RoundInput(x + (first + v) * kVectorSize);
  for (int64_t s = 0; s < stages; ++s) {  // a book stays in the nearest cache
    const int16_t* const book = w.forms[static_cast<size_t>(s)].integers;
    for (int64_t v = 0; v < count; v += 2) {
      fetcher.Fetch(2 * lines / (count * stages) + 1);
      float* const to = scratch + (v * stages + s) * entries;
      Span* const span = spans + v * stages + s;
      if (v + 1 < count)
        MultiplyBook<2>(inputs + v, book, entries, to, stages * entries, span, stages);
      else
        MultiplyBook<1>(inputs + v, book, entries, to, 0, span, 0);
    }
  }
  float widest[kMaxStages] = {}, offset = 0.0f, book_steps[kMostTableBooks];
  for (int64_t v = 0, book = 0; v < count; ++v)
    for (int64_t s = 0; s < stages; ++s, ++book) {
      const float step = inputs[v].step * w.forms[static_cast<size_t>(s)].step;
      const Span& span = spans[book];
      book_steps[book] = step;
      offset += step * span.low;
      const float width = step * (span.high - span.low);
      if (width > widest[s] || width != width) widest[s] = width;  // a NaN stays
    }
  const TableHeader header = MakeTableHeader(w.codec, widest, offset);
  __builtin_memcpy(table, &header, sizeof header);
  const Steps steps = MakeSteps(header.delta, stages);
  for (int64_t book = 0; book < count * stages; ++book)
    QuantiseBook(scratch + book * entries, book_steps[book], spans[book].low, steps, entries,
                 table + kTableHeaderBytes + book * 2 * entries);
}

}  // namespace

void AddBuildTableKernel(Kernels& kernels) { kernels.build_table = BuildTable; }

}  // namespace waste

#endif
