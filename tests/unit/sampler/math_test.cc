// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>

#include "sampler/math.h"

namespace waste {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The reference must know more digits than what it judges.
boost::test_tools::assertion_result LongDoubleIsLonger(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(LDBL_MANT_DIG > DBL_MANT_DIG);
  if (!result) result.message() << "long double has no more digits than double here";
  return result;
}

// How far `value` is from `exact`, in units of the last place of a double there.
double Ulps(double value, long double exact) {
  const double nearest = std::fabs(static_cast<double>(exact));
  if (nearest == 0 || std::isinf(nearest))
    return value == static_cast<double>(exact) ? 0 : kInfinity;
  const double unit = std::nextafter(nearest, kInfinity) - nearest;
  if (std::isinf(unit)) return std::fabs(value) == nearest ? 0 : kInfinity;
  return static_cast<double>(std::fabs((value - exact) / unit));
}

BOOST_AUTO_TEST_SUITE(portable_math)

BOOST_AUTO_TEST_CASE(exp_is_within_two_ulp, *boost::unit_test::precondition(LongDoubleIsLonger)) {
  std::mt19937_64 random(1);
  double worst = 0;
  for (const double scale : {1e-9, 0.01, 0.5, 1.0, 20.0, 708.0, 746.0}) {
    for (int i = 0; i < 100'000; ++i) {
      const double x = scale * (static_cast<double>(random() >> 11) * 0x1p-52 - 1.0);
      const double ulps = Ulps(PortableExp(x), std::exp(static_cast<long double>(x)));
      BOOST_REQUIRE_LE(ulps, 2.0);
      worst = std::max(worst, ulps);
    }
  }
  BOOST_TEST_MESSAGE("exp: at most " << worst << " ulp");
}

BOOST_AUTO_TEST_CASE(log_is_within_two_ulp, *boost::unit_test::precondition(LongDoubleIsLonger)) {
  std::mt19937_64 random(2);
  double worst = 0;
  const auto check = [&](double x) {
    const double ulps = Ulps(PortableLog(x), std::log(static_cast<long double>(x)));
    BOOST_REQUIRE_LE(ulps, 2.0);
    worst = std::max(worst, ulps);
  };
  for (int i = 0; i < 300'000; ++i) {
    check(std::bit_cast<double>(random() % std::bit_cast<uint64_t>(kInfinity)));  // any size
    check(1.0 + 0.5 * (static_cast<double>(random() >> 11) * 0x1p-52 - 1.0));     // around 1
    check(1.0 + 1e-6 * (static_cast<double>(random() >> 11) * 0x1p-52 - 1.0));
    check(1.0 + static_cast<double>(random() % 163840));  // sums of a softmax
  }
  BOOST_TEST_MESSAGE("log: at most " << worst << " ulp");
}

BOOST_AUTO_TEST_CASE(exact_values_are_exact) {
  BOOST_TEST(PortableExp(0.0) == 1.0);
  BOOST_TEST(PortableExp(-0.0) == 1.0);
  BOOST_TEST(PortableLog(1.0) == 0.0);
  BOOST_TEST(PortableExp(1.0) == 0x1.5bf0a8b145769p1);
  BOOST_TEST(PortableLog(2.0) == 0x1.62e42fefa39efp-1);
}

BOOST_AUTO_TEST_CASE(the_ends_of_the_range) {
  BOOST_TEST(PortableExp(kInfinity) == kInfinity);
  BOOST_TEST(PortableExp(-kInfinity) == 0.0);
  BOOST_TEST(std::isnan(PortableExp(kNan)));
  BOOST_TEST(std::isfinite(PortableExp(709.782712893384)));
  BOOST_TEST(PortableExp(709.782712893385) == kInfinity);
  BOOST_TEST(PortableExp(-745.13321910194110) == 0x1p-1074);
  BOOST_TEST(PortableExp(-745.13321910194123) == 0.0);
  BOOST_TEST(PortableExp(DBL_MAX) == kInfinity);
  BOOST_TEST(PortableExp(-DBL_MAX) == 0.0);
  BOOST_TEST(PortableExp(5e-324) == 1.0);
  BOOST_TEST(PortableLog(0.0) == -kInfinity);
  BOOST_TEST(PortableLog(-0.0) == -kInfinity);
  BOOST_TEST(PortableLog(kInfinity) == kInfinity);
  BOOST_TEST(std::isnan(PortableLog(-1.0)));
  BOOST_TEST(std::isnan(PortableLog(-kInfinity)));
  BOOST_TEST(std::isnan(PortableLog(kNan)));
  BOOST_TEST(PortableLog(5e-324) == -0x1.74385446d71c3p9);
}

// The bits themselves, so that a machine or compiler that rounds otherwise is noticed.
BOOST_AUTO_TEST_CASE(bits_are_the_same_on_every_machine) {
  uint64_t sum = 0;
  for (int i = -7000; i <= 7000; ++i) {
    sum = sum * 31 + std::bit_cast<uint64_t>(PortableExp(i * 0x1.999999999999ap-4));
    sum = sum * 31 + std::bit_cast<uint64_t>(PortableLog((i + 7001) * 0x1.3c0ca428c59fbp-3));
  }
  BOOST_TEST(sum == 16380592489535628136u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
