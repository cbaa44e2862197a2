// SPDX-License-Identifier: Apache-2.0
//
// Multi-head latent attention in its absorbed form (DeepSeek-V2, arXiv 2405.04434, section 2.1),
// without rotation (NoPE): what is cached for a position is one latent vector for all heads and a
// shared key part, both as projected.
//
//   q = W_q x, or W_qb RMSNorm(W_qa x);  c = [RMSNorm(latent) | rope part] of W_kva x, cached
//   q~ = W_k^T q_nope;  s_t = (q~ . c_t[latent] + q_rope . c_t[rope]) / sqrt(nope + rope)
//   o = W_v sum_t softmax(s)_t c_t[latent];  out = W_o (o sigmoid(W_g x)), the gate if there is one
//
// One step at a time, on the step's threads; a row's head belongs to one of them.

#ifndef WASTE_CORE_MODEL_MLA_H_
#define WASTE_CORE_MODEL_MLA_H_

#include <cstdint>
#include <span>

#include "model/arena.h"
#include "model/compute.h"
#include "model/config.h"
#include "model/mla_written.h"
#include "model/session_slice.h"
#include "model/weights.h"

namespace waste {

struct MlaScratch {
  float* q_a;   // [rows, q_lora]
  float* q;     // [rows, heads, nope + rope]
  float* kv;    // [rows, kv_lora + rope]
  float* gate;  // [rows, heads, v]
  float* out;   // [rows, heads, v]
  WrittenMlaScratch written;

  // For steps of `rows` rows, of which at most `written` are tokens being written.
  static MlaScratch Plan(Arena& arena, const ModelConfig& config, int64_t rows, int64_t written);
  static int64_t ThreadBytes(const ModelConfig& config, int64_t written);
};

// x is [rows, hidden], out [rows, hidden]. Appends to the sessions' latent caches. Rows are all of
// prompts, or all of tokens that are being written.
void RunMla(Compute& compute, const ModelConfig& config, const MlaWeights& w,
            const MlaScratch& scratch, int64_t layer, std::span<const SessionSlice> sessions,
            Rows x, float* out);

}  // namespace waste

#endif  // WASTE_CORE_MODEL_MLA_H_
