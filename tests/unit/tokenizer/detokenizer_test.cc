// SPDX-License-Identifier: Apache-2.0

#include "tokenizer/detokenizer.h"

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace waste {
namespace {

// What each step gives, with a bar behind each, and what Finish gives.
std::string Steps(const std::vector<std::string>& parts) {
  Detokenizer detokenizer;
  std::string all;
  for (const std::string& part : parts) {
    detokenizer.Add(part, all);
    all += '|';
  }
  detokenizer.Finish(all);
  BOOST_TEST(!detokenizer.holding());
  return all;
}

BOOST_AUTO_TEST_SUITE(detokenizer)

BOOST_AUTO_TEST_CASE(characters_come_out_whole) {
  BOOST_TEST(Steps({"a", "b"}) == "a|b|");
  BOOST_TEST(Steps({"\xE4", "\xB8", "\xAD"}) == "||中|");
  BOOST_TEST(Steps({"x\xF0\x9F", "\x98\x80y"}) == "x|😀y|");
  BOOST_TEST(Steps({"", ""}) == "||");
}

BOOST_AUTO_TEST_CASE(bad_bytes_become_one_replacement_for_each_maximal_sequence) {
  BOOST_TEST(Steps({"\xFF"}) == "\uFFFD|");
  BOOST_TEST(Steps({"\xE4\xB8"}) == "|\uFFFD");  // cut at the end
  BOOST_TEST(Steps({"\xE4\xB8", "a"}) == "|\uFFFDa|");
  BOOST_TEST(Steps({"\xE4\xB8", "\xE4\xB8\xAD"}) == "|\uFFFD中|");
  BOOST_TEST(Steps({"\xC0\x80"}) == "\uFFFD\uFFFD|");  // overlong
  BOOST_TEST(Steps({"\xED", "\xA0\x80"}) == "|\uFFFD\uFFFD\uFFFD|");
  BOOST_TEST(Steps({"\xF4\x90"}) == "\uFFFD\uFFFD|");
}

BOOST_AUTO_TEST_CASE(any_cut_gives_the_same_text) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (uint64_t left = random() % 12; left > 0; --left) {
      if (random() % 2)
        AppendUtf8(bytes, static_cast<char32_t>(random() % 0xD800));
      else
        bytes += static_cast<char>(0x80 + random() % 128);
    }
    Detokenizer at_once, in_parts;
    std::string expected, got;
    at_once.Add(bytes, expected);
    at_once.Finish(expected);
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = 1 + random() % 3;
      in_parts.Add(std::string_view(bytes).substr(at, size), got);
      BOOST_TEST(FindInvalidUtf8(got) == -1);
      at += size;
    }
    in_parts.Finish(got);
    BOOST_TEST(got == expected);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
