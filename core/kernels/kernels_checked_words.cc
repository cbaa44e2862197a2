// SPDX-License-Identifier: Apache-2.0
//
// The comparisons of kernels_checked.h for kernels that compute in words (word_input.h). The scalar
// table has none, so what fills an input is held to x, and what multiplies with it to the sum, in
// double, of what was filled.

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "base/half.h"
#include "kernels/comparison.h"
#include "kernels/kernels_checked.h"
#include "kernels/word_input.h"

namespace waste {
namespace {

// Block b of an input that was filled for x.
template <typename Inputs>
std::string CompareBlock(const float* x, int64_t columns, int64_t b, const int16_t* integers,
                         float scale) {
  const int64_t first = b * Inputs::kBlock, end = std::min(columns, first + Inputs::kBlock);
  float largest = 0.0f;
  for (int64_t c = first; c < end; ++c) {
    if (!(std::fabs(x[c]) <= FLT_MAX)) return {};
    largest = std::max(largest, std::fabs(x[c]));
  }
  const double right = largest < 1e-30f ? 0.0 : double{largest} / Inputs::kMost;
  std::string wrong = CompareValue("scale of block", b, scale, static_cast<float>(right),
                                   kRounding * right, largest);
  for (int64_t c = first; c < first + Inputs::kBlock && wrong.empty(); ++c) {
    const double integer = c < end && scale > 0.0f ? x[c] / double{scale} : 0.0;
    wrong =
        CompareValue("integer of column", c, integers[c], static_cast<float>(integer), 0.255, 0.0);
  }
  return wrong;
}

template <typename Inputs>
std::string CompareInput(const float* x, int64_t columns, const int16_t* integers,
                         const float* scales) {
  std::string wrong;
  for (int64_t b = 0; b < Inputs::Blocks(columns) && wrong.empty(); ++b)
    wrong = CompareBlock<Inputs>(x, columns, b, integers, scales[b]);
  return wrong.empty() ? wrong : "input in words, " + wrong;
}

// Column c of input i.
template <typename Inputs>
double ValueOf(const Inputs& inputs, int64_t i, int64_t c) {
  const Inputs block = inputs.At(i, c / Inputs::kBlock);
  return double{block.scales[0]} * block.integers[c % Inputs::kBlock];
}

// A row of weights times input i; `step` is what a weight may be rounded to.
struct ExactRow {
  double value = 0, magnitude = 0, rounding = 0;

  template <typename Inputs>
  ExactRow(const std::vector<float>& weights, double step, const Inputs& inputs, int64_t i) {
    for (int64_t c = 0; c < std::ssize(weights); ++c) {
      const double x = ValueOf(inputs, i, c), weight = weights[static_cast<size_t>(c)];
      value += weight * x;
      magnitude += std::fabs(weight * x);
      rounding += 0.26 * step * std::fabs(x);
    }
  }
};

}  // namespace

std::string CompareRoundTrunkInput(const Kernels& fast, const float* x, int64_t columns,
                                   int16_t* integers, float* scales) {
  fast.round_trunk_input(x, columns, integers, scales);
  return CompareInput<TrunkInputs>(x, columns, integers, scales);
}

std::string CompareRoundExpertInput(const Kernels& fast, const float* x, int64_t columns,
                                    int16_t* integers, float* scales) {
  fast.round_expert_input(x, columns, integers, scales);
  return CompareInput<ExpertInputs>(x, columns, integers, scales);
}

std::string CompareTrunkWords(const Kernels& fast, const TrunkMatrix& w, int64_t row_begin,
                              int64_t row_end, const TrunkInputs& inputs, int64_t batch, float* y,
                              int64_t y_stride, float* scratch) {
  fast.trunk_words(w, row_begin, row_end, inputs, batch, y, y_stride, scratch);
  const auto roundings = static_cast<double>(inputs.blocks + 3);
  std::vector<float> weights(static_cast<size_t>(w.columns));
  for (int64_t r = row_begin; r < row_end; ++r) {
    DecodeTrunkRow(w, r, weights);
    for (int64_t b = 0; b < batch; ++b) {
      const ExactRow exact(weights, 0.0, inputs, b);
      std::string wrong =
          CompareValue("trunk row", r, y[b * y_stride + r], static_cast<float>(exact.value),
                       roundings * kRounding * exact.magnitude, exact.magnitude);
      if (!wrong.empty()) return "words, " + wrong + " (input " + std::to_string(b) + ")";
    }
  }
  return {};
}

std::string CompareExpertWords(const Kernels& fast, const ExpertMatrix& w, int64_t row_begin,
                               int64_t row_end, const ExpertInputs& inputs, int64_t batch, float* y,
                               int64_t y_stride, float* scratch) {
  fast.expert_words(w, row_begin, row_end, inputs, batch, y, y_stride, scratch);
  const auto roundings = static_cast<double>(inputs.blocks + w.codec.stages + 4);
  double step = 0;
  for (int32_t s = 0; s < w.codec.stages; ++s) step += w.forms[static_cast<size_t>(s)].step;
  std::vector<float> weights(static_cast<size_t>(w.columns));
  for (int64_t r = row_begin; r < row_end; ++r) {
    DecodeExpertRow(w, r, weights);
    const double scale = std::fabs(double{HalfToFloat(LoadU16(w.scales + 2 * r))});
    for (int64_t b = 0; b < batch; ++b) {
      const ExactRow exact(weights, scale * step, inputs, b);
      std::string wrong =
          CompareValue("expert row", r, y[b * y_stride + r], static_cast<float>(exact.value),
                       exact.rounding + roundings * kRounding * exact.magnitude, exact.magnitude);
      if (!wrong.empty()) return "words, " + wrong + " (input " + std::to_string(b) + ")";
    }
  }
  return {};
}

}  // namespace waste
