// SPDX-License-Identifier: Apache-2.0
//
// exp, sigmoid, softplus and tanh over arrays, against double.

#include <algorithm>
#include <limits>

#include "support/guarded_memory.h"
#include "support/kernel_case.h"

namespace waste {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double ExactExp(double x) { return std::exp(std::clamp(x, -87.0, 88.0)); }

struct Function {
  const char* name;
  void (*Kernels::*run)(const float* x, int64_t n, float* y);
  double (*exact)(double x);
  double smallest;  // results below it may be anything as small
};

const Function kFunctions[] = {
    {"exp", &Kernels::exp, ExactExp, 0.0},
    {"sigmoid", &Kernels::sigmoid, [](double x) { return 1.0 / (1.0 + ExactExp(-x)); }, 0.0},
    {"softplus", &Kernels::softplus,
     [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }, 1e-30},
    {"tanh", &Kernels::tanh, [](double x) { return std::tanh(x); }, 1e-30}};

// Dense near 0, where functions cancel; beyond where they level off; both signs.
std::vector<float> Sweep() {
  std::vector<float> values = {0.0f, -0.0f, 0.2f, 0.19999999f, 1e-38f, 1e-45f, 3e38f, -3e38f};
  for (int i = -9200; i <= 9200; ++i) values.push_back(static_cast<float>(i) / 97.0f);
  for (int i = -4000; i <= 4000; ++i) values.push_back(static_cast<float>(i) / 6007.0f);
  for (float x = 1e-30f; x < 1e30f; x *= 1.37f) values.insert(values.end(), {x, -x});
  return values;
}

BOOST_AUTO_TEST_SUITE(functions)

WASTE_KERNEL_CASE(relative_errors_are_at_most_a_millionth) {
  const std::vector<float> x = Sweep();
  for (const Function& function : kFunctions) {
    std::vector<float> y(x.size());
    (kernels.*function.run)(x.data(), static_cast<int64_t>(x.size()), y.data());
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = function.exact(x[i]);
      const double error = std::fabs(y[i] - exact);
      if (!(error <= 1e-6 * std::fabs(exact) + function.smallest))
        BOOST_TEST_REQUIRE(false,
                           function.name << " of " << x[i] << ": " << y[i] << ", not " << exact);
      if (std::fabs(exact) > 1e-30) worst = std::max(worst, error / std::fabs(exact));
    }
    BOOST_TEST_MESSAGE(function.name << " on " << IsaName(kernels.isa) << ": " << worst);
  }
}

WASTE_KERNEL_CASE(what_is_no_number_stays_none_and_infinities_are_limits) {
  // Each at every lane of a vector and in a rest.
  for (const int64_t n : {1, 5, 16, 37}) {
    for (const Function& function : kFunctions) {
      const auto run = [&](float value) {
        std::vector<float> y(n);
        const std::vector<float> x(n, value);
        (kernels.*function.run)(x.data(), n, y.data());
        for (const float same : y) BOOST_TEST_REQUIRE((same == y[0] || std::isnan(same)));
        return y[0];
      };
      BOOST_TEST(std::isnan(run(std::nanf(""))), function.name);
      BOOST_TEST(std::isnan(run(-std::nanf(""))), function.name);
      const float limit = function.exact(1e30) == 1e30 ? kInfinity : run(1e30f);
      BOOST_TEST(run(kInfinity) == limit, function.name);
      BOOST_TEST(run(-kInfinity) == run(-1e30f));
    }
  }
}

WASTE_KERNEL_CASE(e_to_the_x_is_held_between_its_limits) {
  const std::vector<float> x = {-kInfinity, -1e30f, -87.0f, 88.0f, 89.0f, kInfinity};
  std::vector<float> y(x.size());
  kernels.exp(x.data(), static_cast<int64_t>(x.size()), y.data());
  BOOST_TEST(y[0] == y[2]);
  BOOST_TEST(y[1] == y[2]);
  BOOST_TEST(y[4] == y[3]);
  BOOST_TEST(y[5] == y[3]);
}

// Neither the place in an array nor its length shows.
WASTE_KERNEL_CASE(an_element_depends_on_nothing_else_and_y_may_be_x) {
  for (const Function& function : kFunctions) {
    for (int64_t n = 0; n <= 70; ++n) {
      std::vector<float> x = RandomFloats(41, 70);
      for (float& value : x) value *= 9.0f;
      std::vector<float> whole(70);
      (kernels.*function.run)(x.data(), 70, whole.data());
      std::vector<float> expected(whole.begin() + (70 - n), whole.end());
      std::vector<float> in_place(x.begin() + (70 - n), x.end());
      (kernels.*function.run)(in_place.data(), n, in_place.data());
      BOOST_TEST_REQUIRE((in_place == expected), function.name << ", " << n);
    }
  }
}

WASTE_KERNEL_CASE(nothing_beyond_the_ends_is_touched) {
  for (const Function& function : kFunctions) {
    for (int64_t n = 0; n <= 70; ++n) {
      const std::vector<float> values = RandomFloats(42, n);
      Guarded<float> x(values), y(std::vector<float>(n, 0.0f));
      (kernels.*function.run)(x.data(), n, y.data());
      std::vector<float> expected(n + 1, -77.0f);
      (kernels.*function.run)(values.data(), n, expected.data());
      BOOST_TEST_REQUIRE(std::equal(y.data(), y.data() + n, expected.data()));
      BOOST_TEST_REQUIRE(expected[n] == -77.0f);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
