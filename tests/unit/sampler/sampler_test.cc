// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "sampler/sampler.h"
#include "support/allocation_count.h"

namespace waste {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Ids = std::vector<int32_t>;

// The definition, step by step, sorting everything, with the C library's functions.
class Reference {
 public:
  explicit Reference(SamplerOptions options)
      : options_(std::move(options)), random_(static_cast<uint64_t>(options_.seed), 54) {}

  int32_t Sample(const std::vector<float>& logits, const Ids& recent) {
    std::vector<double> values(logits.begin(), logits.end());
    for (const auto& [token, bias] : options_.bias) values[token] += bias;
    Penalise(recent, values);
    Ids order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return values[a] > values[b]; });
    const double max = values[order[0]];
    if (options_.temperature == 0) return order[0];
    if (options_.top_k > 0 && options_.top_k < static_cast<int32_t>(order.size()))
      order.resize(options_.top_k);
    std::vector<double> weights(values.size(), 0.0);
    double total = 0;
    for (const int32_t id : order)
      total += weights[id] = std::exp((values[id] - max) / options_.temperature);
    double sum = 0;
    size_t kept = 0;
    while (kept < order.size() && (kept == 0 || sum < options_.top_p * total))
      sum += weights[order[kept++]];
    order.resize(kept);
    std::erase_if(order, [&](int32_t id) { return weights[id] < options_.min_p; });
    std::sort(order.begin(), order.end());
    total = 0;
    for (const int32_t id : order) total += weights[id];
    const double target = random_.NextUnit() * total;
    sum = 0;
    for (const int32_t id : order)
      if ((sum += weights[id]) > target) return id;
    return -1;
  }

 private:
  void Penalise(const Ids& recent, std::vector<double>& values) const {
    std::map<int32_t, int32_t> counts;
    for (size_t back = 1; back <= recent.size(); ++back)
      if (static_cast<int32_t>(back) <= options_.penalty_window)
        ++counts[recent[recent.size() - back]];
    for (const auto& [id, count] : counts) {
      double& value = values[id];
      if (value > 0) {
        value /= options_.repeat_penalty;
      } else {
        value *= options_.repeat_penalty;
      }
      value -= options_.presence_penalty + count * options_.frequency_penalty;
    }
  }

  SamplerOptions options_;
  Pcg32 random_;
};

// Logits in steps of 1/8 in [-8, 8): ties occur, and all values are exact.
std::vector<float> RandomLogits(int64_t size, std::mt19937& random) {
  std::vector<float> logits(static_cast<size_t>(size));
  for (float& logit : logits) logit = static_cast<float>(random() % 128) / 8 - 8;
  return logits;
}

int32_t SampleOne(const SamplerOptions& options, const std::vector<float>& logits,
                  const Ids& recent = {}) {
  Sampler sampler(options, static_cast<int64_t>(logits.size()));
  const auto token = sampler.Sample(logits, recent);
  BOOST_REQUIRE(token.ok());
  return token->id;
}

// Which tokens come up in many draws.
Ids Support(const SamplerOptions& options, const std::vector<float>& logits, int draws = 2000) {
  Sampler sampler(options, static_cast<int64_t>(logits.size()));
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    const auto token = sampler.Sample(logits, {});
    BOOST_REQUIRE(token.ok());
    ++counts[token->id];
  }
  Ids ids;
  for (const auto& [id, count] : counts) ids.push_back(id);
  return ids;
}

#define CHECK_IDS(actual, ...) \
  BOOST_TEST((actual) == (Ids __VA_ARGS__), boost::test_tools::per_element())

BOOST_AUTO_TEST_SUITE(sampler)

