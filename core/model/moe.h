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
// nothing else is to be read. In a batch of rows that is the next group of this layer's experts,
// which is known; for a single row the next layer's router, on this layer's input, guesses.

#ifndef WASTE_CORE_MODEL_MOE_H_
#define WASTE_CORE_MODEL_MOE_H_

#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"
#include "model/arena.h"
#include "model/compute.h"
#include "model/config.h"
#include "model/ffn.h"
#include "model/weights.h"
#include "stream/expert_source.h"

namespace waste {

// Writes the `top_k` largest of `scores` + `bias` (may be null) to `experts`, largest first, and
// their weights, which are the scores without bias, to `weights`.
void ChooseExperts(const MoeConfig& moe, const float* scores, const float* bias, int32_t* experts,
                   float* weights);

struct MoeScratch {
  // Most (row, expert) pairs that are computed at a time; at least a step's rows.
  static constexpr int64_t kMaxSlots = 256;

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
  float* gathered;     // [slots, outer]: inputs, an expert's rows together
  float* inner;        // [slots, moe inner]
  float* down;         // [slots, outer]: outputs, not weighted
  float* y;            // [rows, outer]
  float* shared_out;   // [rows, hidden]
  FfnScratch ffn;

  static MoeScratch Plan(Arena& arena, const ModelConfig& config, int64_t rows);
  static int64_t ThreadBytes(const ModelConfig& config, int64_t rows);
};

class Moe {
 public:
  Moe(Compute& compute, const ModelConfig& config, ExpertSource& source, const MoeScratch& scratch);

  // x is [rows, hidden], out [rows, hidden]; `next` is the next layer's weights if that has
  // experts, or null. Errors: those of the source.
  Status Run(int64_t layer, const MoeWeights& w, const MoeWeights* next, Rows x,
             const std::function<bool()>& stop, float* out);

 private:
  struct Group;
  struct Fetching;
  void Route(const MoeWeights& w, int64_t rows);
  int64_t SortPairs(int64_t rows);
  Group NextGroup(int64_t begin, int64_t wanted_count) const;
  Status RunGroup(const Fetching& fetching, const Group& group, const Group& next, Rows z);
  void LookAhead(const Fetching& fetching, const Group& next);
  void UseArrived(const Group& group, std::span<const ArrivedExpert> arrived);
  void GateAndUp(const Group& group, std::span<const ArrivedExpert> arrived);
  void Down(const Group& group, std::span<const ArrivedExpert> arrived);
  void Sum(const Group& group);
  void Finish(const MoeWeights& w, Rows x, float* out);

  Compute& compute_;
  const ModelConfig& config_;
  ExpertSource& source_;
  MoeScratch s_;
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_MOE_H_
