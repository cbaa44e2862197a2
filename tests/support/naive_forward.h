// SPDX-License-Identifier: Apache-2.0
//
// The forward pass as the formulas say it, in double, one token after the other, plain loops over
// decoded weights: what core/model is compared with. Attention is in its expanded form, the delta
// rule is the recurrence, experts are summed as they were chosen. Shares with core/model the parsed
// config and the container reader, and no arithmetic. Throws on a tensor that is not there.

#ifndef WASTE_TESTS_SUPPORT_NAIVE_FORWARD_H_
#define WASTE_TESTS_SUPPORT_NAIVE_FORWARD_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "container/container.h"
#include "model/config.h"
#include "support/tiny_container.h"

namespace waste {

class NaiveForward {
 public:
  using Values = std::vector<double>;

  struct Trace {
    std::vector<Values> hidden;  // [layers][tokens, hidden]
    Values logits;               // [tokens, vocab]
  };

  NaiveForward(const Container& container, const ModelConfig& config)
      : container_(container), c_(config) {
    for (const TrunkEntry& entry : container.manifest().trunk) {
      Values& values = weights_[entry.name];
      std::vector<float> row(static_cast<size_t>(entry.columns()));
      for (int64_t r = 0; r < entry.rows(); ++r) {
        Require(container.ReadTrunkRow(entry, r, row));
        values.insert(values.end(), row.begin(), row.end());
      }
    }
    if (container.manifest().has_experts) DecodeExperts();
  }

  Trace Run(std::span<const int32_t> tokens) const {
    Trace trace;
    trace.hidden.resize(static_cast<size_t>(c_.layers));
    std::vector<Memory> memory(static_cast<size_t>(c_.layers));
    for (const int32_t token : tokens) {
      const Values& table = Weight("model.embed_tokens.weight");
      Values x(table.begin() + token * c_.hidden, table.begin() + (token + 1) * c_.hidden);
      std::vector<Values> blocks;
      for (int64_t layer = 0; layer < c_.layers; ++layer) {
        x = Layer(layer, x, blocks, memory[layer]);
        trace.hidden[layer].insert(trace.hidden[layer].end(), x.begin(), x.end());
      }
      if (!blocks.empty()) x = Mix(blocks, x, "model.output_attn_res");
      const Values logits = Project("lm_head", Norm(x, Weight("model.norm.weight"), c_.norm_eps));
      trace.logits.insert(trace.logits.end(), logits.begin(), logits.end());
    }
    return trace;
  }

 private:
  // What a layer knows of earlier tokens.
  struct Memory {
    std::vector<Values> q, k, v;  // KDA: inputs of the convolutions
    std::vector<Values> states;   // KDA: [heads][keys, values]
    std::vector<Values> latents;  // MLA: [tokens][kv_lora + rope], the latent normed
  };

  static double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  static double Silu(double x) { return x * Sigmoid(x); }

  const Values& Weight(const std::string& name) const { return weights_.at(c_.prefix + name); }
  bool Has(const std::string& name) const { return weights_.count(c_.prefix + name) > 0; }

  Values Project(const std::string& name, const Values& x) const {
    const Values& w = Weight(name + ".weight");
    Values y(w.size() / x.size());
    for (size_t r = 0; r < y.size(); ++r)
      for (size_t i = 0; i < x.size(); ++i) y[r] += w[r * x.size() + i] * x[i];
    return y;
  }

  static Values Norm(const Values& x, const Values& w, double eps) {
    double squares = 0;
    for (const double value : x) squares += value * value;
    Values y(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      y[i] = x[i] * w[i] / std::sqrt(squares / static_cast<double>(x.size()) + eps);
    return y;
  }

  static Values Softmax(Values scores) {
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    for (double& score : scores) score /= sum;
    return scores;
  }

  static void AddTo(Values& x, const Values& y, double factor = 1) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += factor * y[i];
  }

  Values Mix(const std::vector<Values>& blocks, const Values& sum, const std::string& name) const {
    std::vector<Values> values = blocks;
    values.push_back(sum);
    Values scores;
    for (const Values& value : values) {
      const Values normed = Norm(value, Weight(name + "_norm.weight"), c_.norm_eps);
      scores.push_back(Project(name + "_proj", normed)[0]);
    }
    const Values weights = Softmax(scores);
    Values out(sum.size());
    for (size_t i = 0; i < values.size(); ++i) AddTo(out, values[i], weights[i]);
    return out;
  }

