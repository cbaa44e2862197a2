// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <optional>

#include "base/checked.h"

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(checked)

BOOST_AUTO_TEST_CASE(sums_and_products_that_fit_are_exact) {
  BOOST_TEST(*CheckedAdd(2, 3) == 5);
  BOOST_TEST(*CheckedAdd(INT64_MAX, 0) == INT64_MAX);
  BOOST_TEST(*CheckedAdd(INT64_MAX, INT64_MIN) == -1);
  BOOST_TEST(*CheckedMultiply(-4, 5) == -20);
  BOOST_TEST(*CheckedMultiply(INT64_MAX, 1) == INT64_MAX);
  BOOST_TEST(*CheckedMultiply(int64_t{1} << 31, int64_t{1} << 31) == int64_t{1} << 62);
  BOOST_TEST(*CheckedMultiply(INT64_MIN, 0) == 0);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_no_result) {
  BOOST_TEST(!CheckedAdd(INT64_MAX, 1).has_value());
  BOOST_TEST(!CheckedAdd(INT64_MIN, -1).has_value());
  BOOST_TEST(!CheckedMultiply(int64_t{1} << 32, int64_t{1} << 31).has_value());
  BOOST_TEST(!CheckedMultiply(INT64_MIN, -1).has_value());
  // 2^33 * 2^31 * 2^1 wraps to 0: the first step must already say no.
  BOOST_TEST(!CheckedMultiply(int64_t{1} << 33, int64_t{1} << 31).has_value());
}

BOOST_AUTO_TEST_CASE(division_rounds_up) {
  const struct {
    int64_t a, b, quotient, multiple;
  } kCases[] = {{0, 64, 0, 0},    {1, 64, 1, 64}, {63, 64, 1, 64},       {64, 64, 1, 64},
                {65, 64, 2, 128}, {7, 1, 7, 7},   {4095, 4096, 1, 4096}, {4097, 4096, 2, 8192},
                {1, 3, 1, 3},     {10, 3, 4, 12}};
  for (const auto& c : kCases) {
    BOOST_TEST(CeilDivide(c.a, c.b) == c.quotient);
    BOOST_TEST(RoundUp(c.a, c.b) == c.multiple);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