BOOST_AUTO_TEST_CASE(agrees_with_the_reference_for_all_sorts_of_options) {
  std::mt19937 random(1);
  for (int round = 0; round < 600; ++round) {
    const int64_t vocab = 1 + random() % 300;
    SamplerOptions options;
    const auto pick = [&](std::initializer_list<double> values) {
      return values.begin()[random() % values.size()];
    };
    options.temperature = pick({0, 0.01, 0.5, 1, 1, 3, 100});
    options.top_k = static_cast<int32_t>(pick({0, 0, 1, 2, 10, 50, 1000}));
    options.top_p = pick({1, 1, 0, 0.1, 0.501, 0.9, 0.999});
    options.min_p = pick({0, 0, 0.011, 0.3, 1});
    options.repeat_penalty = pick({1, 1, 1.25, 4, 0.5});
    options.presence_penalty = pick({0, 0, 1.5, -2});
    options.frequency_penalty = pick({0, 0, 0.25, -0.5});
    options.penalty_window = static_cast<int32_t>(pick({64, 0, 1, 5, 1000}));
    options.seed = static_cast<int64_t>(random()) - INT32_MAX;
    for (uint32_t i = random() % 4; i > 0; --i)
      options.bias.emplace_back(random() % vocab, pick({1, -1, 5, -100, 0}));
    BOOST_REQUIRE(CheckSamplerOptions(options, vocab).ok());
    Sampler sampler(options, vocab);
    Reference reference(options);
    Ids recent;
    for (int step = 0; step < 20; ++step) {
      auto logits = RandomLogits(vocab, random);
      for (size_t i = 1; i < logits.size(); i += 7) logits[i] = kForbidden;
      const auto token = sampler.Sample(logits, recent);
      BOOST_TEST_CONTEXT("round " << round << " step " << step) {
        BOOST_REQUIRE(token.ok());
        BOOST_REQUIRE_EQUAL(token->id, reference.Sample(logits, recent));
      }
      recent.push_back(token->id);
      recent.push_back(static_cast<int32_t>(random() % vocab));
    }
  }
}

BOOST_AUTO_TEST_CASE(greedy_takes_the_largest_and_the_lowest_id_of_equals) {
  BOOST_TEST(SampleOne({}, {1, 3, 2, 3}) == 1);
  BOOST_TEST(SampleOne({}, {0, 0, 0}) == 0);
  BOOST_TEST(SampleOne({}, {kForbidden, -5, kForbidden}) == 1);
  BOOST_TEST(SampleOne({.bias = {{2, 0.5}}}, {1, 3, 3}) == 2);
  BOOST_TEST(SampleOne({.bias = {{0, 1}, {0, 1}}}, {1, 2.5, 0}) == 0);  // one token twice: added
}

BOOST_AUTO_TEST_CASE(top_k_of_one_is_greedy) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    const auto logits = RandomLogits(500, random);
    const int32_t greedy = SampleOne({}, logits);
    BOOST_TEST(SampleOne({.temperature = 5, .top_k = 1, .seed = round}, logits) == greedy);
  }
}

BOOST_AUTO_TEST_CASE(a_tiny_top_p_and_a_full_min_p_keep_one) {
  const std::vector<float> logits = {1, 3, 2, 2.9f};
  CHECK_IDS(Support({.temperature = 9, .top_p = 1e-12}, logits), {1});
  CHECK_IDS(Support({.temperature = 9, .top_p = 0}, logits), {1});
  CHECK_IDS(Support({.temperature = 9, .min_p = 1}, logits), {1});
  CHECK_IDS(Support({.temperature = 9, .min_p = 1}, {5, 5, 1}), {0, 1});  // both are the likeliest
}

BOOST_AUTO_TEST_CASE(cuts_keep_the_lowest_ids_of_equals) {
  const std::vector<float> logits = {1, 2, 1, 1, 1};
  CHECK_IDS(Support({.temperature = 1, .top_k = 3}, logits), {0, 1, 2});
  const std::vector<float> flat(8, 0.5f);
  CHECK_IDS(Support({.temperature = 1, .top_p = 0.5}, flat), {0, 1, 2, 3});
  CHECK_IDS(Support({.temperature = 1, .top_p = 0.51}, flat), {0, 1, 2, 3, 4});
}

BOOST_AUTO_TEST_CASE(top_p_keeps_the_token_that_reaches_the_share) {
  // Probabilities 1/2, 1/4, 1/8, 1/8.
  const double ln2 = std::log(2.0);
  const std::vector<float> logits = {0, static_cast<float>(ln2), static_cast<float>(2 * ln2), 0};
  CHECK_IDS(Support({.temperature = 1, .top_p = 0.49}, logits), {2});
  CHECK_IDS(Support({.temperature = 1, .top_p = 0.6}, logits), {1, 2});
  CHECK_IDS(Support({.temperature = 1, .top_p = 0.8}, logits), {0, 1, 2});
  CHECK_IDS(Support({.temperature = 1, .top_p = 0.9}, logits), {0, 1, 2, 3});
  CHECK_IDS(Support({.temperature = 1, .min_p = 0.4}, logits), {1, 2});
}