  Values Layer(int64_t layer, const Values& x, std::vector<Values>& blocks, Memory& memory) const {
    const std::string p = "model.layers." + std::to_string(layer) + ".";
    const bool residual_attention = c_.attn_res_block > 0;
    Values sum = x, input = x;
    bool live = true;
    if (residual_attention) {
      if (!blocks.empty()) input = Mix(blocks, sum, p + "self_attention_res");
      if (layer % c_.attn_res_block == 0) {
        blocks.push_back(sum);
        live = false;
      }
    }
    input = Norm(input, Weight(p + "input_layernorm.weight"), c_.norm_eps);
    const Values attention = c_.attention[layer] == AttentionKind::kKda
                                 ? Kda(p + "self_attn.", input, memory)
                                 : Mla(p + "self_attn.", input, memory);
    if (!live) sum.assign(sum.size(), 0);
    AddTo(sum, attention);
    input = residual_attention ? Mix(blocks, sum, p + "mlp_res") : sum;
    input = Norm(input, Weight(p + "post_attention_layernorm.weight"), c_.norm_eps);
    AddTo(sum, Has(p + "block_sparse_moe.gate.weight") ? Moe(p, input) : Ffn(p + "mlp.", input));
    return sum;
  }

  Values Act(const Values& gate, const Values& up) const {
    Values h(gate.size());
    for (size_t i = 0; i < h.size(); ++i) {
      if (c_.activation == Activation::kSilu) {
        h[i] = Silu(gate[i]) * up[i];
      } else {
        const double b = c_.situ_beta, l = c_.situ_linear_beta;
        h[i] = b * std::tanh(gate[i] / b) * Sigmoid(gate[i]) *
               (l > 0 ? l * std::tanh(up[i] / l) : up[i]);
      }
    }
    return h;
  }

  Values Ffn(const std::string& p, const Values& x) const {
    return Project(p + "down_proj", Act(Project(p + "gate_proj", x), Project(p + "up_proj", x)));
  }

  // The newest input is appended to `inputs`; zeros stand for what was before the first.
  Values Conv(const std::string& p, const std::string& which, const Values& x,
              std::vector<Values>& inputs) const {
    inputs.push_back(Project(p + which + "_proj", x));
    const Values& w = Weight(p + which + "_conv1d.weight");
    const int64_t size = c_.kda.conv_size, count = static_cast<int64_t>(inputs.size());
    Values y(inputs.back().size());
    for (size_t c = 0; c < y.size(); ++c) {
      for (int64_t j = 0; j < size; ++j) {
        const int64_t t = count - size + j;
        if (t >= 0) y[c] += inputs[t][c] * w[c * size + j];
      }
      y[c] = Silu(y[c]);
    }
    return y;
  }

  Values Kda(const std::string& p, const Values& x, Memory& memory) const {
    const int64_t heads = c_.kda.heads, dim = c_.kda.head_dim;
    Values q = Conv(p, "q", x, memory.q), k = Conv(p, "k", x, memory.k);
    const Values v = Conv(p, "v", x, memory.v);
    Values z = Project(p + "f_b_proj", Project(p + "f_a_proj", x));
    AddTo(z, Weight(p + "dt_bias"));
    const Values beta = Project(p + "b_proj", x);
    const Values gate = c_.kda.full_rank_gate ? Project(p + "g_proj", x)
                                              : Project(p + "g_b_proj", Project(p + "g_a_proj", x));
    memory.states.resize(heads, Values(dim * dim));
    Values out(heads * dim);
    for (int64_t h = 0; h < heads; ++h) {
      double* qh = &q[h * dim];
      double* kh = &k[h * dim];
      double qq = 0, kk = 0;
      for (int64_t i = 0; i < dim; ++i) {
        qq += qh[i] * qh[i];
        kk += kh[i] * kh[i];
      }
      for (int64_t i = 0; i < dim; ++i) {
        qh[i] /= std::sqrt(qq + 1e-6) * std::sqrt(static_cast<double>(dim));
        kh[i] /= std::sqrt(kk + 1e-6);
      }
      const double rate = std::exp(Weight(p + "A_log")[h]);
      Values& state = memory.states[h];
      Values u(dim), o(dim);
      for (int64_t i = 0; i < dim; ++i) {
        const double zi = z[h * dim + i];
        const double g = c_.kda.has_lower_bound ? c_.kda.lower_bound * Sigmoid(rate * zi)
                                                : -rate * std::log1p(std::exp(zi));
        for (int64_t j = 0; j < dim; ++j) {
          state[i * dim + j] *= std::exp(g);
          u[j] += state[i * dim + j] * kh[i];
        }
      }
      for (int64_t i = 0; i < dim; ++i) {
        for (int64_t j = 0; j < dim; ++j) {
          state[i * dim + j] += kh[i] * Sigmoid(beta[h]) * (v[h * dim + j] - u[j]);
          o[j] += state[i * dim + j] * qh[i];
        }
      }
      o = Norm(o, Weight(p + "o_norm.weight"), c_.norm_eps);
      for (int64_t j = 0; j < dim; ++j) out[h * dim + j] = o[j] * Sigmoid(gate[h * dim + j]);
    }
    return Project(p + "o_proj", out);
  }

