// SPDX-License-Identifier: Apache-2.0
//
// The shape of a model without its weights: what a config.json of the family says, and every tensor
// that the trunk then has, with the spread of values that keeps activations finite. For containers
// of random weights, true in shape, with which speed and memory are measured and the engine is
// tested. Pure functions; any thread.

#ifndef WASTE_CORE_MODEL_SYNTHETIC_MODEL_H_
#define WASTE_CORE_MODEL_SYNTHETIC_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "quant/expert_format.h"
#include "quant/trunk_format.h"

namespace waste {

struct SyntheticModel {
  bool k3 = false;  // Kimi K3, else Kimi-Linear
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

  std::string prefix() const { return k3 ? "language_model." : ""; }
  std::string arch() const { return k3 ? "kimi-k3" : "kimi-linear"; }
  bool is_mla(int64_t layer) const;  // from zero
  int64_t expert_outer() const { return latent > 0 ? latent : hidden; }
};

// "kimi-linear-48b", "k3", "mini". Errors: kArgument, listing them.
Result<SyntheticModel> SyntheticModelNamed(std::string_view name);

// The same with fewer layers or experts, at true width; 0 keeps the number. Errors: kArgument (more
// than the shape has, or fewer experts than a token uses).
Result<SyntheticModel> CutDown(SyntheticModel model, int64_t layers, int64_t experts);

nlohmann::ordered_json SyntheticConfig(const SyntheticModel& model);

// A tensor's format, shape and values: value = mean + spread * uniform(-1, 1).
struct SyntheticTensor {
  TrunkFormat format = TrunkFormat::kF32;
  std::vector<int64_t> shape;
  float mean = 0;
  float spread = 0;
  int64_t zeros_from = -1;  // padding from this value on
};

using SyntheticTrunk = std::map<std::string, SyntheticTensor>;

// Of the `number`-th tensor of the list; norms are vectors, the others matrices.
struct FormatChoice {
  std::function<TrunkFormat(size_t number, int64_t elements)> matrix;
  std::function<TrunkFormat(size_t number)> norm;
};

SyntheticTrunk SyntheticTrunkOf(const SyntheticModel& model, const FormatChoice& formats);

}  // namespace waste

#endif  // WASTE_CORE_MODEL_SYNTHETIC_MODEL_H_
