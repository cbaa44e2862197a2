// SPDX-License-Identifier: Apache-2.0

#include "container/specials.h"

#include <boost/test/unit_test.hpp>

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(specials)

BOOST_AUTO_TEST_CASE(list_is_read_and_sorted_by_id) {
  const auto tokens = ParseSpecials(
      R"([{"id":163585,"text":"[EOS]"},{"id":163584,"text":"[BOS]"},{"id":0,"text":"é"}])", "f");
  BOOST_REQUIRE_MESSAGE(tokens.ok(), tokens.status().message());
  BOOST_REQUIRE(tokens->size() == 3u);
  BOOST_TEST((*tokens)[0].id == 0);
  BOOST_TEST((*tokens)[0].text == "é");
  BOOST_TEST((*tokens)[1].text == "[BOS]");
  BOOST_TEST((*tokens)[2].text == "[EOS]");
  BOOST_CHECK(ParseSpecials("[]", "f")->empty());
}

BOOST_AUTO_TEST_CASE(hostile_lists_are_refused) {
  struct {
    const char* text;
    Code code;
    const char* words;
  } const kCases[] = {
      {"", Code::kFormat, "not JSON"},
      {"{}", Code::kFormat, "not a list"},
      {"[1]", Code::kFormat, "no special token"},
      {"[null]", Code::kFormat, "no special token"},
      {R"([{"id":1}])", Code::kFormat, "no special token"},
      {R"([{"text":"a"}])", Code::kFormat, "no special token"},
      {R"([{"id":"1","text":"a"}])", Code::kFormat, "no special token"},
      {R"([{"id":1.0,"text":"a"}])", Code::kFormat, "no special token"},
      {R"([{"id":true,"text":"a"}])", Code::kFormat, "no special token"},
      {R"([{"id":1,"text":["a"]}])", Code::kFormat, "no special token"},
      {R"([{"id":-1,"text":"a"}])", Code::kCorrupt, "id -1"},
      {R"([{"id":2147483648,"text":"a"}])", Code::kCorrupt, "id 2147483648"},
      {R"([{"id":18446744073709551615,"text":"a"}])", Code::kCorrupt, "id 18446744073709551615"},
      {R"([{"id":1,"text":""}])", Code::kCorrupt, "has no text"},
      {R"([{"id":1,"text":"a"},{"id":1,"text":"b"}])", Code::kCorrupt, "special token 1 stands"},
      {R"([{"id":1,"text":"a"},{"id":2,"text":"a"}])", Code::kCorrupt, "its text \"a\" stands"},
  };
  for (const auto& c : kCases) {
    const Status status = ParseSpecials(c.text, "model/specials.json").status();
    BOOST_TEST_CONTEXT(c.text << ": " << status.message()) {
      BOOST_CHECK(status.code() == c.code);
      BOOST_CHECK(status.message().find("model/specials.json: ") == 0);
      BOOST_CHECK(status.message().find(c.words) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(printed_list_is_sorted_and_ascii) {
  BOOST_TEST(PrintSpecials({{7, "<|im_end|>"}, {5, "é\""}}) ==
             "[\n {\n  \"id\": 5,\n  \"text\": \"\\u00e9\\\"\"\n },\n"
             " {\n  \"id\": 7,\n  \"text\": \"<|im_end|>\"\n }\n]");
  BOOST_TEST(PrintSpecials({}) == "[]");
  const auto again = ParseSpecials(PrintSpecials({{7, "日\n"}}), "f");
  BOOST_REQUIRE(again.ok());
  BOOST_TEST(again->front().text == "日\n");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
