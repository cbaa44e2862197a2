// SPDX-License-Identifier: Apache-2.0

#include "engine/answer_text.h"

#include <boost/test/unit_test.hpp>

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(answer_text)

BOOST_AUTO_TEST_CASE(delivered_tokens_are_those_of_which_nothing_is_left) {
  AnswerText text;
  BOOST_TEST(text.delivered_tokens() == 0);
  text.Add("a", true, Channel::kResponse);
  BOOST_TEST(text.delivered_tokens() == 0);  // ready, not taken
  BOOST_TEST(text.Take(100).text == "a");
  BOOST_TEST(text.delivered_tokens() == 1);
  text.Add("\xF0\x9F", true, Channel::kResponse);  // held: half a character
  BOOST_TEST(!text.ready());
  BOOST_TEST(text.delivered_tokens() == 1);
  text.Add("\x98\x80", true, Channel::kResponse);
  const TextPiece piece = text.Take(100);
  BOOST_TEST(piece.first_index == 1);
  BOOST_TEST(piece.token_count == 2);
  BOOST_TEST(text.delivered_tokens() == 3);
}

BOOST_AUTO_TEST_CASE(invisible_tokens_are_delivered_with_what_came_before) {
  AnswerText text;
  text.Add("a", true, Channel::kResponse);
  text.Add("<|close|>", false, Channel::kResponse);
  text.Take(100);
  BOOST_TEST(text.delivered_tokens() == 2);
}

BOOST_AUTO_TEST_CASE(piece_taken_in_parts_counts_when_the_last_part_is_taken) {
  AnswerText text;
  text.Add("abcdefgh", true, Channel::kResponse);
  const TextPiece head = text.Take(5);
  BOOST_TEST(head.text == "abcde");
  BOOST_TEST(head.token_count == 1);
  BOOST_TEST(text.delivered_tokens() == 0);
  const TextPiece tail = text.Take(5);
  BOOST_TEST(tail.text == "fgh");
  BOOST_TEST(tail.token_count == 0);
  BOOST_TEST(text.delivered_tokens() == 1);
}

BOOST_AUTO_TEST_CASE(stop_strings_end_the_response_and_not_the_thinking) {
  AnswerText text;
  text.AddStop("STOP");
  BOOST_TEST(!text.Add("a STOP b", true, Channel::kThinking));
  BOOST_TEST(text.Add("c STOP d", true, Channel::kResponse));
  BOOST_TEST(text.Take(100).text == "a STOP b");
  const TextPiece piece = text.Take(100);
  BOOST_TEST(piece.text == "c ");
  BOOST_CHECK(piece.channel == Channel::kResponse);
}

BOOST_AUTO_TEST_CASE(unfinished_character_does_not_go_on_in_another_channel) {
  AnswerText text;
  text.Add("a\xE2\x82", true, Channel::kThinking);
  text.Add(
      "\xAC"
      "b",
      true, Channel::kResponse);
  text.Finish();
  std::string thinking, response;
  while (text.ready()) {
    const TextPiece piece = text.Take(100);
    (piece.channel == Channel::kThinking ? thinking : response) += piece.text;
  }
  BOOST_TEST(thinking == "a\xEF\xBF\xBD");
  BOOST_TEST(response ==
             "\xEF\xBF\xBD"
             "b");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
