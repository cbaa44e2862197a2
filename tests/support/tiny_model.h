// SPDX-License-Identifier: Apache-2.0
//
// A whole small model with random weights as a container: Kimi-Linear or Kimi K3, every tensor
// there, sizes awkward (no multiple of 64 or 128), every trunk format in use. The same options give
// the same bytes. Removed with the object; throws when it cannot be written.

#ifndef WASTE_TESTS_SUPPORT_TINY_MODEL_H_
#define WASTE_TESTS_SUPPORT_TINY_MODEL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/tiny_container.h"

namespace waste {

struct TinyModelOptions {
  bool k3 = false;
  uint32_t seed = 1;
  int64_t layers = 5, hidden = 136, vocab = 67, dense_inner = 70, first_moe_layer = 1;
  std::vector<int64_t> mla_layers = {3, 5};  // from one
  int64_t kda_heads = 2, kda_dim = 12, conv_size = 4;
  int64_t heads = 3, q_lora = 0, kv_lora = 20, nope = 6, rope = 4, v = 5;
  bool output_gate = false;
  int64_t experts = 7, top_k = 3, inner = 72, latent = 0, shared = 1;
  bool latent_norm = false, router_bias = true;
  double scale = 2.446;
  int64_t attn_res = 0;
  ExpertCodec codec = {};
};

inline TinyModelOptions TinyKimiLinear() { return {}; }

inline TinyModelOptions TinyK3() {
  return {.k3 = true,
          .layers = 7,
          .hidden = 88,
          .mla_layers = {1, 7},
          .kda_heads = 3,
          .kda_dim = 16,
          .q_lora = 18,
          .output_gate = true,
          .experts = 9,
          .top_k = 4,
          .latent = 40,
          .shared = 2,
          .latent_norm = true,
          .scale = 1.0,
          .attn_res = 3};
}

inline std::string TinyPrefix(const TinyModelOptions& o) { return o.k3 ? "language_model." : ""; }

inline bool IsTinyMla(const TinyModelOptions& o, int64_t layer) {
  return std::count(o.mla_layers.begin(), o.mla_layers.end(), layer + 1) > 0;
}

inline nlohmann::ordered_json TinyConfig(const TinyModelOptions& o) {
  nlohmann::ordered_json kda_layers = nlohmann::ordered_json::array();
  for (int64_t layer = 0; layer < o.layers; ++layer)
    if (!IsTinyMla(o, layer)) kda_layers.push_back(layer + 1);
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

// A tensor's format, shape and values: value = mean + spread * uniform(-1, 1).
struct TinyWeights {
  TrunkFormat format = TrunkFormat::kF32;
  std::vector<int64_t> shape;
  float mean = 0;
  float spread = 0;
  int64_t zeros_from = -1;  // padding from this value on
};

using TinyTrunk = std::map<std::string, TinyWeights>;

class TinyTrunkList {
 public:
  explicit TinyTrunkList(const TinyModelOptions& o) : o_(o) {
    const std::string p = TinyPrefix(o);
    Add(p + "model.embed_tokens.weight", TrunkFormat::kQ8G, {o.vocab, o.hidden}, 0, 1);
    Matrix(p + "lm_head", o.vocab, o.hidden);
    Norm(p + "model.norm", o.hidden);
    if (o.attn_res > 0) Residual(p + "model.output_attn_res");
    for (int64_t layer = 0; layer < o.layers; ++layer)
      Layer(layer, p + "model.layers." + std::to_string(layer) + ".");
  }

  const TinyTrunk& trunk() const { return trunk_; }

 private:
  void Add(const std::string& name, TrunkFormat format, std::vector<int64_t> shape, float mean,
           float spread) {
    trunk_[name] = {format, std::move(shape), mean, spread};
  }

  // Formats take turns.
  void Matrix(const std::string& name, int64_t rows, int64_t columns) {
    static constexpr TrunkFormat kFormats[] = {TrunkFormat::kF32, TrunkFormat::kQ8G,
                                               TrunkFormat::kQ4G, TrunkFormat::kF16,
                                               TrunkFormat::kQ3G};
    Add(name + ".weight", kFormats[trunk_.size() % 5], {rows, columns}, 0,
        1.2f / std::sqrt(static_cast<float>(columns)));
  }

  void Norm(const std::string& name, int64_t size) {
    const TrunkFormat format = trunk_.size() % 4 == 0 ? TrunkFormat::kF16 : TrunkFormat::kF32;
    Add(name + ".weight", format, {size}, 1, 0.3f);
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
    IsTinyMla(o_, layer) ? Mla(p + "self_attn.") : Kda(p + "self_attn.");
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

  const TinyModelOptions& o_;
  TinyTrunk trunk_;
};

// The values are drawn whole, so that what a test changes in one tensor leaves the others alone.
inline void AddTinyWeights(const std::string& name, const TinyWeights& weights, uint32_t seed,
                           ContainerWriter& writer) {
  uint32_t hash = seed;
  for (const char c : name) hash = hash * 31 + static_cast<uint8_t>(c);
  std::mt19937 random(hash);
  const int64_t columns = weights.shape.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < weights.shape.size(); ++i) rows *= weights.shape[i];
  std::vector<float> values = RandomWeights(rows * columns, random);
  for (size_t i = 0; i < values.size(); ++i) {
    const bool padding = weights.zeros_from >= 0 && static_cast<int64_t>(i) >= weights.zeros_from;
    values[i] = padding ? 0.0f : weights.mean + weights.spread * values[i];
  }
  const int64_t row_bytes = TrunkRowBytes(weights.format, columns);
  const int64_t scale_bytes = IsQuantised(weights.format) ? 2 * TrunkRowGroups(columns) : 0;
  std::vector<uint8_t> payload(static_cast<size_t>(rows * row_bytes));
  std::vector<uint8_t> scales(static_cast<size_t>(rows * scale_bytes));
  for (int64_t r = 0; r < rows; ++r)
    Require(EncodeTrunkRow(weights.format, std::span(values).subspan(r * columns, columns),
                           std::span(payload).subspan(r * row_bytes, row_bytes),
                           std::span(scales).subspan(r * scale_bytes, scale_bytes)));
  Require(writer.AddTrunk(name, weights.format, weights.shape, payload, scales));
}

inline void AddTinyBank(int32_t layer, const TinyModelOptions& o, std::mt19937& random,
                        ContainerWriter& writer) {
  const ExpertDims dims{.inner = o.inner, .outer = o.latent > 0 ? o.latent : o.hidden};
  int64_t base = -1;
  for (int32_t book = 0; book < 3 * o.codec.stages; ++book) {
    const int64_t number =
        Require(writer.AddCodebook(RandomWeights(o.codec.entries * kVectorSize, random)));
    if (book == 0) base = number;
  }
  Require(writer.BeginBank(layer, base, o.codec));
  for (int64_t e = 0; e < o.experts; ++e) {
    EncodedExpert expert = RandomExpert(o.codec, dims, random);
    for (auto* scales : {&expert.gate_scales, &expert.up_scales, &expert.down_scales})
      for (size_t i = 0; i < scales->size(); i += 2)
        StoreLittle(scales->data() + i, FloatToHalf(0.12f + 0.04f * RandomWeight(random)), 2);
    Require(writer.AddExpert(expert));
  }
  Require(writer.EndBank());
}

class TinyModel {
 public:
  // `change` may alter, add or drop tensors; `change_config` the config.
  explicit TinyModel(const TinyModelOptions& options,
                     const std::function<void(TinyTrunk&)>& change = {},
                     const std::function<void(nlohmann::ordered_json&)>& change_config = {})
      : options_(options) {
    TinyTrunk trunk = TinyTrunkList(options_).trunk();
    if (change) change(trunk);
    nlohmann::ordered_json config = TinyConfig(options_);
    if (change_config) change_config(config);
    const auto writer = Require(ContainerWriter::Create(folder_.path()));
    for (const auto& [name, weights] : trunk) AddTinyWeights(name, weights, options_.seed, *writer);
    std::mt19937 random(options_.seed);
    for (int64_t layer = options_.first_moe_layer; layer < options_.layers; ++layer)
      AddTinyBank(static_cast<int32_t>(layer), options_, random, *writer);
    const std::string ranks = "IQ== 0\n";
    Require(writer->AddFile("tokenizer.model", std::vector<uint8_t>(ranks.begin(), ranks.end())));
    Require(writer->AddSpecials({{1, "[BOS]"}}));
    Require(writer->Finish(options_.k3 ? "kimi-k3" : "kimi-linear", TinyPrefix(options_), config));
  }

  const TinyModelOptions& options() const { return options_; }
  const std::string& path() const { return folder_.path(); }

  std::unique_ptr<Container> Open() const {
    auto container = Require(Container::Open(folder_.path(), IoMode::kBuffered));
    Require(container->SetExpertDims(
        {options_.inner, options_.latent > 0 ? options_.latent : options_.hidden}));
    return container;
  }

 private:
  TinyModelOptions options_;
  TemporaryPath folder_;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_TINY_MODEL_H_
