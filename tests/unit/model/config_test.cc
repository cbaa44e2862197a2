// SPDX-License-Identifier: Apache-2.0
//
// Every key of the config: what it means, what its absence means, and what a wrong value gets.

#include "model/config.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/tiny_model.h"

namespace waste {
namespace {

using Json = nlohmann::ordered_json;

// The manifest of a tiny model, as its container would hold it.
Manifest ManifestOf(const TinyModelOptions& options) {
  Manifest manifest;
  manifest.arch = options.k3 ? "kimi-k3" : "kimi-linear";
  manifest.tensor_prefix = options.prefix();
  manifest.config = SyntheticConfig(options);
  manifest.has_experts = true;
  for (int64_t layer = options.first_moe_layer; layer < options.layers; ++layer)
    manifest.layers[static_cast<int32_t>(layer)] = {
        .file = "bank", .experts = options.experts, .bytes = 4096 * options.experts};
  return manifest;
}

ModelConfig Parsed(const Manifest& manifest) { return Require(ParseModelConfig(manifest, false)); }

// `path` is a JSON pointer into the config; a discarded value removes the key.
struct Change {
  const char* path;
  Json value;
};

const Json kAbsent = Json(Json::value_t::discarded);

void Apply(const Change& change, Json& config) {
  const Json::json_pointer at(change.path);
  if (!change.value.is_discarded()) {
    config[at] = change.value;
    return;
  }
  Json& parent = at.parent_pointer().empty() ? config : config[at.parent_pointer()];
  parent.erase(at.back());
}

Status StatusOf(const TinyModelOptions& options, const std::vector<Change>& changes) {
  Manifest manifest = ManifestOf(options);
  for (const Change& change : changes) Apply(change, manifest.config);
  return ParseModelConfig(manifest, false).status();
}

ModelConfig ParsedWith(const TinyModelOptions& options, const std::vector<Change>& changes) {
  Manifest manifest = ManifestOf(options);
  for (const Change& change : changes) Apply(change, manifest.config);
  return Parsed(manifest);
}

BOOST_AUTO_TEST_SUITE(config)

BOOST_AUTO_TEST_CASE(kimi_linear_is_read_key_by_key) {
  const ModelConfig c = Parsed(ManifestOf(TinyKimiLinear()));
  BOOST_TEST(c.prefix == "");
  BOOST_TEST(c.layers == 5);
  BOOST_TEST(c.hidden == 136);
  BOOST_TEST(c.vocab == 67);
  BOOST_TEST(c.dense_inner == 70);
  BOOST_TEST(c.first_moe_layer == 1);
  BOOST_TEST(c.norm_eps == 1e-5f);
  BOOST_CHECK(c.activation == Activation::kSilu);
  BOOST_TEST(c.attn_res_block == 0);
  BOOST_TEST(c.kda.heads == 2);
  BOOST_TEST(c.kda.head_dim == 12);
  BOOST_TEST(c.kda.conv_size == 4);
  BOOST_TEST(!c.kda.has_lower_bound);
  BOOST_TEST(!c.kda.full_rank_gate);
  BOOST_TEST(c.mla.heads == 3);
  BOOST_TEST(c.mla.q_lora_rank == 0);
  BOOST_TEST(c.mla.cache_width() == 24);
  BOOST_TEST(c.mla.nope_dim == 6);
  BOOST_TEST(c.mla.v_dim == 5);
  BOOST_TEST(!c.mla.output_gate);
  BOOST_TEST(c.moe.experts == 7);
  BOOST_TEST(c.moe.top_k == 3);
  BOOST_TEST(c.moe.inner == 72);
  BOOST_TEST(c.moe.latent == 0);
  BOOST_TEST(c.moe.shared_experts == 1);
  BOOST_TEST(c.moe.scale == 2.446f);
  BOOST_TEST(c.moe.renormalise);
  BOOST_TEST(c.expert_outer() == 136);
  BOOST_CHECK(c.eos == std::vector<int32_t>{2});
  BOOST_TEST(c.max_context == 0);
}

BOOST_AUTO_TEST_CASE(kimi_k3_is_read_key_by_key) {
  const ModelConfig c = Parsed(ManifestOf(TinyK3()));
  BOOST_TEST(c.prefix == "language_model.");
  BOOST_CHECK(c.activation == Activation::kSitu);
  BOOST_TEST(c.situ_beta == 4.0f);
  BOOST_TEST(c.situ_linear_beta == 25.0f);
  BOOST_TEST(c.attn_res_block == 3);
  BOOST_TEST(c.kda.has_lower_bound);
  BOOST_TEST(c.kda.lower_bound == -5.0f);
  BOOST_TEST(c.kda.full_rank_gate);
  BOOST_TEST(c.mla.q_lora_rank == 18);
  BOOST_TEST(c.mla.output_gate);
  BOOST_TEST(c.moe.latent == 40);
  BOOST_TEST(c.moe.latent_norm);
  BOOST_TEST(c.moe.shared_experts == 2);
  BOOST_TEST(c.expert_outer() == 40);
}

BOOST_AUTO_TEST_CASE(kda_layers_count_from_one) {
  const ModelConfig c = Parsed(ManifestOf(TinyKimiLinear()));  // MLA is layer 3 and 5 of 5
  for (int64_t layer = 0; layer < 5; ++layer)
    BOOST_CHECK((c.attention[layer] == AttentionKind::kMla) == (layer == 2 || layer == 4));
}

BOOST_AUTO_TEST_CASE(booleans_are_read_by_value_and_absent_is_false) {
  struct {
    const char* path;
    bool (*of)(const ModelConfig&);
  } const kFlags[] = {
      {"/moe_renormalize", [](const ModelConfig& c) { return c.moe.renormalise; }},
      {"/latent_moe_use_norm", [](const ModelConfig& c) { return c.moe.latent_norm; }},
      {"/mla_use_output_gate", [](const ModelConfig& c) { return c.mla.output_gate; }},
      {"/linear_attn_config/use_full_rank_gate",
       [](const ModelConfig& c) { return c.kda.full_rank_gate; }},
  };
  for (const auto& flag : kFlags) {
    BOOST_TEST_CONTEXT(flag.path) {
      BOOST_TEST(flag.of(ParsedWith(TinyK3(), {{flag.path, true}})));
      BOOST_TEST(!flag.of(ParsedWith(TinyK3(), {{flag.path, false}})));
      BOOST_TEST(!flag.of(ParsedWith(TinyK3(), {{flag.path, nullptr}})));
      BOOST_TEST(!flag.of(ParsedWith(TinyK3(), {{flag.path, kAbsent}})));
      for (const Json& wrong : {Json(1), Json("true"), Json::array()})
        BOOST_CHECK(StatusOf(TinyK3(), {{flag.path, wrong}}).code() == Code::kFormat);
    }
  }
}

BOOST_AUTO_TEST_CASE(required_key_that_is_missing_or_of_another_type_is_named) {
  for (const char* path :
       {"/num_hidden_layers", "/hidden_size", "/vocab_size", "/intermediate_size",
        "/first_k_dense_replace", "/num_attention_heads", "/kv_lora_rank", "/qk_nope_head_dim",
        "/qk_rope_head_dim", "/v_head_dim", "/num_experts", "/num_experts_per_token",
        "/moe_intermediate_size", "/activation_situ_beta", "/linear_attn_config/num_heads",
        "/linear_attn_config/head_dim"}) {
    for (const Json& value : {kAbsent, Json(nullptr), Json("7"), Json(true), Json::object()}) {
      const Status status = StatusOf(TinyK3(), {{path, value}});
      BOOST_TEST_CONTEXT(path) {
        BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(Code::kFormat));
        const std::string key = std::string(path).substr(std::string(path).rfind('/') + 1);
        BOOST_TEST(status.message().find(key) != std::string::npos);
      }
    }
    if (std::string(path) == "/activation_situ_beta") continue;
    BOOST_CHECK(StatusOf(TinyK3(), {{path, 7.5}}).code() == Code::kFormat);
  }
}

BOOST_AUTO_TEST_CASE(number_out_of_bounds_is_refused) {
  const uint64_t huge = UINT64_MAX;
  const std::vector<Change> cases = {
      {"/num_hidden_layers", 0},
      {"/num_hidden_layers", 129},
      {"/num_hidden_layers", huge},
      {"/hidden_size", 0},
      {"/hidden_size", -8},
      {"/hidden_size", (1 << 20) + 8},
      {"/hidden_size", huge},
      {"/vocab_size", int64_t{1} << 40},
      {"/vocab_size", 0},
      {"/intermediate_size", 0},
      {"/first_k_dense_replace", -1},
      {"/num_attention_heads", 0},
      {"/num_attention_heads", 1 << 20},
      {"/qk_rope_head_dim", -4},
      {"/v_head_dim", (1 << 20) + 1},
      {"/q_lora_rank", -1},
      {"/num_experts", 0},
      {"/num_experts", 3},  // fewer than top k
      {"/num_experts", (1 << 16) + 1},
      {"/num_experts_per_token", 0},
      {"/num_experts_per_token", 65},
      {"/num_experts_per_token", 10},
      {"/moe_intermediate_size", 70},  // no multiple of eight
      {"/routed_expert_hidden_size", 41},
      {"/routed_expert_hidden_size", -40},
      {"/num_shared_experts", 65},
      {"/num_shared_experts", -1},
      {"/routed_scaling_factor", -1.0},
      {"/routed_scaling_factor", 1e300},
      {"/rms_norm_eps", 0.0},
      {"/rms_norm_eps", -1e-5},
      {"/attn_res_block_size", 129},
      {"/attn_res_block_size", -1},
      {"/activation_situ_beta", 0.0},
      {"/activation_situ_linear_beta", -1.0},
      {"/max_position_embeddings", -1},
      {"/eos_token_id", 67},
      {"/eos_token_id", -1},
      {"/eos_token_id", huge},
      {"/linear_attn_config/num_heads", 0},
      {"/linear_attn_config/num_heads", 1 << 20},
      {"/linear_attn_config/head_dim", huge},
      {"/linear_attn_config/short_conv_kernel_size", 0},
      {"/linear_attn_config/short_conv_kernel_size", 65},
      {"/linear_attn_config/gate_lower_bound", 5.0},
      {"/linear_attn_config/kda_layers", {0}},
      {"/linear_attn_config/kda_layers", {8}},
      {"/linear_attn_config/kda_layers", {huge}},
      {"/linear_attn_config/kda_layers", {2, 3, 2}},
      {"/linear_attn_config/kda_layers", {"2"}},
      {"/linear_attn_config/kda_layers", {2.5}},
  };
  for (const Change& change : cases) {
    const Status status = StatusOf(TinyK3(), {change});
    BOOST_TEST_CONTEXT(change.path << " = " << change.value << ": " << status.message()) {
      BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(Code::kCorrupt));
    }
  }
}

