// SPDX-License-Identifier: Apache-2.0
//
// The trunk in memory: everything is there, as its shape and format say, or the tensor is named.

#include "model/weights.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "support/model_rig.h"

namespace waste {
namespace {

using Change = std::function<void(TinyTrunk&)>;

struct Opened {
  explicit Opened(const TinyModelOptions& options, const Change& change = {})
      : model(options, change),
        container(model.Open()),
        config(Require(ParseModelConfig(container->manifest(), false))) {}

  Status LoadStatus() const {
    Progress progress;
    return Weights::Load(*container, config, progress).status();
  }

  TinyModel model;
  std::unique_ptr<Container> container;
  ModelConfig config;
};

// The tensor as the container decodes it, row by row.
std::vector<float> Decoded(const Container& container, const std::string& name) {
  const TrunkEntry* entry = container.manifest().FindTrunk(name);
  std::vector<float> values(static_cast<size_t>(entry->rows() * entry->columns()));
  for (int64_t r = 0; r < entry->rows(); ++r)
    Require(container.ReadTrunkRow(
        *entry, r, std::span(values).subspan(r * entry->columns(), entry->columns())));
  return values;
}

std::vector<float> Decoded(const TrunkMatrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.rows * matrix.columns));
  for (int64_t r = 0; r < matrix.rows; ++r)
    DecodeTrunkRow(matrix, r, std::span(values).subspan(r * matrix.columns, matrix.columns));
  return values;
}

BOOST_AUTO_TEST_SUITE(weights)

BOOST_AUTO_TEST_CASE(tensors_of_every_format_are_what_the_container_says) {
  const Opened o(TinyK3());
  Progress progress;
  const auto w = Require(Weights::Load(*o.container, o.config, progress));
  const std::string p = "language_model.model.layers.";
  BOOST_TEST((Decoded(w->head) == Decoded(*o.container, "language_model.lm_head.weight")));
  for (int64_t layer = 1; layer < 6; ++layer) {
    const std::string l = p + std::to_string(layer) + ".";
    const KdaWeights& kda = w->layers[layer].kda;
    for (const auto& [name, matrix] :
         {std::pair("q_proj", &kda.q), std::pair("k_proj", &kda.k), std::pair("v_proj", &kda.v),
          std::pair("f_a_proj", &kda.f_a), std::pair("f_b_proj", &kda.f_b),
          std::pair("b_proj", &kda.beta), std::pair("g_proj", &kda.gate),
          std::pair("o_proj", &kda.out)})
      BOOST_TEST((Decoded(*matrix) == Decoded(*o.container, l + "self_attn." + name + ".weight")));
    const std::vector<float> norm = Decoded(*o.container, l + "input_layernorm.weight");
    BOOST_TEST(std::equal(norm.begin(), norm.end(), w->layers[layer].attention_norm));
  }
  BOOST_TEST(w->embedding ==
             o.container->manifest().FindTrunk("language_model.model.embed_tokens.weight"));
}

BOOST_AUTO_TEST_CASE(derived_values_are_what_the_formulas_say) {
  const Opened o(TinyK3());
  Progress progress;
  const auto w = Require(Weights::Load(*o.container, o.config, progress));
  const std::string p = "language_model.model.layers.";
  const auto a_log = Decoded(*o.container, p + "1.self_attn.A_log");
  BOOST_TEST(a_log.size() == 6u);  // padded: the first three count
  for (int64_t h = 0; h < 3; ++h) BOOST_TEST(w->layers[1].kda.a[h] == std::exp(a_log[h]));

  const auto norm = Decoded(*o.container, p + "1.mlp_res_norm.weight");
  const auto proj = Decoded(*o.container, p + "1.mlp_res_proj.weight");
  for (size_t i = 0; i < norm.size(); ++i)
    BOOST_TEST(w->layers[1].ffn_res_query[i] == norm[i] * proj[i]);

  const MlaConfig& mla = o.config.mla;
  const auto kv_b = Decoded(*o.container, p + "0.self_attn.kv_b_proj.weight");
  const auto keys = Decoded(w->layers[0].mla.key);
  const auto values = Decoded(w->layers[0].mla.value);
  for (int64_t h = 0; h < mla.heads; ++h) {
    const float* row = kv_b.data() + h * (mla.nope_dim + mla.v_dim) * mla.kv_lora_rank;
    const int64_t key = mla.nope_dim * mla.kv_lora_rank, value = mla.v_dim * mla.kv_lora_rank;
    BOOST_TEST(std::equal(row, row + key, keys.data() + h * key));
    BOOST_TEST(std::equal(row + key, row + key + value, values.data() + h * value));
  }
}

