// SPDX-License-Identifier: Apache-2.0

#include "model/synthetic_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace waste {
namespace {

SyntheticModel KimiLinear48B() {
  return {.layers = 27,
          .hidden = 2304,
          .vocab = 163840,
          .dense_inner = 9216,
          .mla_layers = {4, 8, 12, 16, 20, 24, 27},
          .kda_heads = 32,
          .kda_dim = 128,
          .heads = 32,
          .kv_lora = 512,
          .nope = 128,
          .rope = 64,
          .v = 128,
          .experts = 256,
          .top_k = 8,
          .inner = 1024};
}

SyntheticModel K3() {
  SyntheticModel model{.k3 = true,
                       .layers = 93,
                       .hidden = 7168,
                       .vocab = 163840,
                       .dense_inner = 33792,
                       .mla_layers = {},
                       .kda_heads = 96,
                       .kda_dim = 128,
                       .heads = 96,
                       .q_lora = 1536,
                       .kv_lora = 512,
                       .nope = 128,
                       .rope = 64,
                       .v = 128,
                       .output_gate = true,
                       .experts = 896,
                       .top_k = 16,
                       .inner = 3072,
                       .latent = 3584,
                       .shared = 2,
                       .latent_norm = true,
                       .scale = 1.0,
                       .attn_res = 12};
  for (int64_t layer = 4; layer < model.layers; layer += 4) model.mla_layers.push_back(layer);
  model.mla_layers.push_back(model.layers);  // 24 of them
  return model;
}

// Of examples/mini.
SyntheticModel Mini() {
  return {.k3 = true,
          .layers = 8,
          .hidden = 192,
          .vocab = 2048,
          .dense_inner = 384,
          .mla_layers = {4, 8},
          .kda_heads = 3,
          .kda_dim = 64,
          .heads = 3,
          .q_lora = 128,
          .kv_lora = 128,
          .nope = 64,
          .rope = 32,
          .v = 64,
          .output_gate = true,
          .experts = 32,
          .top_k = 4,
          .inner = 96,
          .latent = 96,
          .shared = 1,
          .latent_norm = true,
          .scale = 1.0,
          .attn_res = 3};
}

class TrunkList {
 public:
  TrunkList(const SyntheticModel& o, const FormatChoice& formats) : o_(o), formats_(formats) {
    const std::string p = o.prefix();
    Add(p + "model.embed_tokens.weight", TrunkFormat::kQ8G, {o.vocab, o.hidden}, 0, 1);
    Matrix(p + "lm_head", o.vocab, o.hidden);
    Norm(p + "model.norm", o.hidden);
    if (o.attn_res > 0) Residual(p + "model.output_attn_res");
    for (int64_t layer = 0; layer < o.layers; ++layer)
      Layer(layer, p + "model.layers." + std::to_string(layer) + ".");
  }

  SyntheticTrunk Take() { return std::move(trunk_); }

 private:
  void Add(const std::string& name, TrunkFormat format, std::vector<int64_t> shape, float mean,
           float spread) {
    trunk_[name] = {format, std::move(shape), mean, spread};
  }

  void Matrix(const std::string& name, int64_t rows, int64_t columns) {
    Add(name + ".weight", formats_.matrix(trunk_.size(), rows * columns), {rows, columns}, 0,
        1.2f / std::sqrt(static_cast<float>(columns)));
  }

  void Norm(const std::string& name, int64_t size) {
    Add(name + ".weight", formats_.norm(trunk_.size()), {size}, 1, 0.3f);
  }

  void Residual(const std::string& name) {
    Norm(name + "_norm", o_.hidden);
    Add(name + "_proj.weight", TrunkFormat::kF32, {1, o_.hidden}, 0, 0.05f);
  }

  void Ffn(const std::string& p, int64_t inner) {
    Matrix(p + "gate_proj", inner, o_.hidden);
    Matrix(p + "up_proj", inner, o_.hidden);
    Matrix(p + "down_proj", o_.hidden, inner);
  }

  void Layer(int64_t layer, const std::string& p) {
    Norm(p + "input_layernorm", o_.hidden);
    Norm(p + "post_attention_layernorm", o_.hidden);
    if (o_.attn_res > 0) {
      Residual(p + "self_attention_res");
      Residual(p + "mlp_res");
    }
    o_.is_mla(layer) ? Mla(p + "self_attn.") : Kda(p + "self_attn.");
    layer < o_.first_moe_layer ? Ffn(p + "mlp.", o_.dense_inner) : Moe(p + "block_sparse_moe.");
  }

  void Kda(const std::string& p) {
    const int64_t width = o_.kda_heads * o_.kda_dim;
    for (const char* name : {"q", "k", "v"}) {
      Matrix(p + name + "_proj", width, o_.hidden);
      Add(p + name + "_conv1d.weight", TrunkFormat::kF32, {width, 1, o_.conv_size}, 0.2f, 0.6f);
    }
    Matrix(p + "f_a_proj", o_.kda_dim, o_.hidden);
    Matrix(p + "f_b_proj", width, o_.kda_dim);
    Matrix(p + "b_proj", o_.kda_heads, o_.hidden);
    if (o_.k3) {
      Matrix(p + "g_proj", width, o_.hidden);
    } else {
      Matrix(p + "g_a_proj", o_.kda_dim, o_.hidden);
      Matrix(p + "g_b_proj", width, o_.kda_dim);
    }
    Add(p + "A_log", TrunkFormat::kF32, {1, 1, o_.kda_heads + 3, 1}, 0, 1);
    trunk_[p + "A_log"].zeros_from = o_.kda_heads;
    Add(p + "dt_bias", TrunkFormat::kF32, {width}, -1, 2);
    Norm(p + "o_norm", o_.kda_dim);
    Matrix(p + "o_proj", o_.hidden, width);
  }

