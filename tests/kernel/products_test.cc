// SPDX-License-Identifier: Apache-2.0
//
// multiply_add.

#include <algorithm>

#include "support/guarded_memory.h"
#include "support/kernel_case.h"

namespace waste {
namespace {

constexpr int64_t kGap = 3;  // floats between rows that belong to nobody
constexpr float kUntouched = -77.0f;

// a is [m, k] or, turned, [k, m]; b is [k, n], c is [m, n]. Rows are kGap floats apart, and nothing
// stands behind the last row.
struct Product {
  int64_t m, k, n;
  bool turned;
  std::vector<float> a, b, c;

  Product(int64_t rows, int64_t steps, int64_t columns, bool is_turned)
      : m(rows), k(steps), n(columns), turned(is_turned) {
    a = turned ? Rows(11, k, m) : Rows(11, m, k);
    b = Rows(12, k, n);
    c = Rows(13, m, n);
  }
  int64_t a_row() const { return turned ? 1 : k + kGap; }
  int64_t a_step() const { return turned ? m + kGap : 1; }
  int64_t stride() const { return n + kGap; }

  // The tolerance of dot with c as one more term.
  void RequireRight(const float* result) const {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double value = c[i * stride() + j], magnitude = std::fabs(value);
        for (int64_t t = 0; t < k; ++t) {
          const double term = double{a[i * a_row() + t * a_step()]} * b[t * stride() + j];
          value += term;
          magnitude += std::fabs(term);
        }
        const double bound = static_cast<double>(k + 1) * kRounding * magnitude;
        if (std::fabs(result[i * stride() + j] - value) <= bound) continue;
        BOOST_TEST_REQUIRE(false, m << " x " << k << " x " << n << ", element " << i << ", " << j);
      }
    }
  }
  void RequireGapsUntouched(const float* result) const {
    if (n == 0) return;  // no rows in memory
    for (int64_t i = 0; i + 1 < m; ++i)
      for (int64_t j = n; j < stride(); ++j)
        BOOST_TEST_REQUIRE(result[i * stride() + j] == kUntouched);
  }

 private:
  static std::vector<float> Rows(uint32_t seed, int64_t rows, int64_t columns) {
    if (rows == 0 || columns == 0) return {};
    std::vector<float> values = RandomFloats(seed, rows * (columns + kGap) - kGap);
    for (size_t i = 0; i < values.size(); ++i)
      if (static_cast<int64_t>(i) % (columns + kGap) >= columns) values[i] = kUntouched;
    return values;
  }
};

// Rows [row, row + m) and columns [column, column + n) of the product.
std::vector<float> Part(const Kernels& kernels, const Product& p, int64_t row, int64_t m,
                        int64_t column, int64_t n) {
  std::vector<float> c = p.c;
  kernels.multiply_add(p.a.data() + row * p.a_row(), p.a_row(), p.a_step(), p.b.data() + column,
                       p.stride(), m, p.k, n, c.data() + row * p.stride() + column, p.stride());
  return c;
}

BOOST_AUTO_TEST_SUITE(products)

WASTE_KERNEL_CASE(sums_are_within_their_tolerance_and_nothing_beyond_is_touched) {
  for (const int64_t m : {0, 1, 2, 3, 4, 5, 9}) {
    for (const int64_t k : {0, 1, 2, 17, 130}) {
      for (const int64_t n : {0, 1, 7, 8, 9, 15, 16, 17, 33, 64, 65, 100}) {
        for (const bool turned : {false, true}) {
          const Product p(m, k, n, turned);
          Guarded<float> a(p.a), b(p.b), c(p.c);
          kernels.multiply_add(a.data(), p.a_row(), p.a_step(), b.data(), p.stride(), m, k, n,
                               c.data(), p.stride());
          p.RequireRight(c.data());
          p.RequireGapsUntouched(c.data());
        }
      }
    }
  }
}

WASTE_KERNEL_CASE(an_element_does_not_depend_on_how_many_others_there_are) {
  for (const bool turned : {false, true}) {
    const Product p(9, 37, 85, turned);
    const std::vector<float> whole = Part(kernels, p, 0, p.m, 0, p.n);
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t column = 0; column < p.n; column += 5) {
        const int64_t m = std::min<int64_t>(p.m - row, 1 + (row + column) % 6);
        const int64_t n = std::min<int64_t>(p.n - column, 1 + 7 * row + column % 11);
        std::vector<float> expected = p.c;
        for (int64_t r = row; r < row + m; ++r)
          std::copy_n(&whole[r * p.stride() + column], n, &expected[r * p.stride() + column]);
        BOOST_TEST_REQUIRE((Part(kernels, p, row, m, column, n) == expected));
      }
    }
  }
}

// One product after another, each added by itself: what a sum in another order would lose.
WASTE_KERNEL_CASE(products_are_added_in_ascending_order) {
  const std::vector<float> a = {0x1p25f, 1.0f, -0x1p25f}, b(3 * 40, 1.0f);
  std::vector<float> c(40, 0.0f);
  kernels.multiply_add(a.data(), 3, 1, b.data(), 40, 1, 3, 40, c.data(), 40);
  for (const float value : c) BOOST_TEST(value == 0.0f);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