BOOST_AUTO_TEST_CASE(every_vector_and_matrix_may_have_any_format) {
  for (const TrunkFormat format : {TrunkFormat::kF16, TrunkFormat::kQ8G, TrunkFormat::kQ4G,
                                   TrunkFormat::kQ3G, TrunkFormat::kF32}) {
    const Opened o(TinyK3(), [&](TinyTrunk& trunk) {
      for (auto& [name, weights] : trunk) weights.format = format;
    });
    Progress progress;
    const auto w = Require(Weights::Load(*o.container, o.config, progress));
    const std::string l = "language_model.model.layers.1.self_attn.";
    const auto conv = Decoded(*o.container, l + "k_conv1d.weight");
    const int64_t width = o.config.kda.width(), size = o.config.kda.conv_size;
    for (int64_t c = 0; c < width; ++c)  // turned, so that channels are next to each other
      for (int64_t j = 0; j < size; ++j)
        BOOST_TEST_REQUIRE(w->layers[1].kda.k_conv[j * width + c] == conv[c * size + j]);
    const auto bias = Decoded(*o.container, l + "dt_bias");
    BOOST_TEST(std::equal(bias.begin(), bias.end(), w->layers[1].kda.dt_bias));
  }
}

BOOST_AUTO_TEST_CASE(progress_counts_the_bytes_read_and_ends_at_its_total) {
  const Opened o(TinyKimiLinear());
  Progress progress;
  Require(Weights::Load(*o.container, o.config, progress));
  int64_t bytes = 0;
  for (const TrunkEntry& entry : o.container->manifest().trunk)
    if (entry.name != "model.embed_tokens.weight") bytes += entry.bytes;
  BOOST_TEST(progress.total() == bytes);
  BOOST_TEST(progress.done() == bytes);
  BOOST_TEST(Require(Weights::Measure(*o.container, o.config)) > bytes / 2);
}

BOOST_AUTO_TEST_CASE(cancelled_load_says_so) {
  const Opened o(TinyK3());
  Progress progress;
  progress.Cancel();
  BOOST_CHECK(Weights::Load(*o.container, o.config, progress).status().code() == Code::kCancelled);
}

BOOST_AUTO_TEST_CASE(missing_tensor_is_named_before_anything_is_read,
                     *boost::unit_test::label("slow")) {
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    const Opened o(options);
    const Manifest whole = o.container->manifest();
    for (const TrunkEntry& entry : whole.trunk) {
      Manifest manifest = whole;
      std::erase_if(manifest.trunk, [&](const TrunkEntry& e) { return e.name == entry.name; });
      std::ofstream(o.model.path() + "/manifest.json") << PrintManifest(manifest);
      const auto container = o.model.Open();
      const Status status = Weights::Measure(*container, o.config).status();
      const bool optional = entry.name.find("e_score_correction_bias") != std::string::npos ||
                            entry.name.find("layers.0.self_attention_res") != std::string::npos;
      BOOST_TEST_CONTEXT(entry.name) {
        BOOST_TEST(status.ok() == optional);
        if (optional) continue;
        BOOST_CHECK(status.code() == Code::kCorrupt);
        BOOST_TEST(status.message().find(entry.name) != std::string::npos);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(tensor_of_another_shape_is_named_with_both) {
  const std::string p = "language_model.model.layers.1.";
  struct {
    std::string name;
    std::vector<int64_t> shape;
  } const kCases[] = {
      {p + "self_attn.q_proj.weight", {48, 87}},
      {p + "self_attn.q_proj.weight", {88, 48}},  // transposed
      {p + "self_attn.q_proj.weight", {48, 1, 88}},
      {p + "self_attn.q_proj.weight", {48 * 88}},
      {p + "self_attn.q_conv1d.weight", {48, 1, 3}},
      {p + "self_attn.A_log", {2}},  // fewer than heads
      {p + "self_attn.dt_bias", {47}},
      {p + "input_layernorm.weight", {89}},
      {p + "block_sparse_moe.gate.weight", {8, 88}},
      {p + "block_sparse_moe.gate.e_score_correction_bias", {8}},
      {p + "mlp_res_proj.weight", {2, 88}},
      {"language_model.model.layers.0.self_attn.kv_b_proj.weight", {33, 19}},
      {"language_model.model.embed_tokens.weight", {66, 88}},
      {"language_model.lm_head.weight", {67, 89}},
  };
  for (const auto& c : kCases) {
    const Opened o(TinyK3(), [&](TinyTrunk& trunk) { trunk[c.name].shape = c.shape; });
    const Status status = o.LoadStatus();
    BOOST_TEST_CONTEXT(status.message()) {
      BOOST_CHECK(status.code() == Code::kCorrupt);
      BOOST_TEST(status.message().find(c.name) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(vector_with_a_value_that_is_not_finite_is_refused) {
  for (const char* name :
       {"language_model.model.norm.weight", "language_model.model.layers.1.self_attn.A_log",
        "language_model.model.layers.1.self_attn.dt_bias"}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY}) {
      const Opened o(TinyK3(), [&](TinyTrunk& trunk) {
        trunk[name].format = TrunkFormat::kF32;
        trunk[name].mean = bad;
      });
      const Status status = o.LoadStatus();
      BOOST_CHECK(status.code() == Code::kCorrupt);
      BOOST_TEST(status.message().find(name) != std::string::npos);
    }
  }
  const Opened o(TinyK3(), [&](TinyTrunk& trunk) {
    trunk["language_model.model.layers.1.self_attn.A_log"].mean = 1000;  // exp of it is infinite
  });
  BOOST_CHECK(o.LoadStatus().code() == Code::kCorrupt);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
