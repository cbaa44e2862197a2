// SPDX-License-Identifier: Apache-2.0
//
// What the manifest's config says, as numbers the forward pass uses. This is the only place that
// maps names of families to behaviour; everywhere else a switch is a field. Booleans are read by
// value, absent is false. Every dimension is bounded before anything is allocated. Pure data.

#ifndef WASTE_CORE_MODEL_CONFIG_H_
#define WASTE_CORE_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "container/manifest.h"

namespace waste {

enum class Activation : int32_t { kSilu, kSitu };
enum class AttentionKind : int32_t { kKda, kMla };
enum class ChatKind : int32_t { kNone, kTable, kK3 };

struct KdaConfig {
  int64_t heads = 0;
  int64_t head_dim = 0;  // of keys and values
  int64_t conv_size = 4;
  bool has_lower_bound = false;  // decay = bound * sigmoid(A z), else -A softplus(z)
  float lower_bound = 0;
  bool full_rank_gate = false;  // g_proj, else g_b_proj(g_a_proj)

  int64_t width() const { return heads * head_dim; }
};

struct MlaConfig {
  int64_t heads = 0;
  int64_t q_lora_rank = 0;  // 0: q_proj
  int64_t kv_lora_rank = 0;
  int64_t nope_dim = 0;
  int64_t rope_dim = 0;  // cached raw: both families are NoPE
  int64_t v_dim = 0;
  bool output_gate = false;

  int64_t cache_width() const { return kv_lora_rank + rope_dim; }
};

struct MoeConfig {
  int64_t experts = 0;
  int64_t top_k = 0;
  int64_t inner = 0;   // moe_intermediate_size
  int64_t latent = 0;  // routed_expert_hidden_size; 0: experts see the hidden state
  bool latent_norm = false;
  int64_t shared_experts = 0;
  float scale = 1;  // routed_scaling_factor
  bool renormalise = false;
};

struct ModelConfig {
  std::string prefix;  // of tensor names
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t vocab = 0;
  int64_t dense_inner = 0;      // intermediate_size
  int64_t first_moe_layer = 0;  // first_k_dense_replace
  float norm_eps = 1e-5f;
  Activation activation = Activation::kSilu;
  float situ_beta = 0;
  float situ_linear_beta = 0;
  int64_t attn_res_block = 0;            // 0: plain residuals
  std::vector<AttentionKind> attention;  // [layers]
  KdaConfig kda;
  MlaConfig mla;
  MoeConfig moe;
  int64_t max_context = 0;   // the model's own; 0 if the config does not say
  std::vector<int32_t> eos;  // eos_token_id, a number or a list
  ChatKind chat = ChatKind::kNone;

  int64_t expert_outer() const { return moe.latent > 0 ? moe.latent : hidden; }
  bool is_moe(int64_t layer) const { return moe.experts > 0 && layer >= first_moe_layer; }
};

// `has_chat` says whether the container has a chat.json. Errors name the key and the value:
// kFormat (missing, wrong type), kUnsupported (another family or switch that is not built),
// kCorrupt (numbers out of bounds).
Result<ModelConfig> ParseModelConfig(const Manifest& manifest, bool has_chat);

}  // namespace waste

#endif  // WASTE_CORE_MODEL_CONFIG_H_
