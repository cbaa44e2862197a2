// SPDX-License-Identifier: Apache-2.0
//
// Reads the config's keys (docs/format.md, "Manifest"), each with its type, its bounds and what its
// absence means. The first thing wrong is what the caller hears of; the reading goes on with a
// harmless value, so that the code below is a list and not a ladder. Null counts as absent.

#include "model/config.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

namespace waste {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxDimension = int64_t{1} << 20;
constexpr int64_t kMaxLayers = 128;
constexpr int64_t kMaxTopK = 64;
constexpr int64_t kMaxSharedExperts = 64;
constexpr int64_t kMaxConvSize = 64;
constexpr int64_t kMaxExperts = int64_t{1} << 16;  // a record holds its expert's number in 16 bits
constexpr int64_t kMaxContext = int64_t{1} << 31;

using Names = std::initializer_list<const char*>;  // a key, then its aliases

class Keys {
 public:
  Keys(const Json* object, std::string scope) : object_(object), scope_(std::move(scope)) {}

  const Status& status() const { return status_; }

  template <typename... Parts>
  void Fail(Code code, const Parts&... parts) {
    if (status_.ok()) status_ = Failure(code, "manifest.json: ", parts...);
  }

  // The first of `names` that is there and not null, or null.
  const Json* Find(Names names) const {
    if (object_ == nullptr || !object_->is_object()) return nullptr;
    for (const char* name : names) {
      const auto found = object_->find(name);
      if (found != object_->end() && !found->is_null()) return &*found;
    }
    return nullptr;
  }

  // An integer of low..high; without `absent` it must be there.
  int64_t Integer(Names names, int64_t low, int64_t high, std::optional<int64_t> absent = {}) {
    const Json* value = Find(names);
    if (value == nullptr) return absent.has_value() ? *absent : Missing(names, low);
    if (!value->is_number_integer()) return WrongType(names, *value, "an integer", low);
    const bool too_large = value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX;
    const int64_t number = too_large ? INT64_MAX : value->get<int64_t>();
    if (number >= low && number <= high) return number;
    Fail(Code::kCorrupt, Path(names), " is ", Print(*value), ", outside ", low, "..", high);
    return low;
  }

  int64_t Dimension(Names names) { return Integer(names, 1, kMaxDimension); }

  float Number(Names names, double low, double high, std::optional<double> absent = {}) {
    const Json* value = Find(names);
    if (value == nullptr)
      return static_cast<float>(absent.has_value() ? *absent : Missing(names, low));
    if (!value->is_number()) return static_cast<float>(WrongType(names, *value, "a number", low));
    const double number = value->get<double>();
    if (number >= low && number <= high) return static_cast<float>(number);  // false for NaN
    Fail(Code::kCorrupt, Path(names), " is ", Print(*value), ", outside ", low, "..", high);
    return static_cast<float>(low);
  }

  bool Flag(Names names) {
    const Json* value = Find(names);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return WrongType(names, *value, "true or false", false);
    return value->get<bool>();
  }

  std::string Text(Names names, const char* absent) {
    const Json* value = Find(names);
    if (value == nullptr) return absent;
    if (!value->is_string()) return WrongType(names, *value, "a string", std::string(absent));
    return value->get<std::string>();
  }

  std::string Path(Names names) const { return scope_ + "." + *names.begin(); }

  // For messages: hostile values may be long.
  static std::string Print(const Json& value) {
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 40) text = text.substr(0, 37) + "...";
    return text;
  }

 private:
  template <typename T>
  T Missing(Names names, T harmless) {
    Fail(Code::kFormat, Path(names), " is missing");
    return harmless;
  }

  template <typename T>
  T WrongType(Names names, const Json& value, const char* wanted, T harmless) {
    Fail(Code::kFormat, Path(names), " is ", Print(value), ", not ", wanted);
    return harmless;
  }

