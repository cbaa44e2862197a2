// SPDX-License-Identifier: Apache-2.0
//
// Small random checkpoints in the layout of a Hugging Face release, written by code that shares
// nothing with the reader: safetensors, config.json, a rank file of single bytes and a few merges,
// tokenizer_config.json. For tests of conversion; sizes are awkward on purpose. One thread.

#ifndef WASTE_TESTS_SUPPORT_TINY_CHECKPOINT_H_
#define WASTE_TESTS_SUPPORT_TINY_CHECKPOINT_H_

#include <bit>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_folder.h"

namespace waste {

// The bytes of a safetensors file, tensor by tensor.
class SafetensorsText {
 public:
  void Add(const std::string& name, const std::string& type, const std::vector<int64_t>& shape,
           const std::string& bytes) {
    const size_t begin = data_.size();
    data_ += bytes;
    header_[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, data_.size()}}};
  }
  std::string Text() const { return WithHeader(header_.dump(), data_); }
  nlohmann::ordered_json& header() { return header_; }
  const std::string& data() const { return data_; }

  static std::string WithHeader(const std::string& header, const std::string& data) {
    std::string text;
    for (int i = 0; i < 8; ++i) text += static_cast<char>(header.size() >> (8 * i) & 255);
    return text + header + data;
  }

 private:
  nlohmann::ordered_json header_ = {{"__metadata__", {{"format", "pt"}}}};
  std::string data_;
};

// f32 bits as the low `bytes` little-endian bytes.
inline std::string LittleEndian(uint32_t bits, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(bits >> (8 * i) & 255);
  return text;
}

inline std::string AsF32(const std::vector<float>& values) {
  std::string text;
  for (const float value : values) text += LittleEndian(std::bit_cast<uint32_t>(value), 4);
  return text;
}

// Truncated: the values need not be the nearest ones.
inline std::string AsBf16(const std::vector<float>& values) {
  std::string text;
  for (const float value : values) text += LittleEndian(std::bit_cast<uint32_t>(value) >> 16, 2);
  return text;
}

struct TinyCheckpointOptions {
  bool k3 = false;  // else Kimi-Linear
  bool deep_seek_names = false;
  bool bf16 = true;
  bool vision = false;
  int32_t shards = 1;
  uint32_t seed = 1;
};

class TinyCheckpoint {
 public:
  static constexpr int64_t kHidden = 40, kVocab = 300, kExperts = 3, kInner = 24, kLatent = 16;
  static constexpr int64_t kRanks = 259;

  explicit TinyCheckpoint(const TinyCheckpointOptions& options)
      : options_(options), random_(options.seed) {
    AddTensors();
    WriteTensors();
    Write("config.json", Config().dump(1));
    Write("tiktoken.model", RankFile());
    Write("tokenizer_config.json", TokenizerConfig().dump(1));
  }

  const std::string& path() const { return folder_.path(); }
  std::string PathOf(const std::string& name) const { return folder_.PathOf(name); }
  void Write(const std::string& name, const std::string& text) { folder_.Write(name, text); }

  // The values of a tensor as the file holds them, by its name in the checkpoint.
  const std::map<std::string, std::vector<float>>& values() const { return values_; }
  std::string prefix() const { return options_.k3 ? "language_model." : ""; }

  nlohmann::ordered_json Config() const {
    nlohmann::ordered_json text = {{"model_type", "kimi_linear"},
                                   {"vocab_size", kVocab},
                                   {"hidden_size", kHidden},
                                   {"num_hidden_layers", 2},
                                   {"num_attention_heads", 2},
                                   {"intermediate_size", 48},
                                   {"first_k_dense_replace", 1},
                                   {"kv_lora_rank", 16},
                                   {"q_lora_rank", nullptr},
                                   {"qk_nope_head_dim", 8},
                                   {"qk_rope_head_dim", 4},
                                   {"v_head_dim", 8},
                                   {"mla_use_nope", true},
                                   {"num_experts_per_token", 2},
                                   {"moe_intermediate_size", kInner},
                                   {"num_shared_experts", 1},
                                   {"moe_router_activation_func", "sigmoid"},
                                   {"routed_scaling_factor", 1.5},
                                   {"rms_norm_eps", 1e-5},
                                   {"eos_token_id", 260}};
    text["linear_attn_config"] = {{"num_heads", 2},
                                  {"head_dim", 8},
                                  {"short_conv_kernel_size", 4},
                                  {"kda_layers", {1}},
                                  {"full_attn_layers", {2}}};
    text[options_.deep_seek_names ? "n_routed_experts" : "num_experts"] = kExperts;
    text[options_.deep_seek_names ? "norm_topk_prob" : "moe_renormalize"] = true;
    if (!options_.k3) {
      text["architectures"] = {"KimiLinearForCausalLM"};
      text["hidden_act"] = "silu";
      return text;
    }
    text["routed_expert_hidden_size"] = kLatent;
    text["latent_moe_use_norm"] = true;
    text["attn_res_block_size"] = 1;
    text["hidden_act"] = "situ";
    text["activation_situ_beta"] = 4.0;
    text["activation_situ_linear_beta"] = 25.0;
    text["linear_attn_config"]["gate_lower_bound"] = -5.0;
    text["linear_attn_config"]["use_full_rank_gate"] = true;
    return {{"architectures", {"KimiK3ForConditionalGeneration"}},
            {"model_type", "kimi_k3"},
            {"text_config", text}};
  }

