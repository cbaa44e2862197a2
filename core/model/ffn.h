// SPDX-License-Identifier: Apache-2.0
//
// The gated feed-forward of dense layers and of shared experts:
//
//   FFN(x) = W_down act(W_gate x, W_up x),  act = SiLU(g) u or SiTU(g, u)
//
// One step at a time, on the step's threads.

#ifndef WASTE_CORE_MODEL_FFN_H_
#define WASTE_CORE_MODEL_FFN_H_

#include <cstdint>

#include "model/arena.h"
#include "model/compute.h"
#include "model/config.h"
#include "model/weights.h"

namespace waste {

struct FfnScratch {
  float* inner;  // [kTileRows, widest inner]

  static FfnScratch Plan(Arena& arena, const ModelConfig& config, int64_t rows);
  static int64_t ThreadBytes(const ModelConfig& config);
};

// x is [rows, hidden], out [rows, hidden].
void RunFfn(Compute& compute, const ModelConfig& config, const FfnWeights& w,
            const FfnScratch& scratch, Rows x, float* out);

}  // namespace waste

#endif  // WASTE_CORE_MODEL_FFN_H_
