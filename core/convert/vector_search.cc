// SPDX-License-Identifier: Apache-2.0
//
// See vector_search.h. One body over the compiler's own vector types, compiled once for each ISA
// with its number of lanes. Ties are decided by (score, place), never by the order of looking, and
// the file is compiled without contraction (CMakeLists.txt): that is what makes the ISAs agree.

#include "convert/vector_search.h"

#include <limits>

namespace waste {
namespace {

#define WASTE_INLINE inline __attribute__((always_inline))

// Partial sums in ascending order of (score, code). A code is the parent's place in the beam before
// and the entry added to it: that order is the order in which a plain search would meet them.
struct Beam {
  int32_t capacity;
  int32_t count;
  float scores[kMaxBeam];
  int32_t codes[kMaxBeam];
  uint8_t indices[kMaxBeam][kMaxStages];

  // The score that a newcomer must not exceed.
  float limit() const {
    return count < capacity ? std::numeric_limits<float>::infinity() : scores[count - 1];
  }
};

WASTE_INLINE void Insert(Beam& beam, float score, int32_t code) {
  int32_t at = beam.count;
  if (at == beam.capacity) {
    --at;
    if (score > beam.scores[at] || (score == beam.scores[at] && code > beam.codes[at])) return;
  } else {
    ++beam.count;
  }
  for (; at > 0; --at) {
    const float before = beam.scores[at - 1];
    if (before < score || (before == score && beam.codes[at - 1] < code)) break;
    beam.scores[at] = before;
    beam.codes[at] = beam.codes[at - 1];
  }
  beam.scores[at] = score;
  beam.codes[at] = code;
}

// Gives every partial sum of `next` its indices: its parent's and the entry it added.
WASTE_INLINE void InheritIndices(const Beam& beam, int32_t entries, size_t stage, Beam& next) {
  for (int32_t b = 0; b < next.count; ++b) {
    const int32_t parent = next.codes[b] / entries;
    for (size_t t = 0; t < stage; ++t) next.indices[b][t] = beam.indices[parent][t];
    next.indices[b][stage] = static_cast<uint8_t>(next.codes[b] % entries);
  }
}

// kLanes entries of a codebook looked at together. Vectors are never passed by value: how depends
// on the target.
template <int kLanes>
struct Search {
  typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
  typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));
  static_assert(64 % kLanes == 0, "books of 64 and 256 entries have no tail");

  // The least score seen in each lane, and the block of kLanes entries it came from.
  struct LaneBest {
    Floats score = Floats{} + std::numeric_limits<float>::infinity();
    Ints block = {};
  };

  static WASTE_INLINE int32_t Nearest(const SearchBook& book, const float* x);
  static WASTE_INLINE void Encode(const BeamBooks& books, const float* x, int32_t width,
                                  uint8_t* indices);

 private:
  static WASTE_INLINE void Score(const SearchBook& book, const float* x, int32_t first,
                                 Floats& scores);
  static WASTE_INLINE int32_t FirstBest(const LaneBest& best);
  static WASTE_INLINE void OfferChildren(const float* own, const float* const* rows,
                                         size_t row_count, int32_t entries, float base,
                                         int32_t parent, Beam& next);
};

// `scores` = norms - 2 x.c for the kLanes entries from `first` on.
template <int kLanes>
void Search<kLanes>::Score(const SearchBook& book, const float* x, int32_t first, Floats& scores) {
  const float* lanes = book.lanes.data() + first;
  Floats sum = {};
  for (int64_t j = 0; j < kVectorSize; ++j) {
    Floats entry;
    __builtin_memcpy(&entry, lanes + j * book.entries, sizeof entry);
    sum += entry * x[j];
  }
  Floats norms;
  __builtin_memcpy(&norms, book.norms.data() + first, sizeof norms);
  scores = norms - (sum + sum);
}

// The entry with the least score, the first of equal ones.
template <int kLanes>
int32_t Search<kLanes>::FirstBest(const LaneBest& best) {
  float scores[kLanes];
  int32_t blocks[kLanes];
  __builtin_memcpy(scores, &best.score, sizeof scores);
  __builtin_memcpy(blocks, &best.block, sizeof blocks);
  float score = scores[0];
  int32_t entry = blocks[0] * kLanes;
  for (int32_t lane = 1; lane < kLanes; ++lane) {
    const int32_t other = blocks[lane] * kLanes + lane;
    if (scores[lane] < score || (scores[lane] == score && other < entry)) {
      score = scores[lane];
      entry = other;
    }
  }
  return entry;
}

template <int kLanes>
int32_t Search<kLanes>::Nearest(const SearchBook& book, const float* x) {
  LaneBest best;
  for (int32_t block = 0; block * kLanes < book.entries; ++block) {
    Floats scores;
    Score(book, x, block * kLanes, scores);
    const Ints less = scores < best.score;
    best.score = less ? scores : best.score;
    best.block = less ? Ints{} + block : best.block;
  }
  return FirstBest(best);
}

// Offers `next` every entry as the child of one partial sum. own = what each entry scores alone;
// rows[t] = the products of the entries that the sum has taken with all entries of this stage.
template <int kLanes>
void Search<kLanes>::OfferChildren(const float* own, const float* const* rows, size_t row_count,
                                   int32_t entries, float base, int32_t parent, Beam& next) {
  alignas(64) float scores[kMaxEntries];
  LaneBest best;
  for (int32_t first = 0; first < entries; first += kLanes) {
    Floats sum;
    __builtin_memcpy(&sum, own + first, sizeof sum);
    sum += base;
    for (size_t t = 0; t < row_count; ++t) {
      Floats row;
      __builtin_memcpy(&row, rows[t] + first, sizeof row);
      sum += row;
    }
    __builtin_memcpy(scores + first, &sum, sizeof sum);
    best.score = sum < best.score ? sum : best.score;
  }
  float least[kLanes];
  __builtin_memcpy(least, &best.score, sizeof least);
  for (int32_t lane = 0; lane < kLanes; ++lane) {
    if (least[lane] > next.limit()) continue;
    for (int32_t entry = lane; entry < entries; entry += kLanes) {
      if (scores[entry] <= next.limit()) Insert(next, scores[entry], parent * entries + entry);
    }
  }
}

