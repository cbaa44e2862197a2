// SPDX-License-Identifier: Apache-2.0
//
// The inner part of multi-head latent attention: scores of queries with the latents of a session's
// positions, softmax, and the sums of latents by those weights. Softmax is online, tile of
// positions by tile, and sums over several runs of positions can be merged. A query is a row and a
// head; what becomes of it does not depend on the others. Pure computation; any thread.

#ifndef WASTE_CORE_MODEL_LATENT_ATTENTION_H_
#define WASTE_CORE_MODEL_LATENT_ATTENTION_H_

#include <cstdint>

#include "kernels/kernels.h"
#include "model/arena.h"
#include "model/config.h"

namespace waste {

// Positions whose scores are held at once. Tiles start at multiples of it, so that a query's sums
// are grouped the same whatever step and company it came in.
inline constexpr int64_t kAttentionTile = 64;
// Queries that look at a tile together, while it is in the nearer caches.
inline constexpr int64_t kAttentionQueries = 32;

// What is summed for `kAttentionQueries` queries or fewer. The softmax's sum of latents is
// mean / total.
struct LatentSums {
  float* mean;     // [queries, rank]: latents times e^(score - largest)
  float* largest;  // [queries]: score
  float* total;    // [queries]: of e^(score - largest)
};

// A thread's memory for it.
struct LatentScratch {
  float* turned;   // [cache width, kAttentionQueries]: queries, 0 where there are none
  float* scores;   // [kAttentionTile, kAttentionQueries]
  float* largest;  // [kAttentionQueries], 0 where there are none

  static LatentScratch Plan(Arena& arena, const MlaConfig& mla);
};

class LatentAttention {
 public:
  LatentAttention(const Kernels& kernels, const MlaConfig& mla, const LatentScratch& scratch);

  // `count` queries, [count, cache width], not scaled yet. Query i sees `seen` + i % rows
  // positions.
  void SetQueries(const float* query, int64_t count, int64_t seen, int64_t rows);
  // Their sums over positions [begin, end) of `cache`, [positions, cache width]; `begin` is a
  // multiple of kAttentionTile, and no query's run may be empty.
  void Sum(const float* cache, int64_t begin, int64_t end, const LatentSums& sums);

 private:
  void AddTile(const float* tile, int64_t begin, int64_t count, const LatentSums& sums);
  void FetchNext(const float* tile, int64_t begin, int64_t part) const;
  void FillUnseen(int64_t begin, int64_t count, float value);
  void TakeLargest(int64_t count, const LatentSums& sums);

  const Kernels& kernels_;
  const int64_t rank_, width_;
  const float scale_;
  const LatentScratch s_;
  int64_t count_ = 0, seen_ = 0, rows_ = 1;
};

// mean / total of one query over several runs of positions, whose sums lie `stride` queries apart:
// to [rank].
void MergeSums(const LatentSums& sums, int64_t runs, int64_t stride, int64_t rank, float* to);

}  // namespace waste

#endif  // WASTE_CORE_MODEL_LATENT_ATTENTION_H_
