// SPDX-License-Identifier: Apache-2.0
//
// dot and axpy.

#include <algorithm>
#include <limits>

#include "support/guarded_memory.h"
#include "support/kernel_case.h"

namespace waste {
namespace {

std::vector<int64_t> AwkwardSizes() {
  std::vector<int64_t> sizes;
  for (int64_t n = 0; n <= 140; ++n) sizes.push_back(n);
  sizes.insert(sizes.end(), {255, 256, 257, 1000, 7168, 7169});
  return sizes;
}

BOOST_AUTO_TEST_SUITE(dense)

WASTE_KERNEL_CASE(dot_is_within_its_tolerance_at_every_size) {
  for (const int64_t n : AwkwardSizes()) {
    const std::vector<float> a = RandomFloats(1, n);
    const std::vector<float> b = RandomFloats(2, n);
    const ExactDot exact(a.data(), b.data(), n);
    const double error = std::fabs(kernels.dot(a.data(), b.data(), n) - exact.value);
    BOOST_TEST_REQUIRE(error <= static_cast<double>(n) * kRounding * exact.magnitude, "n = " << n);
  }
}

WASTE_KERNEL_CASE(dot_counts_every_element_once) {
  for (const int64_t n : AwkwardSizes()) {
    const std::vector<float> ones(n, 1.0f);
    std::vector<float> powers(n);
    for (int64_t i = 0; i < n; ++i) powers[i] = static_cast<float>(i % 97);
    float expected = 0;
    for (const float value : powers) expected += value;  // integers below 2^24: exact
    BOOST_TEST_REQUIRE(kernels.dot(powers.data(), ones.data(), n) == expected, "n = " << n);
  }
}

WASTE_KERNEL_CASE(dot_reads_nothing_beyond_its_ends) {
  for (const int64_t n : AwkwardSizes()) {
    Guarded<float> a(std::vector<float>(n, 0.5f));
    Guarded<float> b(std::vector<float>(n, 2.0f));
    BOOST_TEST_REQUIRE(kernels.dot(a.data(), b.data(), n) == static_cast<float>(n));
  }
}

WASTE_KERNEL_CASE(dot_keeps_what_is_not_finite) {
  std::vector<float> a(50, 1.0f);
  const std::vector<float> b(50, 1.0f);
  a[49] = std::numeric_limits<float>::infinity();
  BOOST_TEST(std::isinf(kernels.dot(a.data(), b.data(), 50)));
  a[3] = -a[49];
  BOOST_TEST(std::isnan(kernels.dot(a.data(), b.data(), 50)));
}

WASTE_KERNEL_CASE(multiply_and_scale_rows_round_once_and_touch_nothing_beyond) {
  for (const int64_t n : AwkwardSizes()) {
    const std::vector<float> x = RandomFloats(3, 3 * n),
                             f = RandomFloats(4, std::max<int64_t>(n, 3));
    Guarded<float> in(x), factors(f), out(std::vector<float>(3 * n, 0.0f));
    kernels.scale_rows(factors.data(), in.data(), 3, n, out.data());
    for (int64_t i = 0; i < 3 * n; ++i) BOOST_TEST_REQUIRE(out.data()[i] == f[i / n] * x[i]);
    Guarded<float> one(std::vector<float>(x.begin(), x.begin() + n));
    Guarded<float> other(std::vector<float>(f.begin(), f.begin() + n));
    kernels.multiply(one.data(), other.data(), n, other.data());  // y may be f
    for (int64_t i = 0; i < n; ++i) BOOST_TEST_REQUIRE(other.data()[i] == x[i] * f[i]);
  }
}

WASTE_KERNEL_CASE(axpy_rounds_once_where_it_fuses_and_twice_where_not) {
  for (const int64_t n : AwkwardSizes()) {
    const std::vector<float> x = RandomFloats(3, n);
    const std::vector<float> before = RandomFloats(4, n);
    std::vector<float> y = before;
    y.push_back(42.0f);
    const float a = 0.7f;
    kernels.axpy(a, x.data(), y.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const float expected =
          kernels.isa == Isa::kScalar ? before[i] + a * x[i] : std::fma(a, x[i], before[i]);
      BOOST_TEST_REQUIRE(y[i] == expected);
    }
    BOOST_TEST_REQUIRE(y[n] == 42.0f);
  }
}

WASTE_KERNEL_CASE(axpy_touches_nothing_beyond_its_ends) {
  for (const int64_t n : AwkwardSizes()) {
    Guarded<float> x(std::vector<float>(n, 1.0f));
    Guarded<float> y(std::vector<float>(n, 2.0f));
    kernels.axpy(3.0f, x.data(), y.data(), n);
    BOOST_TEST_REQUIRE(std::all_of(y.data(), y.data() + n, [](float v) { return v == 5.0f; }));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
