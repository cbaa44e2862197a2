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

#include "model/synthetic_model.h"
#include "support/tiny_container.h"

namespace waste {

using TinyModelOptions = SyntheticModel;
using TinyWeights = SyntheticTensor;
using TinyTrunk = SyntheticTrunk;

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

// Formats take turns.
inline FormatChoice TinyFormats() {
  return {
      .matrix =
          [](size_t number, int64_t) {
            static constexpr TrunkFormat kFormats[] = {TrunkFormat::kF32, TrunkFormat::kQ8G,
                                                       TrunkFormat::kQ4G, TrunkFormat::kF16,
                                                       TrunkFormat::kQ3G};
            return kFormats[number % 5];
          },
      .norm =
          [](size_t number) { return number % 4 == 0 ? TrunkFormat::kF16 : TrunkFormat::kF32; }};
}

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
  const ExpertDims dims{.inner = o.inner, .outer = o.expert_outer()};
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
    TinyTrunk trunk = SyntheticTrunkOf(options_, TinyFormats());
    if (change) change(trunk);
    nlohmann::ordered_json config = SyntheticConfig(options_);
    if (change_config) change_config(config);
    const auto writer = Require(ContainerWriter::Create(folder_.path()));
    for (const auto& [name, weights] : trunk) AddTinyWeights(name, weights, options_.seed, *writer);
    std::mt19937 random(options_.seed);
    for (int64_t layer = options_.first_moe_layer; layer < options_.layers; ++layer)
      AddTinyBank(static_cast<int32_t>(layer), options_, random, *writer);
    const std::string ranks = "IQ== 0\n";
    Require(writer->AddFile("tokenizer.model", std::vector<uint8_t>(ranks.begin(), ranks.end())));
    Require(writer->AddSpecials({{1, "[BOS]"}}));
    Require(writer->Finish(options_.arch(), options_.prefix(), config));
  }

  const TinyModelOptions& options() const { return options_; }
  const std::string& path() const { return folder_.path(); }

  std::unique_ptr<Container> Open() const {
    auto container = Require(Container::Open(folder_.path(), IoMode::kBuffered));
    Require(container->SetExpertDims({options_.inner, options_.expert_outer()}));
    return container;
  }

 private:
  TinyModelOptions options_;
  TemporaryPath folder_;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_TINY_MODEL_H_
