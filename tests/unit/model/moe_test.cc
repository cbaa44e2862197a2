// SPDX-License-Identifier: Apache-2.0
//
// The choice of experts; what they compute is compared in forward_test.cc.

#include "model/moe.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "support/tiny_container.h"

namespace waste {
namespace {

struct Choice {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

Choice Choose(const std::vector<float>& scores, const std::vector<float>& bias, int64_t top_k,
              bool renormalise = false, float scale = 1) {
  MoeConfig moe;
  moe.experts = static_cast<int64_t>(scores.size());
  moe.top_k = top_k;
  moe.renormalise = renormalise;
  moe.scale = scale;
  Choice choice{std::vector<int32_t>(top_k), std::vector<float>(top_k)};
  ChooseExperts(moe, scores.data(), bias.empty() ? nullptr : bias.data(), choice.experts.data(),
                choice.weights.data());
  return choice;
}

BOOST_AUTO_TEST_SUITE(moe)

BOOST_AUTO_TEST_CASE(ties_go_to_the_lowest_expert) {
  BOOST_CHECK(Choose({0.5f, 0.5f, 0.5f, 0.5f}, {}, 2).experts == (std::vector<int32_t>{0, 1}));
  BOOST_CHECK(Choose({0.1f, 0.5f, 0.2f, 0.5f, 0.2f}, {}, 3).experts ==
              (std::vector<int32_t>{1, 3, 2}));
  BOOST_CHECK(Choose({0.25f, 0.5f}, {0.5f, 0.25f}, 1).experts == std::vector<int32_t>{0});
}

BOOST_AUTO_TEST_CASE(bias_chooses_and_does_not_weigh) {
  const Choice choice = Choose({0.9f, 0.2f, 0.4f}, {-1, 0, 0.1f}, 2);
  BOOST_CHECK(choice.experts == (std::vector<int32_t>{2, 1}));
  BOOST_CHECK(choice.weights == (std::vector<float>{0.4f, 0.2f}));
}

BOOST_AUTO_TEST_CASE(renormalised_weights_sum_to_the_scale_unless_one_is_chosen) {
  const Choice two = Choose({0.6f, 0.2f, 0.1f}, {}, 2, true, 3);
  BOOST_TEST(std::fabs(two.weights[0] - 2.25f) < 1e-6f);
  BOOST_TEST(std::fabs(two.weights[1] - 0.75f) < 1e-6f);
  BOOST_TEST(Choose({0.6f, 0.2f}, {}, 1, true, 3).weights[0] == 0.6f * 3);
  BOOST_TEST(Choose({0, 0}, {}, 2, true, 3).weights[0] == 0);  // nothing is divided by zero
}

BOOST_AUTO_TEST_CASE(choice_is_the_head_of_a_stable_sort) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    const int64_t count = 1 + random() % 40, top_k = 1 + random() % count;
    std::vector<float> scores(count), bias(count);
    for (float& score : scores) score = static_cast<float>(random() % 5) / 8;  // many ties
    for (float& b : bias) b = static_cast<float>(random() % 3) / 8;
    std::vector<int32_t> order(count);
    for (int64_t e = 0; e < count; ++e) order[e] = static_cast<int32_t>(e);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return scores[a] + bias[a] > scores[b] + bias[b];
    });
    order.resize(top_k);
    BOOST_TEST(Choose(scores, bias, top_k).experts == order, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(scores_that_are_no_numbers_still_choose_distinct_experts) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& scores :
       {std::vector<float>{nan, nan, nan, nan}, {nan, 0.5f, nan, 0.7f}, {0.5f, nan, 0.7f, nan}}) {
    auto experts = Choose(scores, {}, 3).experts;
    std::sort(experts.begin(), experts.end());
    BOOST_CHECK(std::unique(experts.begin(), experts.end()) == experts.end());
    BOOST_TEST(experts.front() >= 0);
    BOOST_TEST(experts.back() < 4);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
