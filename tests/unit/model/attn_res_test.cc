// SPDX-License-Identifier: Apache-2.0

#include "model/attn_res.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "support/tiny_container.h"

namespace waste {
namespace {

constexpr float kEps = 1e-5f;

std::vector<double> Naive(const std::vector<std::vector<float>>& values,
                          const std::vector<float>& query) {
  std::vector<double> scores;
  for (const auto& v : values) {
    double squares = 0, score = 0;
    for (size_t j = 0; j < v.size(); ++j) {
      squares += double{v[j]} * v[j];
      score += double{v[j]} * query[j];
    }
    scores.push_back(score / std::sqrt(squares / static_cast<double>(v.size()) + kEps));
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - largest);
  std::vector<double> out(query.size());
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = 0; j < out.size(); ++j) out[j] += scores[i] / total * values[i][j];
  return out;
}

BOOST_AUTO_TEST_SUITE(attn_res)

BOOST_AUTO_TEST_CASE(mix_agrees_with_the_formula_apart_and_in_place) {
  const Kernels& kernels = *Require(KernelsFor(Isa::kScalar));
  std::mt19937 random(1);
  for (const int64_t hidden : {1, 7, 88, 200}) {
    for (int64_t count = 1; count <= 9; ++count) {
      constexpr int64_t kStride = 333;
      std::vector<float> blocks = RandomWeights(count * kStride, random);
      std::vector<float> sum = RandomWeights(hidden, random);
      const std::vector<float> query = RandomWeights(hidden, random);
      std::vector<std::vector<float>> values;
      for (int64_t i = 0; i < count; ++i)
        values.emplace_back(blocks.begin() + i * kStride, blocks.begin() + i * kStride + hidden);
      values.push_back(sum);
      const auto expected = Naive(values, query);

      std::vector<float> out(sum.size());
      const ResidualBlocks history{blocks.data(), kStride, count};
      MixResiduals(kernels, history, sum.data(), query.data(), kEps, hidden, out.data());
      for (size_t j = 0; j < out.size(); ++j) BOOST_TEST(std::fabs(out[j] - expected[j]) < 2e-6);
      MixResiduals(kernels, history, sum.data(), query.data(), kEps, hidden, sum.data());
      BOOST_TEST(sum == out, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(scores_far_apart_do_not_overflow) {
  const Kernels& kernels = *Require(KernelsFor(Isa::kScalar));
  const std::vector<float> block = {1, 1}, query = {500, 500};
  std::vector<float> sum = {-1, -1};
  MixResiduals(kernels, {block.data(), 2, 1}, sum.data(), query.data(), kEps, 2, sum.data());
  BOOST_TEST(sum == block, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
