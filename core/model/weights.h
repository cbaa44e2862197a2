// SPDX-License-Identifier: Apache-2.0
//
// Everything of a model that stays in RAM: the trunk as it lies on disk (packed), small tensors as
// f32, and what is prepared once at open (keys and values of kv_b apart). The token embedding stays
// on disk and is read by the row. Every tensor's presence and shape is checked against the config.
// Immutable once loaded; any thread.

#ifndef WASTE_CORE_MODEL_WEIGHTS_H_
#define WASTE_CORE_MODEL_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/progress.h"
#include "base/status.h"
#include "container/container.h"
#include "model/config.h"
#include "parallel/thread_pool.h"
#include "quant/trunk_format.h"

namespace waste {

using Vector = const float*;  // length from the config

struct KdaWeights {
  TrunkMatrix q, k, v;               // [width, hidden]
  Vector q_conv, k_conv, v_conv;     // [conv_size, width], newest last
  TrunkMatrix f_a, f_b;              // [head_dim, hidden], [width, head_dim]
  Vector dt_bias;                    // [width]
  Vector a;                          // [heads]: exp(A_log)
  TrunkMatrix beta;                  // [heads, hidden]
  TrunkMatrix gate, gate_a, gate_b;  // full rank: gate [width, hidden]; else gate_b(gate_a x)
  Vector out_norm;                   // [head_dim]
  TrunkMatrix out;                   // [hidden, width]
};

struct MlaWeights {
  TrunkMatrix q;         // without q_lora: [heads * (nope + rope), hidden]
  TrunkMatrix q_a, q_b;  // with it: [q_lora, hidden], [heads * (nope + rope), q_lora]
  Vector q_norm;         // [q_lora]
  TrunkMatrix kv_a;      // [kv_lora + rope, hidden]
  Vector kv_norm;        // [kv_lora]
  TrunkMatrix key;       // [heads * nope, kv_lora]
  TrunkMatrix value;     // [heads * v, kv_lora]
  TrunkMatrix gate;      // [heads * v, hidden]
  TrunkMatrix out;       // [hidden, heads * v]
};

struct FfnWeights {
  TrunkMatrix gate, up, down;  // [inner, hidden], [inner, hidden], [hidden, inner]
  int64_t inner = 0;
};

struct MoeWeights {
  TrunkMatrix router;                  // [experts, hidden]
  Vector bias = nullptr;               // [experts], or null
  TrunkMatrix latent_down, latent_up;  // [latent, hidden], [hidden, latent]
  Vector latent_norm = nullptr;        // [latent]
  FfnWeights shared;                   // inner = moe inner x shared experts
};

// AttnRes: score_i = sum_j v_ij r_i query_j with query = norm * proj, [hidden].
struct LayerWeights {
  Vector attention_norm, ffn_norm;  // [hidden]
  Vector attention_res_query = nullptr, ffn_res_query = nullptr;
  KdaWeights kda;
  MlaWeights mla;
  FfnWeights dense;
  MoeWeights moe;
};

class Weights {
 public:
  // Bytes that Load will hold, and a check that every tensor is there with its shape and format.
  // Errors name the tensor: kCorrupt, kUnsupported.
  static Result<int64_t> Measure(const Container& container, const ModelConfig& config);
  // Progress counts bytes read. Matrices are read by all threads of `pool`, or by this one if it is
  // null. Errors also: kIo, kNoMemory, kCancelled.
  static Result<std::unique_ptr<Weights>> Load(const Container& container,
                                               const ModelConfig& config, Progress& progress,
                                               ThreadPool* pool = nullptr);

  std::vector<LayerWeights> layers;
  const TrunkEntry* embedding = nullptr;  // [vocab, hidden], on disk; owned by the container
  Vector final_norm = nullptr;            // [hidden]
  Vector final_res_query = nullptr;       // [hidden], AttnRes only
  TrunkMatrix head;                       // [vocab, hidden]

 private:
  Weights() = default;
  AlignedBuffer memory_;  // all of the above points into it
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_WEIGHTS_H_
