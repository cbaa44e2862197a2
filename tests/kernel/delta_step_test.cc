// SPDX-License-Identifier: Apache-2.0
//
// The gated delta rule, step by step against the formula in double.

#include <algorithm>
#include <cstring>

#include "support/guarded_memory.h"
#include "support/kernel_case.h"

namespace waste {
namespace {

struct Step {
  int64_t keys;
  int64_t values;
  std::vector<float> decay, k, q, v;
  float beta;
};

// Decays of exp(-20) beside decays of almost 1, as Kimi-Linear has them.
Step RandomStep(uint32_t seed, int64_t keys, int64_t values) {
  Step step = {keys,
               values,
               RandomFloats(seed, keys),
               RandomFloats(seed + 1, keys),
               RandomFloats(seed + 2, keys),
               RandomFloats(seed + 3, values),
               0.8f};
  for (int64_t i = 0; i < keys; ++i) {
    step.decay[i] = i % 3 == 0 ? std::exp(-20.0f) : std::exp(-0.1f * std::fabs(step.decay[i]));
  }
  return step;
}

// The step in double, with a bound of the error that f32 may add to each result.
struct ExactStep {
  std::vector<double> state, state_bound, out, out_bound;

  ExactStep(const Step& in, const std::vector<float>& before)
      : state(before.size()), state_bound(before.size()), out(in.values), out_bound(in.values) {
    const double sum_rounding = static_cast<double>(in.keys + 4) * kRounding;
    for (int64_t j = 0; j < in.values; ++j) {
      double u = 0, u_magnitude = 0;
      for (int64_t i = 0; i < in.keys; ++i) {
        const double term = double{in.k[i]} * in.decay[i] * before[i * in.values + j];
        u += term;
        u_magnitude += std::fabs(term);
      }
      const double delta = in.beta * (in.v[j] - u);
      const double delta_bound = in.beta * (sum_rounding * u_magnitude +
                                            3 * kRounding * (std::fabs(in.v[j]) + std::fabs(u)));
      double magnitude = 0;
      for (int64_t i = 0; i < in.keys; ++i) {
        const int64_t at = i * in.values + j;
        const double kept = double{in.decay[i]} * before[at], added = in.k[i] * delta;
        state[at] = kept + added;
        state_bound[at] = std::fabs(in.k[i]) * delta_bound +
                          4 * kRounding * (std::fabs(kept) + std::fabs(added)) + 1e-44;
        out[j] += in.q[i] * state[at];
        out_bound[j] += std::fabs(in.q[i]) * state_bound[at];
        magnitude += std::fabs(in.q[i] * state[at]);
      }
      out_bound[j] += sum_rounding * magnitude;
    }
  }
};

void Run(const Kernels& kernels, const Step& in, float* state, float* out) {
  std::vector<float> scratch(in.values);
  kernels.delta_step(state, state, in.decay.data(), in.k.data(), in.q.data(), in.v.data(), in.beta,
                     in.keys, in.values, out, scratch.data());
}

BOOST_AUTO_TEST_SUITE(delta_step)

WASTE_KERNEL_CASE(each_of_many_steps_follows_the_formula) {
  for (const int64_t keys : {1, 2, 7, 64, 128}) {
    for (const int64_t values : {1, 3, 8, 15, 16, 17, 31, 63, 64, 65, 100, 128}) {
      std::vector<float> state = RandomFloats(9, keys * values);
      std::vector<float> out(values);
      for (uint32_t t = 0; t < 5; ++t) {
        const Step in = RandomStep(100 * t, keys, values);
        const ExactStep exact(in, state);
        Run(kernels, in, state.data(), out.data());
        int64_t wrong = 0;  // an assertion takes longer than a value
        for (int64_t i = 0; i < keys * values; ++i)
          wrong += std::fabs(state[i] - exact.state[i]) <= exact.state_bound[i] ? 0 : 1;
        for (int64_t j = 0; j < values; ++j)
          wrong += std::fabs(out[j] - exact.out[j]) <= exact.out_bound[j] ? 0 : 1;
        BOOST_TEST_REQUIRE(wrong == 0, keys << " keys, " << values << " values, step " << t);
      }
    }
  }
}

// One key, written out: the delta uses the state after decay, the output the state after the
// update.
WASTE_KERNEL_CASE(order_of_decay_delta_update_and_read_is_kept) {
  std::vector<float> state = {8.0f};
  float out = 0;
  const Step in = {1, 1, {0.5f}, {2.0f}, {3.0f}, {10.0f}, 0.25f};
  Run(kernels, in, state.data(), &out);
  // 8 * 0.5 = 4; u = 8; delta = 0.25 * (10 - 8) = 0.5; state = 4 + 2 * 0.5 = 5; out = 15.
  BOOST_TEST(state[0] == 5.0f);
  BOOST_TEST(out == 15.0f);
}

WASTE_KERNEL_CASE(long_strong_decay_forgets_and_stays_finite) {
  const int64_t keys = 64, values = 40;
  std::vector<float> state(keys * values, 1e30f);
  std::vector<float> out(values);
  Step in = RandomStep(5, keys, values);
  std::fill(in.decay.begin(), in.decay.end(), std::exp(-20.0f));
  std::fill(in.k.begin(), in.k.end(), 0.0f);
  for (int t = 0; t < 20; ++t) Run(kernels, in, state.data(), out.data());
  for (const float value : state) BOOST_TEST_REQUIRE(value == 0.0f);
  for (const float value : out) BOOST_TEST_REQUIRE(value == 0.0f);
}

// Where a stripe of values begins must not show.
WASTE_KERNEL_CASE(a_value_does_not_depend_on_its_neighbours) {
  const int64_t keys = 32, values = 77;
  const Step wide = RandomStep(21, keys, values);
  const std::vector<float> before = RandomFloats(22, keys * values);
  std::vector<float> wide_state = before;
  std::vector<float> wide_out(values);
  Run(kernels, wide, wide_state.data(), wide_out.data());
  for (int64_t j = 0; j < values; ++j) {
    Step narrow = wide;
    narrow.values = 1;
    narrow.v = {wide.v[j]};
    std::vector<float> state(keys);
    for (int64_t i = 0; i < keys; ++i) state[i] = before[i * values + j];
    float out = 0;
    Run(kernels, narrow, state.data(), &out);
    BOOST_TEST_REQUIRE(out == wide_out[j]);
    for (int64_t i = 0; i < keys; ++i) {
      BOOST_TEST_REQUIRE(state[i] == wide_state[i * values + j]);
    }
  }
}

WASTE_KERNEL_CASE(nothing_beyond_state_and_output_is_touched) {
  for (const int64_t values : {1, 7, 9, 17, 65}) {
    const int64_t keys = 5;
    const Step in = RandomStep(31, keys, values);
    Guarded<float> state(std::vector<float>(keys * values, 1.0f));
    Guarded<float> out(std::vector<float>(values, 0.0f));
    Guarded<float> v(in.v), k(in.k), q(in.q), decay(in.decay);
    Guarded<float> scratch(std::vector<float>(values, 0.0f));
    kernels.delta_step(state.data(), state.data(), decay.data(), k.data(), q.data(), v.data(),
                       in.beta, keys, values, out.data(), scratch.data());
    std::vector<float> expected_state(keys * values, 1.0f);
    std::vector<float> expected_out(values);
    Run(kernels, in, expected_state.data(), expected_out.data());
    BOOST_TEST(std::equal(expected_out.begin(), expected_out.end(), out.data()));
    BOOST_TEST(std::equal(expected_state.begin(), expected_state.end(), state.data()));
  }
}

// Aligned and not, because whole stripes of an aligned one may go past the caches.
WASTE_KERNEL_CASE(another_state_gets_the_bits_that_the_same_one_would_get) {
  for (const int64_t values : {1, 17, 64, 100, 128, 192}) {
    const int64_t keys = 24;
    const Step in = RandomStep(41, keys, values);
    const std::vector<float> state = RandomFloats(42, keys * values);
    std::vector<float> expected = state, expected_out(values), scratch(values);
    Run(kernels, in, expected.data(), expected_out.data());
    for (const size_t shift : {0, 1, 8}) {
      const std::vector<float> before = state;
      std::vector<float> memory(state.size() + 32, -77.0f), out(values);
      const size_t aligned = (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64 / 4;
      float* const next = memory.data() + aligned + shift;
      kernels.delta_step(before.data(), next, in.decay.data(), in.k.data(), in.q.data(),
                         in.v.data(), in.beta, keys, values, out.data(), scratch.data());
      BOOST_TEST_REQUIRE((before == state));
      BOOST_TEST_REQUIRE(std::memcmp(next, expected.data(), 4 * state.size()) == 0);
      BOOST_TEST_REQUIRE(std::memcmp(out.data(), expected_out.data(), 4 * out.size()) == 0);
      for (float* at = memory.data(); at != next; ++at) BOOST_TEST_REQUIRE(*at == -77.0f);
      for (float* at = next + state.size(); at != memory.data() + memory.size(); ++at)
        BOOST_TEST_REQUIRE(*at == -77.0f);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
