// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

#include "base/half.h"

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(half)

BOOST_AUTO_TEST_CASE(every_half_survives_the_way_to_float_and_back) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      BOOST_REQUIRE(std::isnan(HalfToFloat(FloatToHalf(value))));
    } else {
      BOOST_REQUIRE_EQUAL(FloatToHalf(value), bits);
    }
  }
}

BOOST_AUTO_TEST_CASE(subnormals_are_kept) {
  BOOST_TEST(HalfToFloat(0x0001) == 0x1p-24f);
  BOOST_TEST(FloatToHalf(0x1p-24f) == 0x0001);
  BOOST_TEST(FloatToHalf(0x1.8p-24f) == 0x0002);  // a tie goes to the even one
  BOOST_TEST(FloatToHalf(0x1p-25f) == 0x0000);
}

BOOST_AUTO_TEST_CASE(rounding_is_to_the_nearest_half_for_values_between) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = HalfToFloat(static_cast<uint16_t>(bits));
    const float high = HalfToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    BOOST_REQUIRE_EQUAL(FloatToHalf(middle), bits + (bits & 1));
    BOOST_REQUIRE_EQUAL(FloatToHalf(std::nextafter(middle, high)), bits + 1);
    BOOST_REQUIRE_EQUAL(FloatToHalf(std::nextafter(middle, low)), bits);
  }
}

BOOST_AUTO_TEST_CASE(what_is_too_large_is_infinite) {
  BOOST_TEST(FloatToHalf(65504.0f) == 0x7BFF);
  BOOST_TEST(FloatToHalf(65519.0f) == 0x7BFF);
  BOOST_TEST(FloatToHalf(65520.0f) == 0x7C00);
  BOOST_TEST(FloatToHalf(-std::numeric_limits<float>::infinity()) == 0xFC00);
}

BOOST_AUTO_TEST_CASE(bfloat16_is_the_upper_half_of_a_float) {
  BOOST_TEST(Bfloat16ToFloat(0x3F80) == 1.0f);
  BOOST_TEST(Bfloat16ToFloat(0xC000) == -2.0f);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
