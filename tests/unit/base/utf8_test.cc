// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace waste {
namespace {

// Table 3-7 of the Unicode standard, a row a line: the ranges of the bytes of a character.
struct Range {
  int32_t low, high;
};
struct Row {
  int32_t size;
  Range bytes[4];
};
constexpr Row kTable[] = {
    {1, {{0x00, 0x7F}}},
    {2, {{0xC2, 0xDF}, {0x80, 0xBF}}},
    {3, {{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}}},
    {3, {{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {3, {{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}}},
    {3, {{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {4, {{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {4, {{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {4, {{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}}},
};

struct Prefix {
  int32_t size;   // of the longest start of the text that a character could have
  bool complete;  // and it is a character
  bool at_end;    // and the text ends there
};

Prefix LongestPrefix(std::string_view text) {
  Prefix best{0, false, false};
  for (const Row& row : kTable) {
    int32_t n = 0;
    const int32_t end = std::min({row.size, 4, static_cast<int32_t>(text.size())});
    while (n < end) {
      const int32_t byte = static_cast<uint8_t>(text[n]);
      if (byte < row.bytes[n].low || byte > row.bytes[n].high) break;
      ++n;
    }
    if (n > best.size)
      best = {n, n == row.size, n < row.size && n == static_cast<int32_t>(text.size())};
  }
  return best;
}

int64_t FindInvalidByTable(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Prefix prefix = LongestPrefix(text.substr(at));
    if (!prefix.complete) return static_cast<int64_t>(at);
    at += static_cast<size_t>(prefix.size);
  }
  return -1;
}

// Cheap to call millions of times: Boost's macros are used only when it fails.
void CheckAgainstTable(std::string_view text) {
  const Prefix prefix = LongestPrefix(text);
  const Utf8Step step = DecodeUtf8(text);
  const int32_t size = prefix.size > 0 ? prefix.size : 1;  // a byte no character starts with
  const bool same = step.valid == prefix.complete && step.size == size &&
                    step.truncated == prefix.at_end && (step.valid || step.code_point == 0xFFFD) &&
                    FindInvalidUtf8(text) == FindInvalidByTable(text);
  if (same) return;
  for (const char c : text) BOOST_TEST_MESSAGE(static_cast<int>(static_cast<uint8_t>(c)));
  BOOST_FAIL("differs from table 3-7 on the bytes above");
}

BOOST_AUTO_TEST_SUITE(utf8)

BOOST_AUTO_TEST_CASE(all_sequences_of_up_to_three_bytes_are_judged_as_table_3_7_does,
                     *boost::unit_test::label("slow")) {
  char bytes[3];
  for (int32_t a = 0; a < 256; ++a) {
    bytes[0] = static_cast<char>(a);
    CheckAgainstTable({bytes, 1});
    for (int32_t b = 0; b < 256; ++b) {
      bytes[1] = static_cast<char>(b);
      CheckAgainstTable({bytes, 2});
      // After ASCII the rest is a text of two bytes again, of which all were seen.
      if (a > 0 && a < 0x7F) continue;
      for (int32_t c = 0; c < 256; ++c) {
        bytes[2] = static_cast<char>(c);
        CheckAgainstTable({bytes, 3});
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(sequences_of_four_bytes_are_judged_at_every_edge) {
  constexpr int32_t kEdges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
  char bytes[5] = {};
  for (int32_t a = 0xE0; a < 256; ++a) {
    for (int32_t b = 0; b < 256; ++b) {
      for (const int32_t c : kEdges) {
        for (const int32_t d : kEdges) {
          const int32_t all[] = {a, b, c, d};
          for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(all[i]);
          CheckAgainstTable({bytes, 4});
          CheckAgainstTable({bytes, 5});
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_code_point_survives_the_way_to_bytes_and_back,
                     *boost::unit_test::label("slow")) {
  std::string text;
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    text.clear();
    AppendUtf8(text, code_point);
    const Utf8Step step = DecodeUtf8(text);
    BOOST_REQUIRE(step.valid);
    BOOST_REQUIRE(step.code_point == code_point);
    BOOST_REQUIRE(step.size == static_cast<int32_t>(text.size()));
  }
}

BOOST_AUTO_TEST_CASE(known_characters_have_their_known_bytes) {
  std::string text;
  for (const char32_t code_point : {U'a', U'\u00E9', U'\u6F22', U'\U0001F600'})
    AppendUtf8(text, code_point);
  BOOST_TEST(text == "a\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x98\x80");
  BOOST_TEST(FindInvalidUtf8(text) == -1);
}

BOOST_AUTO_TEST_CASE(the_first_bad_byte_is_found) {
  BOOST_TEST(FindInvalidUtf8("") == -1);
  BOOST_TEST(FindInvalidUtf8("abc\xFF") == 3);
  BOOST_TEST(FindInvalidUtf8("\xC3\xA9\xC3") == 2);
  BOOST_TEST(FindInvalidUtf8("a\xED\xA0\x80") == 1);                    // a surrogate
  BOOST_TEST(FindInvalidUtf8(std::string_view("\0\xC0\x80", 3)) == 1);  // an overlong zero
}

BOOST_AUTO_TEST_CASE(an_empty_text_is_no_character) {
  const Utf8Step step = DecodeUtf8("");
  BOOST_TEST(!step.valid);
  BOOST_TEST(!step.truncated);
  BOOST_TEST(step.size == 0);
}

BOOST_AUTO_TEST_CASE(a_cut_never_splits_a_character) {
  const std::string text = "a\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x98\x80";
  constexpr size_t kCuts[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (int64_t max = 0; max < 12; ++max)
    BOOST_TEST(CutUtf8(text, max) == std::string_view(text).substr(0, kCuts[max]));
  BOOST_TEST(CutUtf8(text, -1).empty());
  BOOST_TEST(CutUtf8("", 5).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
