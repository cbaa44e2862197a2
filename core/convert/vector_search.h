// SPDX-License-Identifier: Apache-2.0
//
// The two searches that conversion spends its time in: the codebook entry nearest to a vector, and
// the beam search for the stage indices whose entries add up nearest to it. Both are sums of
// products in a fixed order without contraction, entries side by side in lanes, so every ISA gives
// the same indices: a wider one is only faster. The beam search never forms residuals: with g = c_i
// . c_j of all pairs of entries tabulated, the squared error of a sum of entries is a sum of table
// rows. Pure functions; any thread. Nothing here allocates but MakeBeamBooks.

#ifndef WASTE_CORE_CONVERT_VECTOR_SEARCH_H_
#define WASTE_CORE_CONVERT_VECTOR_SEARCH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "os/system.h"
#include "quant/expert_format.h"

namespace waste {

inline constexpr int32_t kMaxBeam = 64;      // partial sums
inline constexpr int32_t kMaxEntries = 256;  // of a codebook

// A codebook laid out for searching.
struct SearchBook {
  int32_t entries = 0;
  std::vector<float> lanes;  // [8, entries]
  std::vector<float> norms;  // [entries], squared length
};

SearchBook MakeSearchBook(std::span<const float> entries);  // [entries, 8]

// The books of all stages of one kind of matrix.
struct BeamBooks {
  int32_t entries = 0;
  std::vector<SearchBook> stages;
  std::vector<std::vector<float>>
      products;  // of the pair (t, s), t < s: 2 c_t . c_s, [entries, entries]

  const float* product_rows(size_t t, size_t s) const {
    return products[s * (s - 1) / 2 + t].data();
  }
};

BeamBooks MakeBeamBooks(const std::vector<std::vector<float>>& books);

struct VectorSearch {
  // The entry c that minimises |c|^2 - 2 x.c, the first of equal ones.
  int32_t (*nearest)(const SearchBook& book, const float* x);
  // The indices, one a stage, of the best sum found with `beam` (1..kMaxBeam) partial sums kept;
  // the first of equal ones.
  void (*encode)(const BeamBooks& books, const float* x, int32_t beam, uint8_t* indices);
};

// Errors: kUnsupported if this machine lacks `isa` or there is no build for it.
Result<const VectorSearch*> VectorSearchFor(Isa isa);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_VECTOR_SEARCH_H_