BOOST_AUTO_TEST_CASE(a_limit_above_the_vocabulary_keeps_all) {
  CHECK_IDS(Support({.temperature = 1, .top_k = 1000}, {0, 0, 0}), {0, 1, 2});
  CHECK_IDS(Support({.temperature = 1, .top_p = 0.9999999999999999}, {0, 0, 0}), {0, 1, 2});
}

BOOST_AUTO_TEST_CASE(temperature_flattens_and_the_smallest_one_is_greedy) {
  const std::vector<float> logits = {0, 0.1f, 0};
  CHECK_IDS(Support({.temperature = 5e-324}, logits), {1});
  CHECK_IDS(Support({.temperature = 1000}, {0, 100, -100}), {0, 1, 2});
}

BOOST_AUTO_TEST_CASE(frequencies_follow_the_probabilities) {
  const std::vector<float> logits = {0, 1, 2, kForbidden, -1, 0.5f, 1.5f, -3};
  const double temperature = 0.8;
  std::vector<double> expected;
  double total = 0;
  for (const float logit : logits) total += expected.emplace_back(std::exp(logit / temperature));
  Sampler sampler({.temperature = temperature, .seed = 7}, 8);
  constexpr int kDraws = 200'000;
  std::vector<int> counts(8);
  for (int i = 0; i < kDraws; ++i) ++counts[sampler.Sample(logits, {})->id];
  double chi_square = 0;
  for (size_t i = 0; i < 8; ++i) {
    const double mean = kDraws * expected[i] / total;
    if (mean > 0) chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
  }
  BOOST_TEST(counts[3] == 0);
  BOOST_TEST(chi_square < 16.8);  // 6 degrees of freedom, 1 %
  BOOST_TEST(chi_square > 0.87);  // and not too good to be random
}

BOOST_AUTO_TEST_CASE(repeated_tokens_are_divided_or_multiplied_once) {
  const SamplerOptions options{.repeat_penalty = 2};
  BOOST_TEST(SampleOne(options, {4, 2.5f}, {0}) == 1);
  BOOST_TEST(SampleOne(options, {4, 1.5f}, {0, 0, 0}) == 0);  // once, however often it occurred
  BOOST_TEST(SampleOne(options, {-1, -1.5f}, {0}) == 1);
  BOOST_TEST(SampleOne(options, {-1, -2.5f}, {0}) == 0);
}

BOOST_AUTO_TEST_CASE(presence_counts_once_and_frequency_each_time) {
  BOOST_TEST(SampleOne({.presence_penalty = 1}, {2, 1.5f}, {0, 0, 0}) == 1);
  BOOST_TEST(SampleOne({.presence_penalty = 1}, {3, 1.5f}, {0, 0, 0}) == 0);
  BOOST_TEST(SampleOne({.frequency_penalty = 1}, {3, 1.5f}, {0}) == 0);
  BOOST_TEST(SampleOne({.frequency_penalty = 1}, {3, 1.5f}, {0, 1, 0}) == 0);
  BOOST_TEST(SampleOne({.frequency_penalty = 1}, {3, 1.5f}, {0, 0}) == 1);
}

BOOST_AUTO_TEST_CASE(penalties_look_back_as_far_as_the_window) {
  SamplerOptions options{.presence_penalty = 5, .penalty_window = 2};
  BOOST_TEST(SampleOne(options, {3, 1}, {0, 2, 2}) == 0);
  BOOST_TEST(SampleOne(options, {3, 1, -9}, {0, 2}) == 1);
  options.penalty_window = 0;
  BOOST_TEST(SampleOne(options, {3, 1}, {0, 0}) == 0);
}

BOOST_AUTO_TEST_CASE(tokens_outside_the_vocabulary_are_not_penalised) {
  const SamplerOptions options{.repeat_penalty = 2, .presence_penalty = 1};
  BOOST_TEST(SampleOne(options, {3, 1}, {-1, 2, INT32_MAX, INT32_MIN}) == 0);
}

BOOST_AUTO_TEST_CASE(an_infinite_negative_bias_forbids) {
  for (const double temperature : {0.0, 100.0}) {
    CHECK_IDS(
        Support({.temperature = temperature, .bias = {{1, -kInfinity}}}, {-50, 50, kForbidden}),
        {0});
  }
  Sampler sampler({.temperature = 1, .bias = {{0, -kInfinity}, {1, -kInfinity}}}, 3);
  const auto none = sampler.Sample(std::vector<float>{1, 1, kForbidden}, {});
  BOOST_REQUIRE(!none.ok());
  BOOST_CHECK(none.status().code() == Code::kArgument);
}

