// SPDX-License-Identifier: Apache-2.0
//
// The experts of all layers, numbered through: layer by layer, in ascending order. Immutable; any
// thread.

#ifndef WASTE_CORE_STREAM_EXPERT_NUMBERS_H_
#define WASTE_CORE_STREAM_EXPERT_NUMBERS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "container/manifest.h"

namespace waste {

class ExpertNumbers {
 public:
  static constexpr int32_t kNone = -1;

  explicit ExpertNumbers(const Manifest& manifest) {
    for (const auto& [layer, entry] : manifest.layers) {
      layers_.push_back({layer, count_});
      count_ += static_cast<int32_t>(entry.experts);
      first_.resize(static_cast<size_t>(layer) + 1, kNone);
      first_[layer] = layers_.back().first;
    }
  }

  int32_t count() const { return count_; }

  // Of an expert that exists.
  int32_t Of(int32_t layer, int32_t expert) const { return first_[layer] + expert; }
  // kNone for one that does not.
  int32_t Find(int32_t layer, int32_t expert) const {
    if (layer < 0 || layer >= static_cast<int32_t>(first_.size()) || first_[layer] == kNone)
      return kNone;
    const int32_t number = first_[layer] + expert;
    return expert >= 0 && number < count_ && LayerAt(number).layer == layer ? number : kNone;
  }
  // Layer and expert of a number.
  std::pair<int32_t, int32_t> At(int32_t number) const {
    const Layer& layer = LayerAt(number);
    return {layer.layer, number - layer.first};
  }

 private:
  struct Layer {
    int32_t layer;
    int32_t first;  // number of its expert 0
  };

  const Layer& LayerAt(int32_t number) const {
    size_t low = 0, high = layers_.size();
    while (high - low > 1) {
      const size_t middle = (low + high) / 2;
      (layers_[middle].first <= number ? low : high) = middle;
    }
    return layers_[low];
  }

  std::vector<Layer> layers_;   // those with a bank
  std::vector<int32_t> first_;  // by layer
  int32_t count_ = 0;
};

}  // namespace waste

#endif  // WASTE_CORE_STREAM_EXPERT_NUMBERS_H_
