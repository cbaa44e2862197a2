// SPDX-License-Identifier: Apache-2.0
//
// What the forward pass says it will need next.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "support/model_rig.h"
#include "support/tiny_model.h"

namespace waste {
namespace {

using Log = std::vector<ScatteredExperts::Entry>;

bool HasExperts(const ModelConfig& config, int64_t layer) {
  return layer < config.layers && config.is_moe(layer);
}

BOOST_AUTO_TEST_SUITE(lookahead)

// One row: each layer expects the next one's first three quarters, and nothing else changes.
BOOST_AUTO_TEST_CASE(a_single_row_guesses_for_the_next_layer) {
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    const TinyModel model(options);
    ModelRig plain(model), rig(model, {.ahead = 100});
    const auto tokens = RandomTokens(12, rig.config.vocab, 31);
    BOOST_TEST(rig.RunAlone(tokens, 1) == plain.RunAlone(tokens, 1));
    const int64_t count = (rig.config.moe.top_k * 3 + 3) / 4;
    size_t at = 0;
    const Log& log = rig.experts.log;
    for (size_t token = 0; token < tokens.size(); ++token) {
      for (int64_t layer = 0; layer < rig.config.layers; ++layer) {
        if (!HasExperts(rig.config, layer)) continue;
        BOOST_REQUIRE(at < log.size());
        BOOST_TEST(!log[at].expected);
        BOOST_TEST(log[at++].layer == layer);
        if (!HasExperts(rig.config, layer + 1)) continue;
        BOOST_REQUIRE(at < log.size());
        BOOST_TEST(log[at].expected);
        BOOST_TEST(log[at].layer == layer + 1);
        std::vector<int32_t> guess = log[at++].experts;
        BOOST_TEST(static_cast<int64_t>(guess.size()) == count);
        std::sort(guess.begin(), guess.end());
        BOOST_CHECK(std::adjacent_find(guess.begin(), guess.end()) == guess.end());
      }
    }
    BOOST_TEST(at == log.size());
  }
}

// Several rows in groups: each group but the last announces the next one. So many rows that most
// experts will be wanted announce the next layer's first ones in the end; fewer guess nothing.
BOOST_AUTO_TEST_CASE(a_batch_announces_its_next_group) {
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    const TinyModel model(options);
    for (const bool many : {true, false}) {
      ModelRig plain(model), rig(model, {.max_experts = 3, .ahead = 2});
      const MoeConfig& moe = rig.config.moe;
      const int64_t rows = many ? CeilDivide(4 * moe.experts, moe.top_k) : 3;
      const auto tokens = RandomTokens(rows, rig.config.vocab, 32);
      BOOST_TEST(rig.RunAlone(tokens, rows) == plain.RunAlone(tokens, rows));
      const Log& log = rig.experts.log;
      int64_t groups = 0, layers = 0;
      for (size_t i = 0; i < log.size(); ++i) {
        if (!log[i].expected) continue;
        BOOST_REQUIRE(i > 0 && i + 1 < log.size());
        BOOST_TEST(!log[i - 1].expected);
        BOOST_TEST(!log[i + 1].expected);
        BOOST_TEST(log[i].layer == log[i + 1].layer);
        std::vector<int32_t> announced = {0, 1};
        if (log[i].layer == log[i - 1].layer) {
          announced = log[i + 1].experts;
          announced.resize(std::min<size_t>(2, announced.size()));
          ++groups;
        } else {
          ++layers;
        }
        BOOST_TEST(log[i].experts == announced, boost::test_tools::per_element());
      }
      const int64_t moe_layers = rig.config.layers - rig.config.first_moe_layer;
      BOOST_TEST(groups == rig.experts.calls - moe_layers);
      BOOST_TEST(groups > 0);
      BOOST_TEST(layers == (many ? moe_layers - 1 : 0));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_source_that_does_not_look_ahead_is_told_nothing) {
  const TinyModel model(TinyK3());
  ModelRig rig(model, {.max_experts = 3});
  rig.RunAlone(RandomTokens(5, rig.config.vocab, 33), 1);
  rig.RunAlone(RandomTokens(30, rig.config.vocab, 33), 30);
  BOOST_TEST(rig.experts.log.empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
