// SPDX-License-Identifier: Apache-2.0

#include "model/kda.h"

#include <algorithm>
#include <cmath>

#include "model/delta_rule.h"
#include "model/primitives.h"

namespace waste {
namespace {

// In the norm of q and k: the modelling code's, not rms_norm_eps.
constexpr float kUnitEps = 1e-6f;

// Depthwise causal convolution and SiLU, in place over the `count` rows of one head's `dim`
// channels. `ring` holds the size - 1 inputs before the first row, oldest first; `next_ring` gets
// those before the row after the last.
struct Conv {
  const float* weight;  // [dim, size], newest last
  const float* ring;    // [dim, size - 1]
  float* next_ring;     // [dim, size - 1]
};

void ConvolveHead(const Conv& conv, int64_t size, int64_t dim, int64_t count, float* x,
                  int64_t stride) {
  const int64_t held = size - 1;
  // Input number i of a channel, the ring's first.
  const auto input = [&](int64_t c, int64_t i) {
    return i < held ? conv.ring[c * held + i] : x[(i - held) * stride + c];
  };
  for (int64_t c = 0; c < dim; ++c)
    for (int64_t j = 0; j < held; ++j) conv.next_ring[c * held + j] = input(c, count + j);
  // From the last row on: a row's inputs are itself and earlier ones.
  for (int64_t t = count - 1; t >= 0; --t) {
    for (int64_t c = 0; c < dim; ++c) {
      float sum = 0;
      for (int64_t j = 0; j < size; ++j) sum += input(c, t + j) * conv.weight[c * size + j];
      x[t * stride + c] = Silu(sum);
    }
  }
}

// x / |x|, times `scale`.
void Normalise(const Kernels& kernels, float scale, int64_t dim, float* x) {
  const float factor = scale / std::sqrt(kernels.dot(x, x, dim) + kUnitEps);
  for (int64_t i = 0; i < dim; ++i) x[i] *= factor;
}

// z -> decay, in place; both are at most 1 because the exponents are at most 0.
void Decay(const KdaConfig& kda, float rate, const float* bias, float* z) {
  for (int64_t i = 0; i < kda.head_dim; ++i) {
    const float biased = z[i] + bias[i];
    z[i] = std::exp(kda.has_lower_bound ? kda.lower_bound * Sigmoid(rate * biased)
                                        : -rate * Softplus(biased));
  }
}

// One head of one session. What it leaves in q is o, normed and gated: [count, head_dim].
struct Head {
  const Compute& compute;
  const ModelConfig& config;
  const KdaWeights& w;
  const KdaScratch& scratch;
  int64_t layer;

  void Run(const SessionSlice& session, int64_t head, uint8_t* memory) const {
    const KdaConfig& kda = config.kda;
    const Kernels& kernels = compute.kernels;
    const int64_t dim = kda.head_dim, width = kda.width(), first = head * dim;
    const int64_t at = session.begin * width + first;
    float *q = scratch.q + at, *k = scratch.k + at, *v = scratch.v + at;
    float *decay = scratch.decay + at, *gate = scratch.gate + at;
    float* beta = scratch.beta + session.begin * kda.heads + head;

    Convolve(session, first, q, k, v);
    for (int64_t t = 0; t < session.count; ++t) {
      Normalise(kernels, 1.0f / std::sqrt(static_cast<float>(dim)), dim, q + t * width);
      Normalise(kernels, 1.0f, dim, k + t * width);
      Decay(kda, w.a[head], w.dt_bias + first, decay + t * width);
      beta[t * kda.heads] = Sigmoid(beta[t * kda.heads]);
    }

    float* state = session.state->next(layer).state + first * dim;  // [keys, values]
    std::copy_n(session.state->current(layer).state + first * dim, dim * dim, state);
    const DeltaRows rows{.q = q,
                         .k = k,
                         .v = v,
                         .decay = decay,
                         .stride = width,
                         .beta = beta,
                         .beta_stride = kda.heads,
                         .count = session.count,
                         .out = q};
    const auto delta_rule = session.count < kChunkedFrom ? DeltaRecurrent : DeltaChunked;
    delta_rule(kernels, rows, dim, state, memory);

    for (int64_t t = 0; t < session.count; ++t) {
      float* o = q + t * width;
      RmsNorm(kernels, o, w.out_norm, config.norm_eps, dim, o);
      for (int64_t i = 0; i < dim; ++i) o[i] *= Sigmoid(gate[t * width + i]);
    }
  }

  void Convolve(const SessionSlice& session, int64_t first, float* q, float* k, float* v) const {
    const KdaConfig& kda = config.kda;
    const int64_t held = kda.conv_size - 1;
    const float* ring = session.state->current(layer).conv + first * held;
    float* next_ring = session.state->next(layer).conv + first * held;
    const Vector weights[] = {w.q_conv, w.k_conv, w.v_conv};
    float* const inputs[] = {q, k, v};
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t skip = i * kda.width() * held;
      const Conv conv{weights[i] + first * kda.conv_size, ring + skip, next_ring + skip};
      ConvolveHead(conv, kda.conv_size, kda.head_dim, session.count, inputs[i], kda.width());
    }
  }
};

}  // namespace

KdaScratch KdaScratch::Plan(Arena& arena, const ModelConfig& config, int64_t rows) {
  const KdaConfig& kda = config.kda;
  KdaScratch scratch;
  for (float** wide : {&scratch.q, &scratch.k, &scratch.v, &scratch.decay, &scratch.gate})
    *wide = arena.Floats(rows * kda.width());
  scratch.f_a = arena.Floats(rows * kda.head_dim);
  scratch.gate_a = arena.Floats(rows * kda.head_dim);
  scratch.beta = arena.Floats(rows * kda.heads);
  return scratch;
}

int64_t KdaScratch::ThreadBytes(const ModelConfig& config) {
  return DeltaScratchBytes(config.kda.head_dim);
}

void RunKda(Compute& compute, const ModelConfig& config, const KdaWeights& w, const KdaScratch& s,
            int64_t layer, std::span<const SessionSlice> sessions, Rows x, float* out) {
  const KdaConfig& kda = config.kda;
  const int64_t width = kda.width(), dim = kda.head_dim;

  const Projection gate_of_x = kda.full_rank_gate ? Projection{&w.gate, s.gate, width}
                                                  : Projection{&w.gate_a, s.gate_a, dim};
  const Projection of_x[] = {{&w.q, s.q, width},   {&w.k, s.k, width},
                             {&w.v, s.v, width},   gate_of_x,
                             {&w.f_a, s.f_a, dim}, {&w.beta, s.beta, kda.heads}};
  compute.Project(of_x, x);
  const Projection decay[] = {{&w.f_b, s.decay, width}};
  compute.Project(decay, {s.f_a, dim, x.count});
  if (!kda.full_rank_gate) {
    const Projection gate[] = {{&w.gate_b, s.gate, width}};
    compute.Project(gate, {s.gate_a, dim, x.count});
  }

  const Head one{compute, config, w, s, layer};
  const int64_t sessions_count = static_cast<int64_t>(sessions.size());
  const int64_t work = 4 * dim * dim * x.count / sessions_count;
  compute.Parallel(sessions_count * kda.heads, work, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute);
    for (int64_t i = begin; i < end; ++i)
      one.Run(sessions[i / kda.heads], i % kda.heads, thread.memory());
  });

  const Projection project_out[] = {{&w.out, out, config.hidden}};
  compute.Project(project_out, {s.q, width, x.count});
}

}  // namespace waste