BOOST_AUTO_TEST_CASE(damaged_logits_are_refused_and_the_next_ones_are_not) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({.temperature = temperature}, 3);
    for (const std::vector<float>& logits : {std::vector<float>{1, nan, 2},
                                             {nan, nan, nan},
                                             {infinity, 1, 1},
                                             {kForbidden, kForbidden, kForbidden}}) {
      const auto token = sampler.Sample(logits, {});
      BOOST_REQUIRE(!token.ok());
      BOOST_CHECK(token.status().code() == Code::kCorrupt);
    }
    const auto token = sampler.Sample(std::vector<float>{1, nan, 2}, {});
    BOOST_TEST(token.status().message().find("token 1") != std::string::npos);
    BOOST_TEST(sampler.Sample(std::vector<float>{kForbidden, 5, kForbidden}, {})->id == 1);
  }
}

BOOST_AUTO_TEST_CASE(extreme_logits_do_no_harm) {
  const float big = std::numeric_limits<float>::max();
  CHECK_IDS(Support({.temperature = 1}, {big, -big, big}), {0, 2});
  CHECK_IDS(Support({.temperature = 1, .top_p = 0.9}, {-big, -big}), {0, 1});
  CHECK_IDS(Support({.temperature = 5e-324, .repeat_penalty = 1000}, {big, -big}), {0});
  CHECK_IDS(Support({.temperature = 1, .bias = {{1, 1e9}}}, {1e9f, 1, 1}), {0, 1});
}

BOOST_AUTO_TEST_CASE(logprobs_are_of_the_raw_logits) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    auto logits = RandomLogits(100, random);
    logits[5] = kForbidden;
    Sampler sampler(
        {.temperature = 2, .top_k = 5, .repeat_penalty = 3, .logprobs = true, .bias = {{7, 4}}},
        100);
    const auto token = sampler.Sample(logits, Ids{1, 2, 3});
    BOOST_REQUIRE(token.ok());
    long double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
    const double expected = static_cast<double>(logits[token->id] - std::log(sum));
    BOOST_TEST(token->logprob == expected, boost::test_tools::tolerance(1e-14));
  }
  Sampler quiet({.temperature = 1}, 2);
  BOOST_TEST(quiet.Sample(std::vector<float>{1, 2}, {})->logprob == 0);
  // A token that only its bias brought in.
  Sampler unlikely({.logprobs = true, .bias = {{0, 1e9}}}, 2);
  BOOST_TEST(unlikely.Sample(std::vector<float>{-1000, 1000}, {})->logprob == -2000);
}

// Twelve tokens over logits that are the same on every machine.
Ids TwelveTokens(const SamplerOptions& options) {
  Pcg32 random(3, 1);
  Sampler sampler(options, 1000);
  Ids recent;
  std::vector<float> logits(1000);
  while (recent.size() < 12) {
    for (float& logit : logits) logit = static_cast<float>(random.Next() >> 20) / 256;
    recent.push_back(sampler.Sample(logits, recent)->id);
  }
  return recent;
}

// Fixed for ever: the same seed must give the same tokens on every machine and in every version.
BOOST_AUTO_TEST_CASE(seeds_give_the_same_tokens_everywhere) {
  CHECK_IDS(TwelveTokens({.temperature = 1, .seed = 0}),
            {359, 775, 508, 939, 483, 708, 415, 268, 114, 402, 825, 162});
  CHECK_IDS(TwelveTokens({.temperature = 1, .seed = 1}),
            {682, 82, 824, 596, 465, 121, 703, 811, 172, 525, 355, 317});
  CHECK_IDS(TwelveTokens({.temperature = 1, .seed = -1}),
            {72, 932, 714, 856, 515, 652, 209, 399, 855, 365, 466, 402});
  CHECK_IDS(TwelveTokens({.temperature = 0.7, .top_p = 0.9, .seed = 42}),
            {710, 461, 748, 619, 589, 754, 778, 518, 951, 965, 189, 136});
  CHECK_IDS(TwelveTokens({.temperature = 1.3, .top_k = 40, .min_p = 0.02, .seed = 42}),
            {691, 560, 724, 661, 583, 751, 753, 518, 959, 965, 187, 136});
  CHECK_IDS(TwelveTokens({.temperature = 1,
                          .top_k = 20,
                          .top_p = 0.8,
                          .repeat_penalty = 1.1,
                          .presence_penalty = 0.5,
                          .frequency_penalty = 0.25,
                          .penalty_window = 4,
                          .seed = 9}),
            {390, 775, 71, 173, 515, 754, 849, 920, 897, 844, 198, 614});
}