  void Mla(const std::string& p) {
    const int64_t q_width = o_.heads * (o_.nope + o_.rope);
    if (o_.q_lora > 0) {
      Matrix(p + "q_a_proj", o_.q_lora, o_.hidden);
      Norm(p + "q_a_layernorm", o_.q_lora);
      Matrix(p + "q_b_proj", q_width, o_.q_lora);
    } else {
      Matrix(p + "q_proj", q_width, o_.hidden);
    }
    Matrix(p + "kv_a_proj_with_mqa", o_.kv_lora + o_.rope, o_.hidden);
    Norm(p + "kv_a_layernorm", o_.kv_lora);
    Matrix(p + "kv_b_proj", o_.heads * (o_.nope + o_.v), o_.kv_lora);
    if (o_.output_gate) Matrix(p + "g_proj", o_.heads * o_.v, o_.hidden);
    Matrix(p + "o_proj", o_.hidden, o_.heads * o_.v);
  }

  void Moe(const std::string& p) {
    Matrix(p + "gate", o_.experts, o_.hidden);
    if (o_.router_bias)
      Add(p + "gate.e_score_correction_bias", TrunkFormat::kF32, {o_.experts}, 0, 0.1f);
    if (o_.latent > 0) {
      Matrix(p + "routed_expert_down_proj", o_.latent, o_.hidden);
      Matrix(p + "routed_expert_up_proj", o_.hidden, o_.latent);
      if (o_.latent_norm) Norm(p + "routed_expert_norm", o_.latent);
    }
    if (o_.shared > 0) Ffn(p + "shared_experts.", o_.inner * o_.shared);
  }

  const SyntheticModel& o_;
  const FormatChoice& formats_;
  SyntheticTrunk trunk_;
};

}  // namespace

bool SyntheticModel::is_mla(int64_t layer) const {
  return std::count(mla_layers.begin(), mla_layers.end(), layer + 1) > 0;
}

Result<SyntheticModel> SyntheticModelNamed(std::string_view name) {
  if (name == "kimi-linear-48b") return KimiLinear48B();
  if (name == "k3") return K3();
  if (name == "mini") return Mini();
  return Failure(Code::kArgument, "there is no shape ", std::string(name),
                 "; there are kimi-linear-48b, k3 and mini");
}

Result<SyntheticModel> CutDown(SyntheticModel model, int64_t layers, int64_t experts) {
  if (layers < 0 || layers > model.layers)
    return Failure(Code::kArgument, layers, " layers; the shape has ", model.layers);
  if (experts != 0 && (experts < model.top_k || experts > model.experts))
    return Failure(Code::kArgument, experts, " experts; the shape has ", model.experts,
                   ", and a token uses ", model.top_k, " of a layer");
  if (layers > 0) model.layers = layers;
  if (experts > 0) model.experts = experts;
  std::erase_if(model.mla_layers, [&](int64_t layer) { return layer > model.layers; });
  return model;
}

nlohmann::ordered_json SyntheticConfig(const SyntheticModel& o) {
  nlohmann::ordered_json kda_layers = nlohmann::ordered_json::array();
  for (int64_t layer = 0; layer < o.layers; ++layer)
    if (!o.is_mla(layer)) kda_layers.push_back(layer + 1);
  nlohmann::ordered_json config = {{"num_hidden_layers", o.layers},
                                   {"hidden_size", o.hidden},
                                   {"vocab_size", o.vocab},
                                   {"intermediate_size", o.dense_inner},
                                   {"first_k_dense_replace", o.first_moe_layer},
                                   {"num_attention_heads", o.heads},
                                   {"kv_lora_rank", o.kv_lora},
                                   {"q_lora_rank", nullptr},
                                   {"qk_nope_head_dim", o.nope},
                                   {"qk_rope_head_dim", o.rope},
                                   {"v_head_dim", o.v},
                                   {"mla_use_nope", true},
                                   {"num_experts", o.experts},
                                   {"num_experts_per_token", o.top_k},
                                   {"moe_intermediate_size", o.inner},
                                   {"num_shared_experts", o.shared},
                                   {"moe_renormalize", true},
                                   {"moe_router_activation_func", "sigmoid"},
                                   {"num_expert_group", 1},
                                   {"routed_scaling_factor", o.scale},
                                   {"hidden_act", "silu"},
                                   {"rms_norm_eps", 1e-5},
                                   {"eos_token_id", 2},
                                   {"linear_attn_config",
                                    {{"num_heads", o.kda_heads},
                                     {"head_dim", o.kda_dim},
                                     {"short_conv_kernel_size", o.conv_size},
                                     {"kda_layers", kda_layers}}}};
  if (o.q_lora > 0) config["q_lora_rank"] = o.q_lora;
  if (!o.k3) return config;
  config["hidden_act"] = "situ";
  config["activation_situ_beta"] = 4.0;
  config["activation_situ_linear_beta"] = 25.0;
  config["mla_use_output_gate"] = o.output_gate;
  config["routed_expert_hidden_size"] = o.latent;
  config["latent_moe_use_norm"] = o.latent_norm;
  config["attn_res_block_size"] = o.attn_res;
  config["linear_attn_config"]["gate_lower_bound"] = -5.0;
  config["linear_attn_config"]["use_full_rank_gate"] = true;
  return config;
}

SyntheticTrunk SyntheticTrunkOf(const SyntheticModel& model, const FormatChoice& formats) {
  return TrunkList(model, formats).Take();
}

}  // namespace waste
