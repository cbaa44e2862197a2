// SPDX-License-Identifier: Apache-2.0

#include "tokenizer/pretokenizer.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace waste {
namespace {

// The pieces with a bar between them.
std::string Cut(std::string_view text) {
  std::string cut;
  while (!text.empty()) {
    const std::string_view piece = FirstPiece(text);
    BOOST_REQUIRE(!piece.empty());
    if (!cut.empty()) cut += '|';
    cut += piece;
    text.remove_prefix(piece.size());
  }
  return cut;
}

struct Case {
  std::string text;
  std::string cut;
};

void Check(const std::vector<Case>& cases) {
  for (const Case& c : cases) BOOST_TEST(Cut(c.text) == c.cut);
}

BOOST_AUTO_TEST_SUITE(pretokenizer)

BOOST_AUTO_TEST_CASE(words_are_cut_where_upper_case_begins) {
  Check({{"", ""},
         {"hello world", "hello| world"},
         {"camelCase", "camel|Case"},
         {"CamelCase", "Camel|Case"},
         {"iPhone", "i|Phone"},
         {"HTTPServer", "HTTPServer"},
         {"HTTP", "HTTP"},
         {"ABC def", "ABC| def"},
         {"x(y)", "x|(y|)"},
         {"_name", "_name"},
         {"__name", "__|name"},
         {"\tTab", "\tTab"},
         {"\nLine", "\n|Line"}});
}

BOOST_AUTO_TEST_CASE(upper_gives_back_the_last_letter_of_both_classes) {
  Check({{"ABあCD", "ABあ|CD"},  // kana are Lo: upper takes all, lower needs one
         {"ABあCDえEF", "ABあCDえ|EF"},
         {"ABあc", "ABあc"},
         {"A\u0301B", "A\u0301|B"},  // so is a mark
         {"\u0301A", "\u0301|A"},    // a mark before a word, or its first letter: the latter
         {"!\u0301A", "!\u0301|A"},
         {"!!\u0301A", "!!\u0301|A"}});
}

BOOST_AUTO_TEST_CASE(contractions_stay_with_their_word) {
  Check({{"don't", "don't"},
         {"I'LL've", "I'LL|'ve"},
         {"it'S", "it'S"},
         {"it'\u017F", "it'\u017F"},   // without case, s is also the long s
         {"it'\u212A", "it|'\u212A"},  // but no suffix has a k
         {"it'", "it|'"},
         {"it're", "it're"},
         {"it'r", "it|'r"},
         {"it'lx", "it|'lx"},
         {"'s", "'s"},
         {"5's", "5|'s"},
         {"it\u2019s", "it|\u2019s"},
         {"X'd", "X'd"}});
}

BOOST_AUTO_TEST_CASE(han_runs_and_other_letters_part) {
  Check({{"中文abc", "中文|abc"},
         {"abc中文", "abc|中文"},
         {" 中", " |中"},
         {"々〇", "々〇"},                                    // Lm and Nl, both of the Han script
         {"1〇", "1〇"},                                      // but a number goes on with one
         {"\U0001F7E0\u2E80", "\U0001F7E0\u2E80"},            // and a symbol with a radical
         {"\U00031350a", "\U00031350|a"},                     // extension H
         {"\U000105C0\U000105C1", "\U000105C0\U000105C1"}});  // Todhri: letters since Unicode 16
}

BOOST_AUTO_TEST_CASE(numbers_come_in_threes) {
  Check({{"1234567", "123|456|7"},
         {"12a", "12|a"},
         {" 12", " |12"},
         {"١٢٣٤", "١٢٣|٤"},
         {"½Ⅷ²", "½Ⅷ²"}});
}

BOOST_AUTO_TEST_CASE(symbols_take_one_space_before_and_newlines_behind) {
  Check({{" --\n\nx", " --\n\n|x"},
         {"  --", " | --"},
         {"\u00A0--", "\u00A0|--"},  // only the ASCII space
         {"...abc", "...|abc"},
         {".abc", ".abc"},
         {"!\r\n !", "!\r\n| !"},
         {"\u200B\u200B", "\u200B\u200B"}});  // not white space
}

BOOST_AUTO_TEST_CASE(white_space_leaves_one_character_to_what_follows) {
  Check({{"a   b", "a|  | b"},
         {"   ", "   "},
         {"a  ", "a|  "},
         {" \n \n x", " \n \n| x"},
         {"\n\n  x", "\n\n| | x"},
         {"\t\t5", "\t|\t|5"},
         {"\u00A0\u00A05", "\u00A0|\u00A0|5"},  // a character, not a byte
         {"\u3000\u3000x", "\u3000|\u3000x"},
         {"\u0085\u2028", "\u0085\u2028"}});
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_character_stand_alone) {
  Check({{"a\xFFz", "a|\xFF|z"},
         {"\xC3", "\xC3"},
         {"\xE4\xB8", "\xE4|\xB8"},
         {"\xED\xA0\x80", "\xED|\xA0|\x80"},  // a surrogate
         {"  \x80", " | |\x80"},
         {"!\x80!", "!|\x80|!"},
         {std::string("a\0b", 3), std::string("a|\0b", 4)}});
}

BOOST_AUTO_TEST_CASE(long_runs_take_linear_time) {
  const std::vector<std::string> units = {"a",  "A",       " ",       "\n",  "!",  "7",
                                          "中", "\u0301",  "あ",      " a",  "aA", " \n",
                                          "'s", "A\u0301", "!\u0301", "\x80"};
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& unit : units) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    int64_t pieces = 0;
    for (std::string_view rest = text; !rest.empty(); ++pieces)
      rest.remove_prefix(FirstPiece(rest).size());
    BOOST_TEST(pieces > 0);
  }
  // Milliseconds in fact; quadratic time would be hours.
  BOOST_CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