BOOST_AUTO_TEST_CASE(a_large_vocabulary_is_sampled_in_no_time_whatever_the_logits) {
  constexpr int64_t kVocab = 163'840;
  std::mt19937 random(4);
  std::vector<float> smooth(kVocab);
  for (float& logit : smooth) logit = static_cast<float>(random() >> 8) * 0x1p-20f;
  std::vector<float> peaked = smooth;
  for (float& logit : peaked) logit *= 4;
  const std::vector<float> flat(kVocab, 1.0f);
  for (const std::vector<float>* logits : {&std::as_const(smooth), &std::as_const(peaked), &flat}) {
    Sampler sampler({.temperature = 1,
                     .top_k = kVocab / 2,
                     .top_p = 0.95,
                     .min_p = 1e-6,
                     .repeat_penalty = 1.1,
                     .penalty_window = 1000,
                     .logprobs = true},
                    kVocab);
    const Ids recent(5000, 17);
    BOOST_TEST(sampler.Sample(*logits, recent).ok());
    const int64_t allocated = allocation_count;
    const auto start = std::chrono::steady_clock::now();
    bool sampled = true;  // the test's own macros allocate
    for (int i = 0; i < 10; ++i) sampled = sampler.Sample(*logits, recent).ok() && sampled;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const int64_t allocated_after = allocation_count;
    BOOST_TEST(sampled);
    BOOST_TEST(allocated_after == allocated);
    BOOST_TEST(passed.count() < 10);  // sanitizers and a loaded machine included
    BOOST_TEST_MESSAGE("a token of " << kVocab << ": " << passed.count() * 100 << " ms");
  }
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_refused_by_name) {
  const auto message = [](const SamplerOptions& options) {
    const Status status = CheckSamplerOptions(options, 100);
    BOOST_CHECK(status.code() == Code::kArgument);
    return status.message();
  };
  BOOST_TEST(CheckSamplerOptions({}, 100).ok());
  BOOST_TEST(message({.temperature = -0.5}) == "temperature is -0.5 and must be from 0 to 1000");
  BOOST_TEST(message({.top_k = -1}).starts_with("top_k is -1 "));
  BOOST_TEST(message({.top_p = 1.01}).starts_with("top_p is 1.01 "));
  BOOST_TEST(message({.top_p = -1e-300}).starts_with("top_p is -1e-300 "));
  BOOST_TEST(message({.min_p = 2}).starts_with("min_p is 2 "));
  BOOST_TEST(message({.repeat_penalty = 0}).starts_with("repeat_penalty is 0 "));
  BOOST_TEST(message({.presence_penalty = 1e4}).starts_with("presence_penalty is 10000 "));
  BOOST_TEST(message({.frequency_penalty = -kInfinity}).starts_with("frequency_penalty is -inf "));
  BOOST_TEST(message({.penalty_window = -1}).starts_with("penalty_window is -1 "));
  BOOST_TEST(message({.bias = {{5, 1}, {100, 1}}}) ==
             "logit bias of token 100: the vocabulary has 100 tokens");
  BOOST_TEST(message({.bias = {{-1, 1}}}).starts_with("logit bias of token -1"));
  BOOST_TEST(message({.bias = {{5, kInfinity}}}).starts_with("logit bias of token 5 is inf "));
  for (double SamplerOptions::*field :
       {&SamplerOptions::temperature, &SamplerOptions::top_p, &SamplerOptions::min_p,
        &SamplerOptions::repeat_penalty, &SamplerOptions::presence_penalty,
        &SamplerOptions::frequency_penalty}) {
    SamplerOptions options;
    options.*field = kNan;
    BOOST_TEST(message(options).find(" is nan ") != std::string::npos);
    options.*field = kInfinity;
    BOOST_TEST(message(options).find(" is inf ") != std::string::npos);
  }
  BOOST_TEST(message({.bias = {{5, kNan}}}).find(" is nan ") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
