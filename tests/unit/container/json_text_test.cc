// SPDX-License-Identifier: Apache-2.0

#include "container/json_text.h"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <string>

namespace waste {
namespace {

using Json = nlohmann::ordered_json;

std::string Repeat(const std::string& text, int64_t count) {
  std::string repeated;
  for (int64_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

std::string ObjectWithKeys(int64_t count) {
  std::string text = "{";
  for (int64_t i = 0; i < count; ++i)
    text += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":" + std::to_string(i);
  return text + "}";
}

BOOST_AUTO_TEST_SUITE(json_text)

BOOST_AUTO_TEST_CASE(sound_text_is_parsed_with_its_keys_in_order) {
  const auto value = ParseJsonText(R"({"b": [1, -2, 2.5, true, null], "a": {"x": "é"}})", "f");
  BOOST_REQUIRE(value.ok());
  BOOST_TEST(value->dump() == R"({"b":[1,-2,2.5,true,null],"a":{"x":"é"}})");
}

BOOST_AUTO_TEST_CASE(hostile_text_is_a_format_error_that_names_file_and_place) {
  struct {
    std::string text;
    const char* words;
  } const kCases[] = {
      {"", "from byte 0 on"},
      {"{", "not JSON from byte"},
      {"{\"a\":1", "not JSON from byte"},
      {"{a:1}", "not JSON from byte"},  // an unquoted key
      {"{'a':1}", "not JSON from byte"},
      {"{\"a\":1,}", "not JSON from byte"},
      {"[1 2]", "not JSON from byte"},
      {"{\"a\":1} x", "not JSON from byte"},
      {"nan", "not JSON from byte"},
      {"[1e999]", "not JSON from byte"},
      {"[01]", "not JSON from byte"},
      {"\"\xff\"", "not JSON from byte"},     // not UTF-8
      {"\"\\ud800\"", "not JSON from byte"},  // half a surrogate pair
      {"\"a\nb\"", "not JSON from byte"},
      {std::string("{\"a\":1}\0{}", 10), "NUL at byte 7"},
      {std::string("\0", 1), "NUL at byte 0"},
      {"{\"a\":1,\"a\":2}", "the key \"a\" stands twice"},
      {"[{\"b\":{\"c\":0,\"d\":1,\"c\":0}}]", "the key \"c\" stands twice"},
      {Repeat("[", kMaxJsonDepth + 1) + Repeat("]", kMaxJsonDepth + 1), "nested deeper"},
      {Repeat("{\"a\":", 1000000), "nested deeper"},
      {Repeat("[", 1000000), "nested deeper"},
      {ObjectWithKeys(kMaxJsonKeys + 1), "more than"},
  };
  for (const auto& c : kCases) {
    BOOST_TEST_CONTEXT("text " << Quote(c.text)) {
      const auto value = ParseJsonText(c.text, "folder/file.json");
      BOOST_REQUIRE(!value.ok());
      BOOST_CHECK(value.status().code() == Code::kFormat);
      BOOST_TEST(value.status().message().find("folder/file.json: ") == 0u);
      BOOST_TEST_INFO(value.status().message());
      BOOST_CHECK(value.status().message().find(c.words) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(text_at_the_bounds_is_accepted, *boost::unit_test::label("slow")) {
  BOOST_CHECK(ParseJsonText(Repeat("[", kMaxJsonDepth) + Repeat("]", kMaxJsonDepth), "f").ok());
  BOOST_CHECK(ParseJsonText(ObjectWithKeys(kMaxJsonKeys), "f").ok());
  // The same key in two objects, and many objects, are no concern.
  BOOST_CHECK(ParseJsonText("[" + Repeat("{\"a\":1},", 100000) + "{\"a\":{\"a\":1}}]", "f").ok());
}

// Made by: json.dump(json.loads(text), file, indent=1) of Python 3.11.
BOOST_AUTO_TEST_CASE(printing_equals_python_byte_for_byte) {
  const auto value = ParseJsonText(R"({"eps":1e-5,"small":0.0001,"tiny":5e-324,"big":1e15,
    "bigger":1E16,"huge":1.7976931348623157e308,"third":0.3333333333333333,"minus":-5.0,
    "zero":-0.0,"grisu":9.5367431640625e-7,"sum":0.30000000000000004,"exact":9007199254740994.0,
    "fives":5e22,"wide":123456789012345680.0,"int":-7,"max":9223372036854775807,
    "umax":18446744073709551615,"yes":true,"no":false,"none":null,"list":[],"object":{},
    "text":"a\"\\\/\b\f\n\r\t\u0000\u001f\u007f é 日本 😀","nested":[[1,[2.0,{}]],{"k":[{}]}]})",
                                   "f");
  BOOST_REQUIRE(value.ok());
  const std::string expected = R"({
 "eps": 1e-05,
 "small": 0.0001,
 "tiny": 5e-324,
 "big": 1000000000000000.0,
 "bigger": 1e+16,
 "huge": 1.7976931348623157e+308,
 "third": 0.3333333333333333,
 "minus": -5.0,
 "zero": -0.0,
 "grisu": 9.5367431640625e-07,
 "sum": 0.30000000000000004,
 "exact": 9007199254740994.0,
 "fives": 5e+22,
 "wide": 1.2345678901234568e+17,
 "int": -7,
 "max": 9223372036854775807,
 "umax": 18446744073709551615,
 "yes": true,
 "no": false,
 "none": null,
 "list": [],
 "object": {},
 "text": "a\"\\/\b\f\n\r\t\u0000\u001f\u007f \u00e9 \u65e5\u672c \ud83d\ude00",
 "nested": [
  [
   1,
   [
    2.0,
    {}
   ]
  ],
  {
   "k": [
    {}
   ]
  }
 ]
})";
  BOOST_TEST(PrintJsonText(*value) == expected);
}

BOOST_AUTO_TEST_CASE(only_integers_that_fit_are_integers) {
  BOOST_CHECK(JsonInteger(Json::parse("9223372036854775807")) == INT64_MAX);
  BOOST_CHECK(JsonInteger(Json::parse("-9223372036854775808")) == INT64_MIN);
  for (const char* text : {"9223372036854775808", "18446744073709551615", "128.0", "1e3", "\"1\"",
                           "true", "null", "[]", "{}", "99999999999999999999"})
    BOOST_TEST_CONTEXT(text) { BOOST_CHECK(!JsonInteger(Json::parse(text))); }
}

BOOST_AUTO_TEST_CASE(members_are_found_in_objects_only) {
  const Json object = Json::parse(R"({"a": null})");
  BOOST_REQUIRE(JsonMember(object, "a") != nullptr);
  BOOST_CHECK(JsonMember(object, "a")->is_null());
  BOOST_CHECK(JsonMember(object, "b") == nullptr);
  BOOST_CHECK(JsonMember(Json::parse("[1]"), "a") == nullptr);
}

BOOST_AUTO_TEST_CASE(quoted_text_is_short_and_ascii) {
  BOOST_TEST(Quote("a\nb") == "\"a\\nb\"");
  BOOST_TEST(Quote(std::string(1000000, 'x')) == "\"" + std::string(100, 'x') + "\"...");
  for (const char c : Quote("\xff\xfe\x80 é")) BOOST_TEST((c >= 0x20 && c < 0x7F));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
