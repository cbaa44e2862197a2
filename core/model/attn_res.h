// SPDX-License-Identifier: Apache-2.0
//
// AttnRes, Kimi K3's attention over the residual history: instead of adding up, a layer's input is
// a softmax-weighted mean of what earlier blocks of layers began with and of the running sum.
//
//   v_0..v_{n-1} = blocks, v_n = sum;  s_i = query . v_i / sqrt(mean(v_i^2) + eps)
//   out = sum_i softmax(s)_i v_i
//
// All vectors belong to one token: there is no state between tokens. Pure functions; any thread.

#ifndef WASTE_CORE_MODEL_ATTN_RES_H_
#define WASTE_CORE_MODEL_ATTN_RES_H_

#include <cstdint>

#include "kernels/kernels.h"

namespace waste {

// Most blocks that there can be: one a layer.
inline constexpr int64_t kMaxResidualBlocks = 128;

// Blocks of one token, `stride` floats apart.
struct ResidualBlocks {
  const float* data;
  int64_t stride;
  int64_t count;
};

// query, sum and out are [hidden]; out may be sum.
void MixResiduals(const Kernels& kernels, const ResidualBlocks& blocks, const float* sum,
                  const float* query, float eps, int64_t hidden, float* out);

}  // namespace waste

#endif  // WASTE_CORE_MODEL_ATTN_RES_H_
