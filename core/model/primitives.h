// SPDX-License-Identifier: Apache-2.0
//
// The functions that the blocks share (docs/architecture.md, "The forward pass"): norms, gates,
// activations, all f32. The source of each is the released modelling code. Pure functions;
// any thread. Nothing here allocates.

#ifndef WASTE_CORE_MODEL_PRIMITIVES_H_
#define WASTE_CORE_MODEL_PRIMITIVES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/kernels.h"
#include "model/config.h"

namespace waste {

// y_i *= sigmoid(x_i), `kFunctionSpan` at a time, through the kernels' vectors.
inline constexpr int64_t kFunctionSpan = 64;

inline void MultiplyBySigmoid(const Kernels& kernels, const float* x, int64_t n, float* y) {
  float gate[kFunctionSpan];
  for (int64_t begin = 0; begin < n; begin += kFunctionSpan) {
    const int64_t count = std::min(n - begin, kFunctionSpan);
    kernels.sigmoid(x + begin, count, gate);
    kernels.multiply(y + begin, gate, count, y + begin);
  }
}

// x <- x sigmoid(x)
inline void Silu(const Kernels& kernels, int64_t n, float* x) {
  MultiplyBySigmoid(kernels, x, n, x);
}

// x <- bound tanh(x / bound)
inline void Bound(const Kernels& kernels, float bound, int64_t n, float* x) {
  for (int64_t i = 0; i < n; ++i) x[i] /= bound;
  kernels.tanh(x, n, x);
  for (int64_t i = 0; i < n; ++i) x[i] *= bound;
}

// gate <- act(gate, up), elementwise over n; `up` is overwritten. SiLU(g) u, or
// SiTU(g, u) = beta tanh(g / beta) sigmoid(g) * linear_beta tanh(u / linear_beta), where a
// linear_beta of 0 leaves u as it is.
inline void Activate(const Kernels& kernels, const ModelConfig& config, float* gate, float* up,
                     int64_t n) {
  if (config.activation == Activation::kSilu) {
    Silu(kernels, n, gate);
  } else {
    if (config.situ_linear_beta > 0) Bound(kernels, config.situ_linear_beta, n, up);
    MultiplyBySigmoid(kernels, gate, n, up);
    Bound(kernels, config.situ_beta, n, gate);
  }
  kernels.multiply(gate, up, n, gate);
}

// y_i = x_i w_i / sqrt(mean(x^2) + eps); y may be x.
inline void RmsNorm(const Kernels& kernels, const float* x, const float* weight, float eps,
                    int64_t n, float* y) {
  const float mean = kernels.dot(x, x, n) / static_cast<float>(n);
  const float scale = 1.0f / std::sqrt(mean + eps);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * weight[i];
}

}  // namespace waste

#endif  // WASTE_CORE_MODEL_PRIMITIVES_H_
