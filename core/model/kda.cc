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
// those before the row after the last, and may be `ring`.
struct Conv {
  const float* weight;  // [size, dim], `weight_stride` apart, newest last
  int64_t weight_stride;
  const float* ring;  // [dim, size - 1]
  float* next_ring;   // [dim, size - 1]
};

// `held` is [size - 1, dim].
void ConvolveHead(const Kernels& kernels, const Conv& conv, int64_t size, int64_t dim,
                  int64_t count, float* x, int64_t stride, float* held) {
  const int64_t before = size - 1;
  for (int64_t c = 0; c < dim; ++c)
    for (int64_t j = 0; j < before; ++j) held[j * dim + c] = conv.ring[c * before + j];
  // Input row i, those of the ring first.
  const auto row = [&](int64_t i) {
    return i < before ? held + i * dim : x + (i - before) * stride;
  };
  for (int64_t j = 0; j < before; ++j) {
    const float* in = row(count + j);
    for (int64_t c = 0; c < dim; ++c) conv.next_ring[c * before + j] = in[c];
  }
  // From the last row on: a row's inputs are itself and earlier ones.
  for (int64_t t = count - 1; t >= 0; --t) {
    float* out = x + t * stride;
    const float* newest = conv.weight + before * conv.weight_stride;
    for (int64_t c = 0; c < dim; ++c) out[c] *= newest[c];
    for (int64_t j = before - 1; j >= 0; --j) {
      const float* in = row(t + j);
      const float* weight = conv.weight + j * conv.weight_stride;
      for (int64_t c = 0; c < dim; ++c) out[c] += in[c] * weight[c];
    }
    Silu(kernels, dim, out);
  }
}

// x / |x|, times `scale`.
void Normalise(const Kernels& kernels, float scale, int64_t dim, float* x) {
  const float factor = scale / std::sqrt(kernels.dot(x, x, dim) + kUnitEps);
  for (int64_t i = 0; i < dim; ++i) x[i] *= factor;
}

// z -> decay, in place; both are at most 1 because the exponents are at most 0.
void Decay(const Kernels& kernels, const KdaConfig& kda, float rate, const float* bias, float* z) {
  const int64_t dim = kda.head_dim;
  for (int64_t i = 0; i < dim; ++i) z[i] += bias[i];
  if (kda.has_lower_bound) {
    for (int64_t i = 0; i < dim; ++i) z[i] *= rate;
    kernels.sigmoid(z, dim, z);
    for (int64_t i = 0; i < dim; ++i) z[i] *= kda.lower_bound;
  } else {
    kernels.softplus(z, dim, z);
    for (int64_t i = 0; i < dim; ++i) z[i] *= -rate;
  }
  kernels.exp(z, dim, z);
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

    // A step's first tile reads what is committed, the others what the one before left.
    SessionState& state = *session.state;
    const SessionState::Kda next = state.next(layer);
    const SessionState::Kda from = session.done == 0 ? state.current(layer) : next;
    Convolve(from.conv, next.conv, session.count, first, q, k, v, reinterpret_cast<float*>(memory));
    for (int64_t t = 0; t < session.count; ++t) {
      Normalise(kernels, 1.0f / std::sqrt(static_cast<float>(dim)), dim, q + t * width);
      Normalise(kernels, 1.0f, dim, k + t * width);
      Decay(kernels, kda, w.a[head], w.dt_bias + first, decay + t * width);
      float& b = beta[t * kda.heads];
      kernels.sigmoid(&b, 1, &b);
    }

    const DeltaRows rows{.q = q,
                         .k = k,
                         .v = v,
                         .decay = decay,
                         .stride = width,
                         .beta = beta,
                         .beta_stride = kda.heads,
                         .count = session.count,
                         .position = session.position(),
                         .out = q};
    // By what the rows are, not by how many: a prompt's last row may come alone.
    const auto delta_rule = session.is_prompt ? DeltaChunked : DeltaRecurrent;
    delta_rule(kernels, rows, dim, from.state + first * dim, next.state + first * dim, memory);

    for (int64_t t = 0; t < session.count; ++t) {
      float* o = q + t * width;
      RmsNorm(kernels, o, w.out_norm, config.norm_eps, dim, o);
      MultiplyBySigmoid(kernels, gate + t * width, dim, o);
    }
  }

  void Convolve(const float* from, float* to, int64_t count, int64_t first, float* q, float* k,
                float* v, float* memory) const {
    const KdaConfig& kda = config.kda;
    const int64_t held = kda.conv_size - 1;
    const Vector weights[] = {w.q_conv, w.k_conv, w.v_conv};
    float* const inputs[] = {q, k, v};
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t skip = (i * kda.width() + first) * held;
      const Conv conv{weights[i] + first, kda.width(), from + skip, to + skip};
      ConvolveHead(compute.kernels, conv, kda.conv_size, kda.head_dim, count, inputs[i],
                   kda.width(), memory);
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
  const int64_t conv = (config.kda.conv_size - 1) * config.kda.head_dim;
  return std::max(DeltaScratchBytes(config.kda.head_dim),
                  conv * static_cast<int64_t>(sizeof(float)));
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
  compute.Project(decay, x.At(s.f_a, dim));
  if (!kda.full_rank_gate) {
    const Projection gate[] = {{&w.gate_b, s.gate, width}};
    compute.Project(gate, x.At(s.gate_a, dim));
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
  compute.Project(project_out, x.At(s.q, width));
}

}  // namespace waste