template <int kLanes>
void Search<kLanes>::Encode(const BeamBooks& books, const float* x, int32_t width,
                            uint8_t* indices) {
  const size_t stages = books.stages.size();
  Beam beams[2];
  Beam* beam = &beams[0];
  Beam* next = &beams[1];
  beam->count = 1;  // the empty sum
  beam->scores[0] = 0;
  for (size_t stage = 0; stage < stages; ++stage) {
    alignas(64) float own[kMaxEntries];
    for (int32_t first = 0; first < books.entries; first += kLanes) {
      Floats scores;
      Score(books.stages[stage], x, first, scores);
      __builtin_memcpy(own + first, &scores, sizeof scores);
    }
    next->capacity = stage + 1 < stages ? width : 1;
    next->count = 0;
    for (int32_t parent = 0; parent < beam->count; ++parent) {
      const float* rows[kMaxStages];
      for (size_t t = 0; t < stage; ++t) {
        rows[t] = books.product_rows(t, stage) + beam->indices[parent][t] * books.entries;
      }
      OfferChildren(own, rows, stage, books.entries, beam->scores[parent], parent, *next);
    }
    InheritIndices(*beam, books.entries, stage, *next);
    Beam* const done = beam;
    beam = next;
    next = done;
  }
  for (size_t stage = 0; stage < stages; ++stage) indices[stage] = beam->indices[0][stage];
}

int32_t NearestScalar(const SearchBook& book, const float* x) {
  return Search<4>::Nearest(book, x);
}

void EncodeScalar(const BeamBooks& books, const float* x, int32_t beam, uint8_t* indices) {
  Search<4>::Encode(books, x, beam, indices);
}

constexpr VectorSearch kScalarSearch = {NearestScalar, EncodeScalar};

#if defined(__x86_64__)
__attribute__((target("avx2"))) int32_t NearestAvx2(const SearchBook& book, const float* x) {
  return Search<8>::Nearest(book, x);
}

__attribute__((target("avx2"))) void EncodeAvx2(const BeamBooks& books, const float* x,
                                                int32_t beam, uint8_t* indices) {
  Search<8>::Encode(books, x, beam, indices);
}

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) int32_t NearestAvx512(
    const SearchBook& book, const float* x) {
  return Search<16>::Nearest(book, x);
}

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void EncodeAvx512(
    const BeamBooks& books, const float* x, int32_t beam, uint8_t* indices) {
  Search<16>::Encode(books, x, beam, indices);
}

constexpr VectorSearch kAvx2Search = {NearestAvx2, EncodeAvx2};
constexpr VectorSearch kAvx512Search = {NearestAvx512, EncodeAvx512};
#endif

float Dot(const float* a, const float* b) {
  float sum = 0;
  for (int64_t j = 0; j < kVectorSize; ++j) sum += a[j] * b[j];
  return sum;
}

}  // namespace

SearchBook MakeSearchBook(std::span<const float> entries) {
  SearchBook book;
  book.entries = static_cast<int32_t>(entries.size() / kVectorSize);
  book.lanes.resize(entries.size());
  book.norms.resize(static_cast<size_t>(book.entries));
  for (int64_t c = 0; c < book.entries; ++c) {
    const float* entry = entries.data() + c * kVectorSize;
    for (int64_t j = 0; j < kVectorSize; ++j) {
      book.lanes[static_cast<size_t>(j * book.entries + c)] = entry[j];
    }
    book.norms[static_cast<size_t>(c)] = Dot(entry, entry);
  }
  return book;
}

BeamBooks MakeBeamBooks(const std::vector<std::vector<float>>& books) {
  BeamBooks result;
  result.entries = static_cast<int32_t>(books[0].size() / kVectorSize);
  for (const std::vector<float>& book : books) result.stages.push_back(MakeSearchBook(book));
  for (size_t s = 1; s < books.size(); ++s) {
    for (size_t t = 0; t < s; ++t) {
      std::vector<float> rows;
      rows.reserve(static_cast<size_t>(result.entries) * static_cast<size_t>(result.entries));
      for (int64_t a = 0; a < result.entries; ++a) {
        for (int64_t b = 0; b < result.entries; ++b) {
          rows.push_back(2 *
                         Dot(books[t].data() + a * kVectorSize, books[s].data() + b * kVectorSize));
        }
      }
      result.products.push_back(std::move(rows));
    }
  }
  return result;
}

Result<const VectorSearch*> VectorSearchFor(Isa isa) {
  if (isa == Isa::kBest) {
    isa = CpuHas(Isa::kAvx512) ? Isa::kAvx512 : CpuHas(Isa::kAvx2) ? Isa::kAvx2 : Isa::kScalar;
  }
  if (!CpuHas(isa)) return Failure(Code::kUnsupported, "this machine has no ", IsaName(isa));
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx2:
      return &kAvx2Search;
    case Isa::kAvx512:
      return &kAvx512Search;
#endif
    default:
      return &kScalarSearch;  // NEON: the compiler's own vectors are NEON there
  }
}

}  // namespace waste
