// SPDX-License-Identifier: Apache-2.0

#include "tokenizer/tokenizer.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "support/small_tokenizer.h"

namespace waste {
namespace {

using Ids = std::vector<int32_t>;
using Specials = std::vector<std::pair<int32_t, std::string>>;

Ids Encoded(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.Encode(text, ids);
  return ids;
}

Ids EncodedMarkup(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.EncodeMarkup(text, ids);
  return ids;
}

std::string Decoded(const Tokenizer& tokenizer, const Ids& ids) {
  std::string text;
  for (const int32_t id : ids) text += tokenizer.Bytes(id);
  return text;
}

// Merging as it is defined, without any cleverness: the reference for the fast ways.
Ids MergedSlowly(const std::vector<std::string>& tokens, std::string_view piece) {
  const auto rank_of = [&](const std::string& bytes) {
    if (bytes.size() == 1) return int32_t{static_cast<uint8_t>(bytes[0])};
    for (size_t i = 0; i < tokens.size(); ++i)
      if (tokens[i] == bytes) return static_cast<int32_t>(256 + i);
    return INT32_MAX;
  };
  std::vector<std::string> parts;
  for (const char c : piece) parts.emplace_back(1, c);
  for (;;) {
    size_t best = 0;
    int32_t lowest = INT32_MAX;
    for (size_t i = 0; i + 1 < parts.size(); ++i)
      if (const int32_t rank = rank_of(parts[i] + parts[i + 1]); rank < lowest)
        best = i, lowest = rank;
    if (lowest == INT32_MAX) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) ids.push_back(rank_of(part));
  return ids;
}

BOOST_AUTO_TEST_SUITE(tokenizer)

BOOST_AUTO_TEST_CASE(lowest_rank_merges_first_and_the_leftmost_at_a_tie) {
  const auto tokenizer = SmallTokenizer({"bc", "ab", "aa", "abcd"});
  BOOST_TEST(Encoded(*tokenizer, "abc") == (Ids{'a', 256}));
  BOOST_TEST(Encoded(*tokenizer, "aaa") == (Ids{258, 'a'}));
  BOOST_TEST(Encoded(*tokenizer, "abd") == (Ids{257, 'd'}));
}

BOOST_AUTO_TEST_CASE(whole_piece_needs_no_merges_that_lead_to_it) {
  const auto tokenizer = SmallTokenizer({"abcd"});
  BOOST_TEST(Encoded(*tokenizer, "abcd") == Ids{256});
  BOOST_TEST(Encoded(*tokenizer, "abcde") == (Ids{'a', 'b', 'c', 'd', 'e'}));
}

BOOST_AUTO_TEST_CASE(merges_do_not_cross_pieces) {
  const auto tokenizer = SmallTokenizer({"o ", " w", "lC"});
  BOOST_TEST(Encoded(*tokenizer, "o w") == (Ids{'o', 257}));
  BOOST_TEST(Encoded(*tokenizer, "lC") == (Ids{'l', 'C'}));
}

BOOST_AUTO_TEST_CASE(every_way_of_merging_gives_what_the_definition_gives) {
  const std::vector<std::string> tokens = {"ab", "ba",   "aa",   "bb",     "aba", "abab", "bba",
                                           "ca", "abca", "aaaa", "aaaaaa", "cab", "bc",   "abbc"};
  const auto tokenizer = SmallTokenizer(tokens);
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text;  // one piece, on both sides of the size where a heap is used
    for (uint64_t left = 7 + random() % 150; left > 0; --left) text += "abc"[random() % 3];
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(Encoded(*tokenizer, text) == MergedSlowly(tokens, text),
                 boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(any_bytes_come_back) {
  const auto tokenizer = SmallTokenizer({"\xE4\xB8", "  ", "\xFF\xFF"});
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint64_t left = random() % 40; left > 0; --left)
      text += static_cast<char>(random() % 2 ? random() : 0x80 + random() % 80);
    const Ids ids = Encoded(*tokenizer, text);
    BOOST_TEST(Decoded(*tokenizer, ids) == text);
  }
}

BOOST_AUTO_TEST_CASE(byte_that_is_no_character_is_its_single_byte_token) {
  const auto tokenizer = SmallTokenizer({"\xFF\xFF"});
  BOOST_TEST(Encoded(*tokenizer, "\xFF\xFF") == (Ids{255, 255}));
}

BOOST_AUTO_TEST_CASE(special_tokens_mean_themselves_in_markup_only) {
  const auto tokenizer = SmallTokenizer({}, {{300, "<x>"}, {301, "[E]"}});
  BOOST_TEST(EncodedMarkup(*tokenizer, "a<x>b[E]") == (Ids{'a', 300, 'b', 301}));
  BOOST_TEST(Encoded(*tokenizer, "<x>") == (Ids{'<', 'x', '>'}));
}

BOOST_AUTO_TEST_CASE(earliest_special_wins_and_then_the_longest) {
  const auto tokenizer =
      SmallTokenizer({}, {{300, "<"}, {301, "<ab"}, {302, "<abcd>"}, {303, "b"}, {304, "<abd"}});
  BOOST_TEST(EncodedMarkup(*tokenizer, "<abcd>") == Ids{302});
  BOOST_TEST(EncodedMarkup(*tokenizer, "<abcd") == (Ids{301, 'c', 'd'}));
  BOOST_TEST(EncodedMarkup(*tokenizer, "<abd") == Ids{304});
  BOOST_TEST(EncodedMarkup(*tokenizer, "<a") == (Ids{300, 'a'}));
  BOOST_TEST(EncodedMarkup(*tokenizer, "<b") == (Ids{300, 303}));
  BOOST_TEST(EncodedMarkup(*tokenizer, "") == Ids{});
}

BOOST_AUTO_TEST_CASE(text_beside_a_special_is_cut_as_if_it_stood_alone) {
  const auto tokenizer = SmallTokenizer({"  "}, {{300, "<x>"}});
  // At the end of its own text, white space keeps its last character.
  BOOST_TEST(EncodedMarkup(*tokenizer, "a  <x>") == (Ids{'a', 256, 300}));
  BOOST_TEST(Encoded(*tokenizer, "a  <") == (Ids{'a', ' ', ' ', '<'}));
}

BOOST_AUTO_TEST_CASE(ids_are_looked_up_both_ways) {
  const auto tokenizer = SmallTokenizer({"ab"}, {{300, "<x>"}, {1000, "[E]"}});
  BOOST_TEST(tokenizer->rank_count() == 257);
  BOOST_TEST(tokenizer->max_id() == 1000);
  BOOST_TEST(tokenizer->Bytes(256) == "ab");
  BOOST_TEST(tokenizer->Bytes(300) == "<x>");
  for (const int32_t id : {-1, INT32_MIN, 257, 299, 301, 1001, INT32_MAX}) {
    BOOST_TEST(tokenizer->Bytes(id).empty());
    BOOST_TEST(!tokenizer->IsSpecial(id));
  }
  BOOST_TEST(tokenizer->IsSpecial(1000));
  BOOST_TEST(!tokenizer->IsSpecial(256));
  BOOST_TEST(tokenizer->FindSpecial("[E]") == 1000);
  BOOST_TEST(tokenizer->FindSpecial("ab") == -1);
  BOOST_TEST(tokenizer->FindSpecial("") == -1);
  BOOST_TEST(SmallTokenizer({})->max_id() == 255);
}

BOOST_AUTO_TEST_CASE(bad_specials_are_refused_with_their_id) {
  const std::string file = RankFile({"ab"});
  const struct {
    Specials specials;
    const char* message;
  } kCases[] = {
      {{{256, "<x>"}}, "f: special token 256 lies inside the 257 ranks"},
      {{{-1, "<x>"}}, "f: special token -1 lies inside the 257 ranks"},
      {{{300, ""}}, "f: special token 300 has no text"},
      {{{300, "<x>"}, {300, "<y>"}}, "f: special token 300 is given twice"},
      {{{300, "<x>"}, {301, "<x>"}}, "f: special tokens 300 and 301 have the same text"},
  };
  for (const auto& c : kCases) {
    const auto tokenizer = Tokenizer::Create(BytesOf(file), c.specials, "f");
    BOOST_REQUIRE(!tokenizer.ok());
    BOOST_CHECK(tokenizer.status().code() == Code::kCorrupt);
    BOOST_TEST(tokenizer.status().message() == c.message);
  }
}

BOOST_AUTO_TEST_CASE(megabytes_of_one_piece_are_merged_in_time, *boost::unit_test::label("slow")) {
  const auto tokenizer =
      SmallTokenizer({"aa", "aaaa", "aaaaaaaa", "  ", "    ", "\xF0\x9F", "\x98\x80",
                      "\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80\xF0\x9F\x98\x80"});
  const auto start = std::chrono::steady_clock::now();
  for (const std::string unit : {"a", " ", "\xF0\x9F\x98\x80", "\xE4\xB8\xAD", "ab"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    BOOST_TEST(Decoded(*tokenizer, Encoded(*tokenizer, text)) == text);
  }
  // Under a second in fact; quadratic time would be hours.
  BOOST_CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