  static std::string RankFile() {
    constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      text += kDigits[byte >> 2];
      text += kDigits[byte << 4 & 63];
      text += "== " + std::to_string(byte) + "\n";
    }
    return text + "aGU= 256\nbGw= 257\naGVsbA== 258\n";  // he, ll, hell
  }

 private:
  nlohmann::ordered_json TokenizerConfig() const {
    const std::vector<std::string> k3 = {"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"};
    const std::vector<std::string> linear = {"<|im_system|>", "<|im_user|>", "<|im_assistant|>",
                                             "<|im_middle|>", "<|im_end|>"};
    nlohmann::ordered_json added = {{"260", {{"content", "[EOS]"}, {"special", true}}}};
    int64_t id = 270;
    for (const std::string& text : options_.k3 ? k3 : linear)
      added[std::to_string(id++)] = {{"content", text}, {"special", true}};
    return {{"added_tokens_decoder", added}};
  }

  void Add(const std::string& name, const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    std::normal_distribution<float> normal(0, 0.1f);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
      value = normal(random_);
      if (options_.bf16) value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xFFFF0000u);
    }
    shapes_.emplace_back(name, shape);
    values_[name] = std::move(values);
  }

  void AddTensors() {
    const std::string model = prefix() + "model.", layer = model + "layers.1.";
    const std::string moe = layer + (options_.deep_seek_names ? "mlp." : "block_sparse_moe.");
    Add(model + "embed_tokens.weight", {kVocab, kHidden});
    Add(model + "norm.weight", {kHidden});
    Add(prefix() + "lm_head.weight", {kVocab, kHidden});
    Add(model + "layers.0.self_attn.q_conv1d.weight", {16, 1, 4});
    Add(model + "layers.0.self_attn.A_log", {1, 1, 2, 1});
    Add(model + "layers.0.mlp.gate_proj.weight", {48, kHidden});
    Add(layer + "self_attn.o_proj.weight", {kHidden, 16});
    Add(moe + "gate.weight", {kExperts, kHidden});
    Add(moe + "shared_experts.up_proj.weight", {kInner, kHidden});
    const int64_t outer = options_.k3 ? kLatent : kHidden;
    const char* kimi[] = {"w1", "w3", "w2"};
    const char* deep_seek[] = {"gate_proj", "up_proj", "down_proj"};
    for (int64_t e = 0; e < kExperts; ++e) {
      for (int kind = 0; kind < 3; ++kind) {
        const std::string name = options_.deep_seek_names ? deep_seek[kind] : kimi[kind];
        Add(moe + "experts." + std::to_string(e) + "." + name + ".weight",
            kind == 2 ? std::vector<int64_t>{outer, kInner} : std::vector<int64_t>{kInner, outer});
      }
    }
    if (!options_.vision) return;
    Add("vision_tower.patch_embed.proj.weight", {8, 12});
    Add("mm_projector.proj.0.weight", {8, 8});
  }

  void WriteTensors() {
    std::vector<SafetensorsText> files(static_cast<size_t>(options_.shards));
    nlohmann::ordered_json index = {{"weight_map", nlohmann::ordered_json::object()}};
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const auto& [name, shape] = shapes_[i];
      const size_t shard = i % files.size();
      const std::vector<float>& values = values_[name];
      files[shard].Add(name, options_.bf16 ? "BF16" : "F32", shape,
                       options_.bf16 ? AsBf16(values) : AsF32(values));
      index["weight_map"][name] = ShardName(shard);
    }
    for (size_t i = 0; i < files.size(); ++i) Write(ShardName(i), files[i].Text());
    if (options_.shards > 1) Write("model.safetensors.index.json", index.dump());
  }

  std::string ShardName(size_t shard) const {
    return options_.shards == 1 ? "model.safetensors"
                                : "model-0000" + std::to_string(shard + 1) + ".safetensors";
  }

  TinyCheckpointOptions options_;
  std::mt19937 random_;
  TemporaryFolder folder_;
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes_;
  std::map<std::string, std::vector<float>> values_;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_TINY_CHECKPOINT_H_
