// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include "sampler/pcg32.h"

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(pcg32)

// The output its author publishes for the demonstration program.
BOOST_AUTO_TEST_CASE(seed_42_stream_54_gives_the_published_numbers) {
  Pcg32 random(42, 54);
  for (const uint32_t expected :
       {0xa15c02b7u, 0x7b47f409u, 0xba1d3330u, 0x83d2f293u, 0xbfa4784bu, 0xcbed606eu})
    BOOST_TEST(random.Next() == expected);
}

BOOST_AUTO_TEST_CASE(unit_is_one_draw_scaled) {
  Pcg32 random(42, 54);
  BOOST_TEST(random.NextUnit() == 0xa15c02b7u / 4294967296.0);
  BOOST_TEST(random.Next() == 0x7b47f409u);
}

BOOST_AUTO_TEST_CASE(streams_differ) {
  Pcg32 a(42, 54), b(42, 55);
  int same = 0;
  for (int i = 0; i < 100; ++i) same += a.Next() == b.Next();
  BOOST_TEST(same == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