BOOST_AUTO_TEST_CASE(containers_of_another_type_are_refused) {
  const std::vector<Change> cases = {
      {"/linear_attn_config", 3},
      {"/linear_attn_config", Json::array()},
      {"/linear_attn_config/kda_layers", 1},
      {"/hidden_act", 1},
      {"/eos_token_id", "two"},
      {"/eos_token_id", {2, "three"}},
      {"/rms_norm_eps", "small"},
      {"/mla_use_nope", "yes"},
  };
  for (const Change& change : cases) {
    BOOST_TEST_CONTEXT(change.path) {
      BOOST_CHECK(StatusOf(TinyK3(), {change}).code() == Code::kFormat);
    }
  }
  Manifest manifest = ManifestOf(TinyK3());
  for (const Json& config : {Json(), Json::array(), Json("config")}) {
    manifest.config = config;
    BOOST_CHECK(ParseModelConfig(manifest, false).status().code() == Code::kFormat);
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_built_is_refused_and_not_ignored) {
  const std::vector<Change> cases = {
      {"/mla_use_nope", false},
      {"/moe_router_activation_func", "softmax"},
      {"/scoring_func", "softmax"},
      {"/num_expert_group", 8},
      {"/n_group", 8},
      {"/num_expert_group", 0},
      {"/moe_layer_freq", 2},
      {"/tie_word_embeddings", true},
      {"/attention_bias", true},
      {"/hidden_act", "gelu"},
      {"/index_topk", 2048},
      {"/hc_mult", 4},
  };
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    for (const Change& change : cases) {
      const std::vector<Change> changes = {
          {"/moe_router_activation_func", kAbsent}, {"/num_expert_group", kAbsent}, change};
      BOOST_TEST_CONTEXT(change.path << " = " << change.value) {
        BOOST_CHECK(StatusOf(options, changes).code() == Code::kUnsupported);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(missing_rope_flag_means_none_for_kimi_and_is_refused_for_others) {
  Manifest manifest = ManifestOf(TinyKimiLinear());
  manifest.config.erase("mla_use_nope");
  BOOST_TEST(ParseModelConfig(manifest, false).ok());
  manifest.arch = "KimiLinearForCausalLM";
  manifest.config["architectures"] = {"KimiLinearForCausalLM"};
  BOOST_TEST(ParseModelConfig(manifest, false).ok());
  manifest.config.erase("architectures");
  manifest.config["model_type"] = "kimi_linear";
  BOOST_TEST(ParseModelConfig(manifest, false).ok());

  manifest.arch = "deepseek_v3";
  manifest.config["model_type"] = "deepseek_v3";
  BOOST_CHECK(ParseModelConfig(manifest, false).status().code() == Code::kUnsupported);
  manifest.config["mla_use_nope"] = false;
  BOOST_CHECK(ParseModelConfig(manifest, false).status().code() == Code::kUnsupported);
  manifest.config["mla_use_nope"] = true;
  BOOST_TEST(ParseModelConfig(manifest, false).ok());
}

BOOST_AUTO_TEST_CASE(optional_keys_have_their_defaults) {
  const ModelConfig c =
      ParsedWith(TinyKimiLinear(), {{"/rms_norm_eps", kAbsent},
                                    {"/routed_scaling_factor", kAbsent},
                                    {"/num_shared_experts", kAbsent},
                                    {"/hidden_act", kAbsent},
                                    {"/eos_token_id", kAbsent},
                                    {"/moe_router_activation_func", kAbsent},
                                    {"/num_expert_group", kAbsent},
                                    {"/linear_attn_config/short_conv_kernel_size", kAbsent}});
  BOOST_TEST(c.norm_eps == 1e-5f);
  BOOST_TEST(c.moe.scale == 1.0f);
  BOOST_TEST(c.moe.shared_experts == 0);
  BOOST_CHECK(c.activation == Activation::kSilu);
  BOOST_TEST(c.eos.empty());
  BOOST_TEST(c.kda.conv_size == 4);
}

BOOST_AUTO_TEST_CASE(aliases_of_other_releases_are_accepted) {
  const ModelConfig c = ParsedWith(TinyKimiLinear(), {{"/num_experts", kAbsent},
                                                      {"/n_routed_experts", 7},
                                                      {"/num_experts_per_token", kAbsent},
                                                      {"/num_experts_per_tok", 2},
                                                      {"/num_shared_experts", kAbsent},
                                                      {"/n_shared_experts", 3},
                                                      {"/moe_renormalize", kAbsent},
                                                      {"/norm_topk_prob", true},
                                                      {"/model_max_length", 4096}});
  BOOST_TEST(c.moe.experts == 7);
  BOOST_TEST(c.moe.top_k == 2);
  BOOST_TEST(c.moe.shared_experts == 3);
  BOOST_TEST(c.moe.renormalise);
  BOOST_TEST(c.max_context == 4096);
}

BOOST_AUTO_TEST_CASE(eos_may_be_a_list_and_may_stand_outside) {
  const auto eos = [](const std::vector<Change>& changes) {
    return ParsedWith(TinyK3(), changes).eos;
  };
  BOOST_CHECK(eos({{"/eos_token_id", {3, 5}}}) == (std::vector<int32_t>{3, 5}));
  BOOST_CHECK(eos({{"/eos_token_id", kAbsent}, {"/_outer", {{"eos_token_id", 9}}}}) ==
              std::vector<int32_t>{9});
  BOOST_CHECK(eos({{"/_outer", {{"eos_token_id", 9}}}}) == std::vector<int32_t>{2});
  BOOST_CHECK(eos({{"/eos_token_id", Json::array()}}).empty());
  BOOST_CHECK(StatusOf(TinyK3(), {{"/eos_token_id", {3, 67}}}).code() == Code::kCorrupt);
}

BOOST_AUTO_TEST_CASE(chat_kind_follows_family_and_file) {
  const auto kind = [](const std::string& arch, const Json& outer, bool has_chat) {
    Manifest manifest = ManifestOf(TinyKimiLinear());
    manifest.arch = arch;
    manifest.config["_outer"] = outer;
    return Require(ParseModelConfig(manifest, has_chat)).chat;
  };
  const Json k3 = {{"architectures", {"KimiK3ForConditionalGeneration"}}};
  BOOST_CHECK(kind("kimi-linear", Json::object(), false) == ChatKind::kNone);
  BOOST_CHECK(kind("kimi-linear", Json::object(), true) == ChatKind::kTable);
  BOOST_CHECK(kind("kimi-k3", Json::object(), false) == ChatKind::kK3);
  BOOST_CHECK(kind("whatever", k3, true) == ChatKind::kK3);
  BOOST_CHECK(kind("whatever", 5, true) == ChatKind::kTable);
}

BOOST_AUTO_TEST_CASE(each_layer_with_experts_needs_its_bank) {
  Manifest manifest = ManifestOf(TinyK3());
  manifest.layers.erase(4);
  const Status missing = ParseModelConfig(manifest, false).status();
  BOOST_CHECK(missing.code() == Code::kCorrupt);
  BOOST_TEST(missing.message() == "manifest.json: layer 4 has experts but no bank");
  manifest = ManifestOf(TinyK3());
  manifest.layers[2].experts = 8;
  BOOST_TEST(ParseModelConfig(manifest, false).status().message() ==
             "manifest.json: bank 2 holds 8 experts, config.num_experts is 9");
}

BOOST_AUTO_TEST_CASE(dense_model_needs_no_expert_keys) {
  Manifest manifest = ManifestOf(TinyKimiLinear());
  manifest.layers.clear();
  manifest.config["first_k_dense_replace"] = 5;
  manifest.config.erase("num_experts");
  manifest.config.erase("num_experts_per_token");
  const ModelConfig c = Parsed(manifest);
  for (int64_t layer = 0; layer < 5; ++layer) BOOST_TEST(!c.is_moe(layer));
}

BOOST_AUTO_TEST_CASE(model_of_one_kind_of_attention_needs_no_keys_of_the_other) {
  ModelConfig c = ParsedWith(TinyKimiLinear(), {{"/linear_attn_config", kAbsent}});
  BOOST_TEST(std::count(c.attention.begin(), c.attention.end(), AttentionKind::kMla) == 5);
  c = ParsedWith(TinyKimiLinear(), {{"/linear_attn_config/kda_layers", {1, 2, 3, 4, 5}},
                                    {"/kv_lora_rank", kAbsent},
                                    {"/num_attention_heads", kAbsent}});
  BOOST_TEST(std::count(c.attention.begin(), c.attention.end(), AttentionKind::kKda) == 5);
}

BOOST_AUTO_TEST_CASE(hostile_value_is_not_repeated_at_length) {
  const Status status = StatusOf(TinyK3(), {{"/hidden_size", std::string(100000, 'x')}});
  BOOST_TEST(status.message().size() < 200);
  BOOST_TEST(StatusOf(TinyK3(), {{"/hidden_act", std::string(100000, 'x')}}).message().size() <
             200);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
