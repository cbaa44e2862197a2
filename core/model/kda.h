// SPDX-License-Identifier: Apache-2.0
//
// Kimi Delta Attention (Kimi Linear, arXiv 2510.26692), H heads of dimension D over the rows x:
//
//   q, k, v = SiLU(conv(W x));  q = q / |q| D^-1/2,  k = k / |k|
//   z = W_fb W_fa x + dt_bias;  decay = exp(lb sigmoid(A z)), or exp(-A softplus(z)) without a
//   bound beta = sigmoid(W_b x);      o = the delta rule (delta_rule.h) out = W_o (RMSNorm(o)
//   sigmoid(gate)),  gate = W_g x or W_gb W_ga x
//
// Reads each session's current state and writes its next one. One step at a time, on the step's
// threads; a head of a session belongs to one thread.

#ifndef WASTE_CORE_MODEL_KDA_H_
#define WASTE_CORE_MODEL_KDA_H_

#include <cstdint>
#include <span>

#include "model/arena.h"
#include "model/compute.h"
#include "model/config.h"
#include "model/session_slice.h"
#include "model/weights.h"

namespace waste {

struct KdaScratch {
  float *q, *k, *v;     // [rows, width]
  float* decay;         // [rows, width]
  float* gate;          // [rows, width]
  float *f_a, *gate_a;  // [rows, head_dim]
  float* beta;          // [rows, heads]

  static KdaScratch Plan(Arena& arena, const ModelConfig& config, int64_t rows);
  static int64_t ThreadBytes(const ModelConfig& config);
};

// x is [rows, hidden], out [rows, hidden]; a prompt's rows are computed in chunks.
void RunKda(Compute& compute, const ModelConfig& config, const KdaWeights& w,
            const KdaScratch& scratch, int64_t layer, std::span<const SessionSlice> sessions,
            Rows x, float* out);

}  // namespace waste

#endif  // WASTE_CORE_MODEL_KDA_H_
