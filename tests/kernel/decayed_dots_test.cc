// SPDX-License-Identifier: Apache-2.0
//
// Rows times a vector that decays from row to row: against the formula in double.

#include <cmath>

#include "support/guarded_memory.h"
#include "support/kernel_case.h"

namespace waste {
namespace {

constexpr int64_t kLengths[] = {1, 3, 8, 15, 16, 17, 31, 32, 33, 63, 100, 128};

// Decays of exp(-20) and of 0 beside decays of almost 1.
std::vector<float> RandomDecays(uint32_t seed, int64_t count) {
  std::vector<float> decays = RandomFloats(seed, count);
  for (size_t i = 0; i < decays.size(); ++i)
    decays[i] = i % 7 == 0   ? 0.0f
                : i % 3 == 0 ? std::exp(-20.0f)
                             : std::exp(-0.1f * std::fabs(decays[i]));
  return decays;
}

struct Dots {
  std::vector<float> x, of_a, of_b;
};

// Rows `stride` apart, results `to_stride`.
Dots Run(const Kernels& kernels, const std::vector<float>& decay, const std::vector<float>& a,
         const std::vector<float>& b, int64_t stride, int64_t rows, const std::vector<float>& x,
         int64_t to_stride) {
  Dots dots{x, std::vector<float>(rows * to_stride, -77.0f), {}};
  dots.of_b = dots.of_a;
  kernels.decayed_dots(decay.data(), a.data(), b.data(), stride, rows, std::ssize(x), dots.x.data(),
                       dots.of_a.data(), dots.of_b.data(), to_stride);
  return dots;
}

BOOST_AUTO_TEST_SUITE(decayed_dots)

WASTE_KERNEL_CASE(each_row_meets_what_is_left_of_x) {
  for (const int64_t n : kLengths)
    for (const int64_t rows : {0, 1, 2, 15}) {
      const int64_t stride = n + 5, to_stride = 3, floats = (rows + 1) * stride;
      const std::vector<float> decay = RandomDecays(1, floats), a = RandomFloats(2, floats),
                               b = RandomFloats(3, floats), before = RandomFloats(4, n);
      const Dots got = Run(kernels, decay, a, b, stride, rows, before, to_stride);
      std::vector<float> x = before;
      for (int64_t t = 0; t < rows; ++t) {
        for (int64_t i = 0; i < n; ++i) x[i] *= decay[t * stride + i];
        for (const auto& [of, to] : {std::pair(&a, &got.of_a), std::pair(&b, &got.of_b)}) {
          const ExactDot exact(of->data() + t * stride, x.data(), n);
          BOOST_TEST_REQUIRE(std::fabs((*to)[t * to_stride] - exact.value) <=
                                 static_cast<double>(n) * kRounding * exact.magnitude + 1e-44,
                             n << " floats, row " << t);
          BOOST_TEST((*to)[t * to_stride + 1] == -77.0f);
        }
      }
      BOOST_TEST(got.x == x, boost::test_tools::per_element());
    }
}

WASTE_KERNEL_CASE(nothing_beyond_rows_x_and_results_is_touched) {
  for (const int64_t n : kLengths) {
    const int64_t rows = 3;
    Guarded<float> decay(RandomDecays(5, rows * n)), a(RandomFloats(6, rows * n));
    Guarded<float> b(RandomFloats(7, rows * n)), x(RandomFloats(8, n));
    Guarded<float> of_a(std::vector<float>(rows, 0.0f)), of_b(std::vector<float>(rows, 0.0f));
    kernels.decayed_dots(decay.data(), a.data(), b.data(), n, rows, n, x.data(), of_a.data(),
                         of_b.data(), 1);
    const Dots expected = Run(kernels, RandomDecays(5, rows * n), RandomFloats(6, rows * n),
                              RandomFloats(7, rows * n), n, rows, RandomFloats(8, n), 1);
    for (int64_t t = 0; t < rows; ++t) {
      BOOST_TEST(of_a.data()[t] == expected.of_a[t]);
      BOOST_TEST(of_b.data()[t] == expected.of_b[t]);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
