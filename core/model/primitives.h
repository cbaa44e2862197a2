// SPDX-License-Identifier: Apache-2.0
//
// The scalar functions that the blocks share (docs/architecture.md, "The forward pass"): norms,
// gates, activations, all f32. The source of each is the released modelling code. Pure functions;
// any thread. Nothing here allocates.

#ifndef WASTE_CORE_MODEL_PRIMITIVES_H_
#define WASTE_CORE_MODEL_PRIMITIVES_H_

#include <cmath>
#include <cstdint>

#include "kernels/kernels.h"
#include "model/config.h"

namespace waste {

inline float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

inline float Silu(float x) { return x * Sigmoid(x); }

// log(1 + e^x); above 20 the 1 is below f32's last place.
inline float Softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

// SiTU(g, u) = beta tanh(g / beta) sigmoid(g) * linear_beta tanh(u / linear_beta); a linear_beta of
// 0 leaves u as it is.
inline float Situ(float gate, float up, float beta, float linear_beta) {
  const float bounded = linear_beta > 0 ? linear_beta * std::tanh(up / linear_beta) : up;
  return beta * std::tanh(gate / beta) * Sigmoid(gate) * bounded;
}

// gate <- act(gate, up), elementwise over n.
inline void Activate(const ModelConfig& config, float* gate, const float* up, int64_t n) {
  if (config.activation == Activation::kSilu) {
    for (int64_t i = 0; i < n; ++i) gate[i] = Silu(gate[i]) * up[i];
  } else {
    for (int64_t i = 0; i < n; ++i)
      gate[i] = Situ(gate[i], up[i], config.situ_beta, config.situ_linear_beta);
  }
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