  const Json* object_;
  std::string scope_;
  Status status_;
};

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Whether some name that the release gives itself starts with one of `starts`.
bool IsOfFamily(const Manifest& manifest, const Keys& config, const Keys& outer,
                std::initializer_list<const char*> starts) {
  const auto matches = [&](const Json* name) {
    if (name == nullptr || !name->is_string()) return false;
    for (const char* start : starts)
      if (StartsWith(name->get_ref<const std::string&>(), start)) return true;
    return false;
  };
  for (const char* start : starts)
    if (manifest.arch == start) return true;
  for (const Keys* keys : {&config, &outer}) {
    if (matches(keys->Find({"model_type"}))) return true;
    const Json* architectures = keys->Find({"architectures"});
    if (architectures == nullptr || !architectures->is_array()) continue;
    for (const Json& name : *architectures)
      if (matches(&name)) return true;
  }
  return false;
}

// Switches of other families that this forward pass does not have: refused, never ignored.
void RefuseWhatIsNotBuilt(Keys& config, bool known_family) {
  const Json* no_rope = config.Find({"mla_use_nope"});
  if (no_rope == nullptr && !known_family) {
    config.Fail(Code::kUnsupported,
                "neither Kimi-Linear nor Kimi K3, and config.mla_use_nope does not say whether its "
                "attention rotates");
  } else if (no_rope != nullptr && !config.Flag({"mla_use_nope"})) {
    config.Fail(Code::kUnsupported, "config.mla_use_nope is ", Keys::Print(*no_rope),
                ": rotary attention is not built");
  }
  const std::string scores = config.Text({"moe_router_activation_func", "scoring_func"}, "sigmoid");
  if (scores != "sigmoid")
    config.Fail(Code::kUnsupported, "config.moe_router_activation_func is \"", scores,
                "\"; only \"sigmoid\" is built");
  for (const char* flag : {"tie_word_embeddings", "attention_bias"})
    if (config.Flag({flag})) config.Fail(Code::kUnsupported, "config.", flag, " is not built");
  for (const char* count : {"moe_layer_freq", "num_expert_group", "n_group"})
    if (const int64_t n = config.Integer({count}, 0, kMaxDimension, 1); n != 1)
      config.Fail(Code::kUnsupported, "config.", count, " is ", n, "; only 1 is built");
  for (const char* feature : {"index_topk", "index_kpool", "hc_mult"})
    if (config.Find({feature}) != nullptr)
      config.Fail(Code::kUnsupported, "config.", feature, " asks for what is not built");
}

void ReadActivation(Keys& config, ModelConfig& model) {
  const std::string name = config.Text({"hidden_act"}, "silu");
  if (name == "silu") {
    model.activation = Activation::kSilu;
  } else if (name == "situ") {
    model.activation = Activation::kSitu;
    model.situ_beta = config.Number({"activation_situ_beta"}, 1e-6, 1e6);
    model.situ_linear_beta = config.Number({"activation_situ_linear_beta"}, 0, 1e6, 0);
  } else {
    config.Fail(Code::kUnsupported, "config.hidden_act is \"", name.substr(0, 40),
                "\"; silu and situ are built");
  }
}

void ReadKda(Keys& linear, ModelConfig& model) {
  KdaConfig& kda = model.kda;
  kda.heads = linear.Dimension({"num_heads"});
  kda.head_dim = linear.Dimension({"head_dim"});
  kda.conv_size = linear.Integer({"short_conv_kernel_size"}, 1, kMaxConvSize, 4);
  kda.lower_bound = linear.Number({"gate_lower_bound"}, -1e4, 0, 0);
  kda.has_lower_bound = kda.lower_bound < 0;
  kda.full_rank_gate = linear.Flag({"use_full_rank_gate"});
  if (kda.heads * kda.head_dim > kMaxDimension)
    linear.Fail(Code::kCorrupt, linear.Path({"num_heads"}), " x head_dim is ", kda.width(),
                ", above ", kMaxDimension);
}

