// SPDX-License-Identifier: Apache-2.0

#include "model/attn_res.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace waste {

void MixResiduals(const Kernels& kernels, const ResidualBlocks& blocks, const float* sum,
                  const float* query, float eps, int64_t hidden, float* out) {
  WASTE_CHECK(blocks.count <= kMaxResidualBlocks);
  std::array<float, kMaxResidualBlocks + 1> weights;  // scores, then their softmax
  const auto score = [&](const float* value) {
    const float mean = kernels.dot(value, value, hidden) / static_cast<float>(hidden);
    return kernels.dot(value, query, hidden) / std::sqrt(mean + eps);
  };
  for (int64_t i = 0; i < blocks.count; ++i) weights[i] = score(blocks.data + i * blocks.stride);
  weights[blocks.count] = score(sum);

  const float largest = *std::max_element(weights.begin(), weights.begin() + blocks.count + 1);
  float total = 0;
  for (int64_t i = 0; i <= blocks.count; ++i) {
    weights[i] = std::exp(weights[i] - largest);
    total += weights[i];
  }
  // The sum goes first: out may be the sum, and nothing of it is needed after this.
  const float own = weights[blocks.count] / total;
  for (int64_t j = 0; j < hidden; ++j) out[j] = own * sum[j];
  for (int64_t i = 0; i < blocks.count; ++i)
    kernels.axpy(weights[i] / total, blocks.data + i * blocks.stride, out, hidden);
}

}  // namespace waste
