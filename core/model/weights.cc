// SPDX-License-Identifier: Apache-2.0
//
// Which tensors a model has, by the release's names, and their shapes. The list is walked twice by
// the same code: Measure checks and counts, Load reads.

#include "model/weights.h"

#include <cmath>

#include "base/checked.h"
#include "model/trunk_loader.h"

namespace waste {
namespace {

// norm * proj: what AttnRes scores values with.
Vector ResQuery(TrunkLoader& loader, const std::string& stem, int64_t hidden) {
  float* norm = loader.Vector(stem + "_norm.weight", hidden);
  const float* proj = loader.Vector(stem + "_proj.weight", hidden);
  if (loader.reading())
    for (int64_t i = 0; i < hidden; ++i) norm[i] *= proj[i];
  return norm;
}

// exp(A_log), one a head; the release pads the tensor.
Vector DecayRates(TrunkLoader& loader, const std::string& name, int64_t heads) {
  float* rates = loader.PaddedVector(name, heads);
  if (!loader.reading()) return rates;
  for (int64_t h = 0; h < heads; ++h) {
    rates[h] = std::exp(rates[h]);
    if (!std::isfinite(rates[h]))
      loader.Fail(
          Failure(Code::kCorrupt, "trunk tensor ", name, ": head ", h, " decays infinitely fast"));
  }
  return rates;
}

// One weight a channel and input; the release has [width, size].
Vector ConvWeights(TrunkLoader& loader, const std::string& name, int64_t width, int64_t size) {
  float* weights = loader.Vector(name, width * size);
  if (!loader.reading()) return weights;
  const std::vector<float> by_channel(weights, weights + width * size);
  for (int64_t c = 0; c < width; ++c)
    for (int64_t j = 0; j < size; ++j) weights[j * width + c] = by_channel[c * size + j];
  return weights;
}

KdaWeights LoadKda(TrunkLoader& loader, const ModelConfig& config, const std::string& p) {
  const KdaConfig& kda = config.kda;
  const int64_t width = kda.width(), hidden = config.hidden;
  KdaWeights w;
  w.q = loader.Matrix(p + "q_proj.weight", width, hidden);
  w.k = loader.Matrix(p + "k_proj.weight", width, hidden);
  w.v = loader.Matrix(p + "v_proj.weight", width, hidden);
  w.q_conv = ConvWeights(loader, p + "q_conv1d.weight", width, kda.conv_size);
  w.k_conv = ConvWeights(loader, p + "k_conv1d.weight", width, kda.conv_size);
  w.v_conv = ConvWeights(loader, p + "v_conv1d.weight", width, kda.conv_size);
  w.f_a = loader.Matrix(p + "f_a_proj.weight", kda.head_dim, hidden);
  w.f_b = loader.Matrix(p + "f_b_proj.weight", width, kda.head_dim);
  w.dt_bias = loader.Vector(p + "dt_bias", width);
  w.a = DecayRates(loader, p + "A_log", kda.heads);
  w.beta = loader.Matrix(p + "b_proj.weight", kda.heads, hidden);
  if (kda.full_rank_gate) {
    w.gate = loader.Matrix(p + "g_proj.weight", width, hidden);
  } else {
    w.gate_a = loader.Matrix(p + "g_a_proj.weight", kda.head_dim, hidden);
    w.gate_b = loader.Matrix(p + "g_b_proj.weight", width, kda.head_dim);
  }
  w.out_norm = loader.Vector(p + "o_norm.weight", kda.head_dim);
  w.out = loader.Matrix(p + "o_proj.weight", hidden, width);
  return w;
}

// kv_b_proj holds for each head its keys' rows, then its values'.
void SplitKeysAndValues(TrunkLoader& loader, const MlaConfig& mla, const std::string& name,
                        MlaWeights& w) {
  const int64_t head_rows = mla.nope_dim + mla.v_dim;
  const TrunkMatrix both = loader.Staged(name, mla.heads * head_rows, mla.kv_lora_rank);
  w.key = loader.RowsOfEach(both, 0, mla.nope_dim, head_rows);
  w.value = loader.RowsOfEach(both, mla.nope_dim, mla.v_dim, head_rows);
}

MlaWeights LoadMla(TrunkLoader& loader, const ModelConfig& config, const std::string& p) {
  const MlaConfig& mla = config.mla;
  const int64_t hidden = config.hidden;
  const int64_t q_width = mla.heads * (mla.nope_dim + mla.rope_dim);
  MlaWeights w;
  if (mla.q_lora_rank > 0) {
    w.q_a = loader.Matrix(p + "q_a_proj.weight", mla.q_lora_rank, hidden);
    w.q_norm = loader.Vector(p + "q_a_layernorm.weight", mla.q_lora_rank);
    w.q_b = loader.Matrix(p + "q_b_proj.weight", q_width, mla.q_lora_rank);
  } else {
    w.q = loader.Matrix(p + "q_proj.weight", q_width, hidden);
  }
  w.kv_a = loader.Matrix(p + "kv_a_proj_with_mqa.weight", mla.cache_width(), hidden);
  w.kv_norm = loader.Vector(p + "kv_a_layernorm.weight", mla.kv_lora_rank);
  SplitKeysAndValues(loader, mla, p + "kv_b_proj.weight", w);
  if (mla.output_gate) w.gate = loader.Matrix(p + "g_proj.weight", mla.heads * mla.v_dim, hidden);
  w.out = loader.Matrix(p + "o_proj.weight", hidden, mla.heads * mla.v_dim);
  return w;
}

FfnWeights LoadFfn(TrunkLoader& loader, int64_t hidden, int64_t inner, const std::string& p) {
  FfnWeights w;
  w.gate = loader.Matrix(p + "gate_proj.weight", inner, hidden);
  w.up = loader.Matrix(p + "up_proj.weight", inner, hidden);
  w.down = loader.Matrix(p + "down_proj.weight", hidden, inner);
  w.inner = inner;
  return w;
}

MoeWeights LoadMoe(TrunkLoader& loader, const ModelConfig& config, const std::string& p) {
  const MoeConfig& moe = config.moe;
  MoeWeights w;
  w.router = loader.Matrix(p + "gate.weight", moe.experts, config.hidden);
  if (const std::string bias = p + "gate.e_score_correction_bias"; loader.Has(bias))
    w.bias = loader.Vector(bias, moe.experts);
  if (moe.latent > 0) {
    w.latent_down = loader.Matrix(p + "routed_expert_down_proj.weight", moe.latent, config.hidden);
    w.latent_up = loader.Matrix(p + "routed_expert_up_proj.weight", config.hidden, moe.latent);
    if (moe.latent_norm) w.latent_norm = loader.Vector(p + "routed_expert_norm.weight", moe.latent);
  }
  if (moe.shared_experts > 0)
    w.shared =
        LoadFfn(loader, config.hidden, moe.inner * moe.shared_experts, p + "shared_experts.");
  return w;
}

LayerWeights LoadLayer(TrunkLoader& loader, const ModelConfig& config, int64_t layer) {
  const std::string p = config.prefix + "model.layers." + std::to_string(layer) + ".";
  LayerWeights w;
  w.attention_norm = loader.Vector(p + "input_layernorm.weight", config.hidden);
  w.ffn_norm = loader.Vector(p + "post_attention_layernorm.weight", config.hidden);
  if (config.attn_res_block > 0) {
    // The first layer has no earlier block to look at.
    if (layer > 0)
      w.attention_res_query = ResQuery(loader, p + "self_attention_res", config.hidden);
    w.ffn_res_query = ResQuery(loader, p + "mlp_res", config.hidden);
  }
  if (config.attention[layer] == AttentionKind::kKda)
    w.kda = LoadKda(loader, config, p + "self_attn.");
  else
    w.mla = LoadMla(loader, config, p + "self_attn.");
  if (config.is_moe(layer))
    w.moe = LoadMoe(loader, config, p + "block_sparse_moe.");
  else
    w.dense = LoadFfn(loader, config.hidden, config.dense_inner, p + "mlp.");
  return w;
}

void LoadAll(TrunkLoader& loader, const ModelConfig& config, Weights& weights) {
  const std::string& p = config.prefix;
  weights.embedding = loader.Entry(p + "model.embed_tokens.weight", config.vocab, config.hidden);
  for (int64_t layer = 0; layer < config.layers && loader.status().ok(); ++layer)
    weights.layers.push_back(LoadLayer(loader, config, layer));
  weights.final_norm = loader.Vector(p + "model.norm.weight", config.hidden);
  if (config.attn_res_block > 0)
    weights.final_res_query = ResQuery(loader, p + "model.output_attn_res", config.hidden);
  weights.head = loader.Matrix(p + "lm_head.weight", config.vocab, config.hidden);
}

int64_t TotalBytes(const TrunkLoader& counted) {
  return RoundUp(counted.staging_bytes(), Arena::kAlignment) + counted.held_bytes();
}

}  // namespace

Result<int64_t> Weights::Measure(const Container& container, const ModelConfig& config) {
  Weights unused;
  TrunkLoader counter(container);
  LoadAll(counter, config, unused);
  WASTE_TRY(counter.status());
  return TotalBytes(counter);
}

Result<std::unique_ptr<Weights>> Weights::Load(const Container& container,
                                               const ModelConfig& config, Progress& progress,
                                               ThreadPool* pool) {
  Weights unused;
  TrunkLoader counter(container);
  LoadAll(counter, config, unused);
  WASTE_TRY(counter.status());
  progress.SetTotal(counter.file_bytes());

  std::unique_ptr<Weights> weights(new Weights);
  WASTE_ASSIGN(weights->memory_, AlignedBuffer::AllocateHuge(TotalBytes(counter)));
  TrunkLoader loader(container, weights->memory_.data(), counter.staging_bytes(), progress);
  LoadAll(loader, config, *weights);
  loader.ReadMatrices(pool);
  WASTE_TRY(loader.status());
  return weights;
}

}  // namespace waste