// kda_layers counts from one; what it does not name is MLA.
void ReadAttentionKinds(Keys& linear, ModelConfig& model) {
  model.attention.assign(static_cast<size_t>(model.layers), AttentionKind::kMla);
  const Json* layers = linear.Find({"kda_layers"});
  if (layers == nullptr) return;
  if (!layers->is_array()) {
    linear.Fail(Code::kFormat, linear.Path({"kda_layers"}), " is not a list");
    return;
  }
  for (const Json& number : *layers) {
    const bool in_range = number.is_number_integer() && number >= 1 && number <= model.layers;
    if (!in_range) {
      linear.Fail(Code::kCorrupt, linear.Path({"kda_layers"}), " has ", Keys::Print(number),
                  ", which is no layer of 1..", model.layers);
      return;
    }
    AttentionKind& kind = model.attention[number.get<size_t>() - 1];
    if (kind == AttentionKind::kKda) {
      linear.Fail(Code::kCorrupt, linear.Path({"kda_layers"}), " names layer ", Keys::Print(number),
                  " twice");
      return;
    }
    kind = AttentionKind::kKda;
  }
}

void ReadMla(Keys& config, ModelConfig& model) {
  MlaConfig& mla = model.mla;
  mla.heads = config.Dimension({"num_attention_heads"});
  mla.q_lora_rank = config.Integer({"q_lora_rank"}, 0, kMaxDimension, 0);
  mla.kv_lora_rank = config.Dimension({"kv_lora_rank"});
  mla.nope_dim = config.Dimension({"qk_nope_head_dim"});
  mla.rope_dim = config.Integer({"qk_rope_head_dim"}, 0, kMaxDimension);
  mla.v_dim = config.Dimension({"v_head_dim"});
  mla.output_gate = config.Flag({"mla_use_output_gate"});
  const int64_t widest = std::max(mla.nope_dim + mla.rope_dim, mla.nope_dim + mla.v_dim);
  if (mla.heads * widest > kMaxDimension)
    config.Fail(Code::kCorrupt, "config.num_attention_heads is ", mla.heads, " of ", widest,
                " values a head, together above ", kMaxDimension);
}

void ReadMoe(Keys& config, ModelConfig& model) {
  MoeConfig& moe = model.moe;
  moe.experts = config.Integer({"num_experts", "n_routed_experts"}, 1, kMaxExperts);
  moe.top_k = config.Integer({"num_experts_per_token", "num_experts_per_tok"}, 1, kMaxTopK);
  moe.inner = config.Dimension({"moe_intermediate_size"});
  moe.latent = config.Integer({"routed_expert_hidden_size"}, 0, kMaxDimension, 0);
  moe.latent_norm = config.Flag({"latent_moe_use_norm"});
  moe.shared_experts =
      config.Integer({"num_shared_experts", "n_shared_experts"}, 0, kMaxSharedExperts, 0);
  moe.scale = config.Number({"routed_scaling_factor"}, 0, 1e6, 1);
  moe.renormalise = config.Flag({"moe_renormalize", "norm_topk_prob"});
  if (moe.top_k > moe.experts)
    config.Fail(Code::kCorrupt, "config.num_experts_per_token is ", moe.top_k, " of ", moe.experts,
                " experts");
  if (moe.inner % kVectorSize != 0 || model.expert_outer() % kVectorSize != 0)
    config.Fail(Code::kCorrupt, "experts of ", moe.inner, " x ", model.expert_outer(),
                " cannot be stored: both must be multiples of ", kVectorSize);
  if (moe.inner * moe.shared_experts > kMaxDimension)
    config.Fail(Code::kCorrupt, "config.num_shared_experts is ", moe.shared_experts, " of ",
                moe.inner, ", together above ", kMaxDimension);
}

