// SPDX-License-Identifier: Apache-2.0

#include "convert/tokenizer_json.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(tokenizer_json)

using Json = nlohmann::json;

// The character that stands for a byte: a second writing-down of the byte-level alphabet.
std::string Letter(int byte) {
  int shifted = 0;
  for (int b = 0; b <= byte; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    if (b == byte) {
      std::string text;
      AppendUtf8(text, static_cast<char32_t>(printable ? b : 256 + shifted));
      return text;
    }
    if (!printable) ++shifted;
  }
  return {};
}

// A sound file: 256 bytes and "he", "ll", "hell", " hell".
Json Sound() {
  Json vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary[Letter(byte)] = byte;
  vocabulary["he"] = 256;
  vocabulary["ll"] = 257;
  vocabulary["hell"] = 258;
  vocabulary["\u0120hell"] = 259;
  Json split = {{"type", "Split"},
                {"pattern", {{"Regex", kKimiPattern}}},
                {"behavior", "Isolated"},
                {"invert", false}};
  Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {{"added_tokens", {{{"id", 270}, {"content", "<|end|>"}, {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", Json::array({split, bytes})}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"vocab", vocabulary},
            {"merges", {"h e", "l l", "he ll", "\u0120 hell"}}}}};
}

Result<TokenizerJson> Parse(const Json& json) {
  return ParseTokenizerJson(json.dump(), "dir/tokenizer.json");
}

void CheckRefused(const Json& json, const std::string& reason) {
  const Result<TokenizerJson> result = Parse(json);
  BOOST_REQUIRE_MESSAGE(!result.ok(), "accepted; expected: " << reason);
  const std::string& message = result.status().message();
  BOOST_TEST(static_cast<int>(result.status().code()) == static_cast<int>(Code::kUnsupported),
             message);
  BOOST_TEST(message.find(reason) != std::string::npos, message);
  BOOST_TEST(message.find("dir/tokenizer.json") != std::string::npos, message);
}

BOOST_AUTO_TEST_CASE(merges_in_the_order_of_their_results_become_a_rank_file) {
  const Result<TokenizerJson> result = Parse(Sound());
  BOOST_REQUIRE_MESSAGE(result.ok(), result.status().message());
  BOOST_REQUIRE_EQUAL(result->specials.size(), 1u);
  BOOST_TEST(result->specials[0].id == 270);
  BOOST_TEST(result->specials[0].text == "<|end|>");
  const auto tokenizer = Tokenizer::Create(result->rank_file, {}, "x");
  BOOST_REQUIRE(tokenizer.ok());
  std::vector<int32_t> tokens;
  (*tokenizer)->Encode("hello hell\xC3\xA9", tokens);
  BOOST_TEST(tokens == std::vector<int32_t>({258, 'o', 259, 0xC3, 0xA9}));
}

BOOST_AUTO_TEST_CASE(merges_as_pairs_mean_the_same) {
  Json json = Sound();
  json["model"]["merges"] = Json::array({{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"\u0120", "hell"}});
  const Result<TokenizerJson> result = Parse(json);
  BOOST_REQUIRE(result.ok());
  BOOST_TEST(result->rank_file == Parse(Sound())->rank_file);
}

BOOST_AUTO_TEST_CASE(an_added_token_that_stands_in_the_vocabulary_too_is_no_rank) {
  Json json = Sound();
  json["model"]["vocab"]["<|end|>"] = 260;
  json["added_tokens"][0]["id"] = 260;
  const Result<TokenizerJson> result = Parse(json);
  BOOST_REQUIRE(result.ok());
  BOOST_TEST(result->rank_file == Parse(Sound())->rank_file);
}

BOOST_AUTO_TEST_CASE(merges_that_ranks_cannot_express_are_refused) {
  Json order = Sound();  // ranks would merge "he" first
  order["model"]["vocab"]["el"] = 260;
  order["model"]["merges"] = {"e l", "h e", "l l", "he ll", "\u0120 hell"};
  CheckRefused(order, "give other tokens");

  Json unreachable = Sound();  // ranks would find "xy" without a merge
  unreachable["model"]["vocab"]["xy"] = 260;
  CheckRefused(unreachable, "give other tokens");
  unreachable["model"]["merges"].push_back("x y");
  BOOST_TEST(Parse(unreachable).ok());
}

BOOST_AUTO_TEST_CASE(another_way_of_cutting_text_is_refused) {
  Json json = Sound();
  json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = R"(\s+|\S+)";
  CheckRefused(json, "pattern is another one");
  json = Sound();
  json["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed";
  CheckRefused(json, "pattern is another one");
  json = Sound();
  json["pre_tokenizer"]["pretokenizers"][1]["use_regex"] = true;
  CheckRefused(json, "does more than map bytes");
  json["pre_tokenizer"]["pretokenizers"][1].erase("use_regex");  // true is its default
  CheckRefused(json, "does more than map bytes");
  json = Sound();
  json["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true;
  CheckRefused(json, "does more than map bytes");
  json = Sound();
  json["pre_tokenizer"] = {{"type", "ByteLevel"}};
  CheckRefused(json, "no sequence");
  json = Sound();
  json["normalizer"] = {{"type", "NFC"}};
  CheckRefused(json, "normalizer");
}

BOOST_AUTO_TEST_CASE(another_model_is_refused) {
  Json json = Sound();
  json["model"]["type"] = "Unigram";
  CheckRefused(json, "no BPE");
  json = Sound();
  json["model"]["byte_fallback"] = true;
  CheckRefused(json, "byte_fallback");
  json = Sound();
  json["model"]["vocab"].erase("he");
  json["model"]["merges"] = Json::array();
  CheckRefused(json, "without a gap");
  json = Sound();
  json["model"]["vocab"]["he"] = 257;
  CheckRefused(json, "without a gap");
  json = Sound();
  json["model"]["vocab"]["\u4E00"] = 260;
  CheckRefused(json, "not written as bytes");
  json = Sound();
  json["model"]["vocab"].erase("\u0120hell");
  json["model"]["vocab"].erase("A");
  json["model"]["vocab"]["hellhe"] = 'A';
  json["model"]["merges"] = {"h e", "l l", "he ll"};
  CheckRefused(json, "rank file");
}

BOOST_AUTO_TEST_CASE(what_is_no_tokenizer_json_is_a_format_error) {
  Json no_merges = Sound(), bad_merge = Sound(), bad_added = Sound(), unknown_merge = Sound();
  no_merges["model"]["merges"] = 1;
  bad_merge["model"]["merges"][0] = "he";
  unknown_merge["model"]["merges"][0] = "h z";
  bad_added["added_tokens"][0]["id"] = -1;
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), std::string(R"({"model":1})"),
        no_merges.dump(), bad_merge.dump(), unknown_merge.dump(), bad_added.dump()}) {
    BOOST_TEST_CONTEXT(text.substr(0, 60))
    BOOST_TEST(static_cast<int>(ParseTokenizerJson(text, "t").status().code()) ==
               static_cast<int>(Code::kFormat));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
