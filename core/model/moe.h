// SPDX-License-Identifier: Apache-2.0
//
// The mixture of experts over a batch of rows:
//
//   s = sigmoid(W_router x);  chosen: the top k of s + bias, the lowest expert first on ties
//   weight_j = s_j, / (sum of the chosen + 1e-20) if renormalised, times the scale
//   z = W_down x, or x without a latent;  y = sum_j weight_j FFN_j(z), in ascending expert order
//   out = W_up RMSNorm(y), or y without a latent;  out += FFN_shared(x)
//
// Every expert that some row chose is fetched once for all of them, and computed as soon as it is
// in memory, the shared experts first. The sum's order is that of the experts' numbers whatever the
// batch and whenever they came, so that a row's result depends neither on its company nor on the
// drive. One step at a time, on the step's threads.
//
// Lookahead: while experts are read, the source is told what comes next, and may read it when
// nothing else is to be read (Moe::LookAhead).

#ifndef WASTE_CORE_MODEL_MOE_H_
#define WASTE_CORE_MODEL_MOE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "model/arena.h"
#include "model/compute.h"
#include "model/config.h"
#include "model/expert_compute.h"
#include "model/ffn.h"
#include "model/weights.h"
#include "stream/expert_source.h"

namespace waste {

// Writes the `top_k` largest of `scores` + `bias` (may be null) to `experts`, largest first, and
// their weights, which are the scores without bias, to `weights`.
void ChooseExperts(const MoeConfig& moe, const float* scores, const float* bias, int32_t* experts,
                   float* weights);

struct MoeScratch {
  int64_t slots;       // most pairs of a row and an expert that are computed at a time
  float* scores;       // [rows, experts]
  int32_t* chosen;     // [rows, top_k]
  float* weights;      // [rows, top_k]
  int32_t* first;      // [experts + 1]: where an expert's pairs begin among all, sorted by expert
  int32_t* pair_row;   // [rows * top_k]
  float* pair_weight;  // [rows * top_k]
  int32_t* wanted;     // [experts]: those with pairs, ascending
  int32_t* guess;      // [top_k]: of the next layer, likeliest first
  float* guess_keys;   // [top_k]
  float* latent;       // [rows, latent]
  float* y;            // [rows, latent]; without a latent, sums go to the layer's output
  float* up;           // [kTileRows, hidden], with a latent
  FfnScratch ffn;
  ExpertScratch experts;

  static MoeScratch Plan(Arena& arena, const ModelConfig& config, const ExpertPlan& plan,
                         int64_t rows);
  static int64_t ThreadBytes(const ModelConfig& config, const ExpertPlan& plan, int64_t rows);
};

class Moe {
 public:
  Moe(Compute& compute, const ModelConfig& config, const ExpertPlan& plan, ExpertSource& source,
      const MoeScratch& scratch);

  // `rows` are [count, hidden], out too; `next` is the next
  // layer's weights if that has experts, or null. Errors: those of the source.
  Status Run(int64_t layer, const MoeWeights& w, const MoeWeights* next, Rows rows,
             const std::function<bool()>& stop, float* out);

 private:
  struct Group;
  struct Layer;
  void Route(const MoeWeights& w, Rows rows);
  int64_t SortPairs(int64_t rows);
  Group NextGroup(int64_t begin, int64_t wanted_count) const;
  Status RunGroup(const Layer& layer, const Group& group, const Group& next);
  void Begin(const Layer& layer, const Group& group, const Group& next);
  void LookAhead(const Layer& layer, const Group& next);
  void UseArrived(const Layer& layer, const Group& group, std::span<const ArrivedExpert> arrived);
  void UseInParts(const Layer& layer, const Group& group, const ArrivedExpert& one);
  ExpertTile TileOf(const Layer& layer, const ArrivedExpert& one, int64_t first_pair, int64_t pairs,
                    int64_t slot) const;
  void RunTiles(const Layer& layer);
  void Gather(const Layer& layer, int64_t first_pair, int64_t pairs);
  void Sum(const Layer& layer, int64_t first_pair, int64_t pairs);
  void Finish(const Layer& layer);

  Compute& compute_;
  const ModelConfig& config_;
  ExpertSource& source_;
  MoeScratch s_;
  const bool tables_;
  ExpertCompute experts_;
  std::vector<ExpertTile> tiles_;  // of the experts that arrived
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_MOE_H_