void CheckBanks(const Manifest& manifest, Keys& config, const ModelConfig& model) {
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    if (!model.is_moe(layer)) continue;
    const auto bank = manifest.layers.find(static_cast<int32_t>(layer));
    if (bank == manifest.layers.end())
      config.Fail(Code::kCorrupt, "layer ", layer, " has experts but no bank");
    else if (bank->second.experts != model.moe.experts)
      config.Fail(Code::kCorrupt, "bank ", layer, " holds ", bank->second.experts,
                  " experts, config.num_experts is ", model.moe.experts);
  }
}

// A number or a list of them, of the text model's config, else of the release's.
void ReadEos(Keys& config, const Keys& outer, ModelConfig& model) {
  const Json* eos = config.Find({"eos_token_id"});
  if (eos == nullptr) eos = outer.Find({"eos_token_id"});
  if (eos == nullptr) return;
  const auto add = [&](const Json& id) {
    if (!id.is_number_integer())
      config.Fail(Code::kFormat, "eos_token_id has ", Keys::Print(id), ", not an integer");
    else if (id < 0 || id >= model.vocab)
      config.Fail(Code::kCorrupt, "eos_token_id ", Keys::Print(id), " is no token of ",
                  model.vocab);
    else
      model.eos.push_back(id.get<int32_t>());
  };
  if (eos->is_array())
    for (const Json& id : *eos) add(id);
  else
    add(*eos);
}

}  // namespace

Result<ModelConfig> ParseModelConfig(const Manifest& manifest, bool has_chat) {
  if (!manifest.config.is_object())
    return Failure(Code::kFormat, "manifest.json: config is not an object");
  Keys config(&manifest.config, "config");
  const Keys outer(config.Find({"_outer"}), "config._outer");
  const Json* linear_config = config.Find({"linear_attn_config"});
  Keys linear(linear_config, "config.linear_attn_config");
  if (linear_config != nullptr && !linear_config->is_object())
    return Failure(Code::kFormat, "manifest.json: config.linear_attn_config is not an object");

  ModelConfig model;
  const bool is_k3 = IsOfFamily(manifest, config, outer, {"kimi-k3", "kimi_k3", "KimiK3"});
  const bool is_known =
      is_k3 || IsOfFamily(manifest, config, outer, {"kimi-linear", "kimi_linear", "KimiLinear"});
  RefuseWhatIsNotBuilt(config, is_known);
  model.prefix = manifest.tensor_prefix;
  model.layers = config.Integer({"num_hidden_layers"}, 1, kMaxLayers);
  model.hidden = config.Dimension({"hidden_size"});
  model.vocab = config.Dimension({"vocab_size"});
  model.first_moe_layer = config.Integer({"first_k_dense_replace"}, 0, kMaxLayers);
  if (model.first_moe_layer > 0) model.dense_inner = config.Dimension({"intermediate_size"});
  if (model.first_moe_layer < model.layers) ReadMoe(config, model);
  model.norm_eps = config.Number({"rms_norm_eps"}, 1e-12, 1, 1e-5);
  model.attn_res_block = config.Integer({"attn_res_block_size"}, 0, kMaxLayers, 0);
  model.max_context =
      config.Integer({"max_position_embeddings", "model_max_length"}, 0, kMaxContext, 0);
  ReadActivation(config, model);
  ReadAttentionKinds(linear, model);
  ReadEos(config, outer, model);
  for (const AttentionKind kind : {AttentionKind::kKda, AttentionKind::kMla}) {
    if (std::find(model.attention.begin(), model.attention.end(), kind) == model.attention.end())
      continue;
    kind == AttentionKind::kKda ? ReadKda(linear, model) : ReadMla(config, model);
  }
  if (config.status().ok()) CheckBanks(manifest, config, model);
  WASTE_TRY(config.status());
  WASTE_TRY(linear.status());
  model.chat = is_k3 ? ChatKind::kK3 : has_chat ? ChatKind::kTable : ChatKind::kNone;
  return model;
}

}  // namespace waste