  Values Mla(const std::string& p, const Values& x, Memory& memory) const {
    const MlaConfig& m = c_.mla;
    const int64_t q_dim = m.nope_dim + m.rope_dim, head_rows = m.nope_dim + m.v_dim;
    const Values q = m.q_lora_rank > 0
                         ? Project(p + "q_b_proj", Norm(Project(p + "q_a_proj", x),
                                                        Weight(p + "q_a_layernorm.weight"), 1e-6))
                         : Project(p + "q_proj", x);
    const Values kv = Project(p + "kv_a_proj_with_mqa", x);
    Values latent = Norm(Values(kv.begin(), kv.begin() + m.kv_lora_rank),
                         Weight(p + "kv_a_layernorm.weight"), 1e-6);
    latent.insert(latent.end(), kv.begin() + m.kv_lora_rank, kv.end());
    memory.latents.push_back(latent);

    std::vector<Values> expanded;  // [tokens][heads, nope + v]
    for (const Values& cached : memory.latents)
      expanded.push_back(
          Project(p + "kv_b_proj", Values(cached.begin(), cached.begin() + m.kv_lora_rank)));
    const Values gate = m.output_gate ? Project(p + "g_proj", x) : Values();
    Values out(m.heads * m.v_dim);
    for (int64_t h = 0; h < m.heads; ++h) {
      Values scores;
      for (size_t t = 0; t < expanded.size(); ++t) {
        double score = 0;
        for (int64_t i = 0; i < m.nope_dim; ++i)
          score += q[h * q_dim + i] * expanded[t][h * head_rows + i];
        for (int64_t i = 0; i < m.rope_dim; ++i)
          score += q[h * q_dim + m.nope_dim + i] * memory.latents[t][m.kv_lora_rank + i];
        scores.push_back(score / std::sqrt(static_cast<double>(q_dim)));
      }
      const Values weights = Softmax(scores);
      for (int64_t j = 0; j < m.v_dim; ++j) {
        double o = 0;
        for (size_t t = 0; t < expanded.size(); ++t)
          o += weights[t] * expanded[t][h * head_rows + m.nope_dim + j];
        out[h * m.v_dim + j] = m.output_gate ? o * Sigmoid(gate[h * m.v_dim + j]) : o;
      }
    }
    return Project(p + "o_proj", out);
  }

  static void AddDecoded(const ExpertMatrix& w, std::map<std::string, Values>& weights,
                         const std::string& name) {
    Values& values = weights[name];
    std::vector<float> row(static_cast<size_t>(w.columns));
    for (int64_t r = 0; r < w.rows; ++r) {
      DecodeExpertRow(w, r, row);
      values.insert(values.end(), row.begin(), row.end());
    }
  }

  // Under the names that a release gives them.
  void DecodeExperts() {
    AlignedBuffer bytes = Require(AlignedBuffer::Allocate(container_.record_bytes()));
    for (const auto& [layer, bank] : container_.manifest().layers) {
      for (int32_t e = 0; e < bank.experts; ++e) {
        Require(container_.ReadRecord(layer, e, bytes.bytes(), true));
        const ExpertRecord record = Require(container_.ParseRecord(layer, e, bytes.bytes()));
        const std::string p = c_.prefix + "model.layers." + std::to_string(layer) +
                              ".block_sparse_moe.experts." + std::to_string(e);
        AddDecoded(record.gate, weights_, p + ".w1.weight");
        AddDecoded(record.up, weights_, p + ".w3.weight");
        AddDecoded(record.down, weights_, p + ".w2.weight");
      }
    }
  }

  Values Moe(const std::string& layer_name, const Values& x) const {
    const MoeConfig& m = c_.moe;
    const std::string p = layer_name + "block_sparse_moe.";
    Values scores = Project(p + "gate", x);
    for (double& score : scores) score = Sigmoid(score);
    Values keys = scores;
    if (Has(p + "gate.e_score_correction_bias"))
      AddTo(keys, Weight(p + "gate.e_score_correction_bias"));
    std::vector<int64_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return keys[a] > keys[b]; });
    order.resize(static_cast<size_t>(m.top_k));
    double sum = 0;
    for (const int64_t e : order) sum += scores[e];
    const double divisor = m.renormalise && m.top_k > 1 ? sum + 1e-20 : 1;

    const Values z = m.latent > 0 ? Project(p + "routed_expert_down_proj", x) : x;
    Values y(z.size());
    for (const int64_t e : order) {
      const std::string expert = p + "experts." + std::to_string(e);
      AddTo(y, Project(expert + ".w2", Act(Project(expert + ".w1", z), Project(expert + ".w3", z))),
            scores[e] / divisor * m.scale);
    }
    if (m.latent > 0) {
      if (m.latent_norm) y = Norm(y, Weight(p + "routed_expert_norm.weight"), c_.norm_eps);
      y = Project(p + "routed_expert_up_proj", y);
    }
    if (m.shared_experts > 0) AddTo(y, Ffn(p + "shared_experts.", x));
    return y;
  }

  const Container& container_;
  const ModelConfig& c_;
  std::map<std::string, Values> weights_;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_NAIVE_FORWARD_H_
