// SPDX-License-Identifier: Apache-2.0

#include "engine/stop_matcher.h"

#include <boost/test/unit_test.hpp>
#include <random>

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(stop_matcher)

// What comes out when `text` arrives in pieces of the given sizes.
std::string Through(const std::vector<std::string>& stops, const std::string& text,
                    std::mt19937& random, bool& stopped) {
  StopMatcher matcher;
  for (const std::string& stop : stops) matcher.AddStop(stop);
  std::string out;
  stopped = false;
  for (size_t at = 0; at < text.size() && !stopped;) {
    const size_t size = std::min<size_t>(1 + random() % 4, text.size() - at);
    stopped = matcher.Add(text.substr(at, size), out);
    at += size;
  }
  if (!stopped) matcher.Finish(out);
  return out;
}

BOOST_AUTO_TEST_CASE(any_cut_of_the_text_gives_what_the_whole_text_gives) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t k = random() % 24; k > 0; --k) text += "ab\n"[random() % 3];
    const std::vector<std::string> stops = {std::string(1 + random() % 3, 'a') + "b", "\n\n",
                                            "bab"};
    size_t first = std::string::npos;
    for (const std::string& stop : stops) first = std::min(first, text.find(stop));
    bool stopped;
    const std::string out = Through(stops, text, random, stopped);
    // A piece may complete a later stop string before an earlier one that began sooner; what came
    // out is then still a beginning of the text without any stop string in it.
    BOOST_REQUIRE_EQUAL(stopped, first != std::string::npos);
    BOOST_REQUIRE(text.starts_with(out));
    for (const std::string& stop : stops) BOOST_REQUIRE(out.find(stop) == std::string::npos);
    if (!stopped) BOOST_REQUIRE_EQUAL(out, text);
  }
}

BOOST_AUTO_TEST_CASE(earliest_of_several_stops_wins_within_a_piece) {
  StopMatcher matcher;
  matcher.AddStop("late");
  matcher.AddStop("early");
  std::string out;
  BOOST_TEST(matcher.Add("x early late", out));
  BOOST_TEST(out == "x ");
}

BOOST_AUTO_TEST_CASE(nothing_is_held_without_stops) {
  StopMatcher matcher;
  std::string out;
  BOOST_TEST(!matcher.Add("text", out));
  BOOST_TEST(out == "text");
  BOOST_TEST(!matcher.holding());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
