// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "chat/chat_format.h"
#include "tokenizer/tokenizer.h"

namespace waste {
namespace {

using Json = nlohmann::json;

std::string ReadGolden(const std::string& name) {
  std::ifstream in(WASTE_SOURCE_DIR "/tests/golden/tokenizer/" + name, std::ios::binary);
  BOOST_REQUIRE_MESSAGE(in.good(), "tests/golden/tokenizer/" << name << " cannot be opened");
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::unique_ptr<Tokenizer> LoadTokenizer() {
  std::vector<std::pair<int32_t, std::string>> specials;
  for (const Json& special : Json::parse(ReadGolden("specials.json")))
    specials.emplace_back(special["id"].get<int32_t>(), special["text"].get<std::string>());
  auto tokenizer = Tokenizer::Create(BytesOf(ReadGolden("ranks")), specials, "ranks");
  BOOST_REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.status().message());
  return *std::move(tokenizer);
}

struct Expected {
  std::string text;
  std::vector<int32_t> ids;
};

// tests/oracle/tokenizer/make_golden.py says how a file is laid out.
std::vector<Expected> ReadExpected(const std::string& name) {
  const std::string file = ReadGolden(name);
  std::vector<Expected> all;
  for (size_t at = 0; at < file.size();) {
    ByteReader size_in(BytesOf(file).subspan(at, 4));
    const size_t size = size_in.U32();
    Expected expected{file.substr(at + 4, size), {}};
    at += 4 + size;
    ByteReader in(BytesOf(file).subspan(at));
    const uint32_t count = in.U32();
    for (uint32_t i = 0; i < count; ++i) expected.ids.push_back(in.U16());
    at += 4 + 2 * size_t{count};
    all.push_back(std::move(expected));
  }
  return all;
}

BOOST_AUTO_TEST_SUITE(tokenizer_golden)

BOOST_AUTO_TEST_CASE(plain_text_has_the_ids_of_tiktoken) {
  const auto tokenizer = LoadTokenizer();
  const auto all = ReadExpected("text");
  BOOST_TEST(all.size() == 2000u);
  for (const Expected& expected : all) {
    std::vector<int32_t> ids;
    tokenizer->Encode(expected.text, ids);
    BOOST_TEST_CONTEXT(Json(expected.text).dump(-1, ' ', true)) {
      BOOST_TEST(ids == expected.ids, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(markup_has_the_ids_of_tiktoken) {
  const auto tokenizer = LoadTokenizer();
  const auto all = ReadExpected("markup");
  BOOST_TEST(all.size() == 100u);
  for (const Expected& expected : all) {
    std::vector<int32_t> ids;
    tokenizer->EncodeMarkup(expected.text, ids);
    BOOST_TEST_CONTEXT(Json(expected.text).dump(-1, ' ', true)) {
      BOOST_TEST(ids == expected.ids, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(decoded_ids_are_the_text_again) {
  const auto tokenizer = LoadTokenizer();
  for (const char* name : {"text", "markup"}) {
    for (const Expected& expected : ReadExpected(name)) {
      std::string text;
      for (const int32_t id : expected.ids) text += tokenizer->Bytes(id);
      BOOST_TEST(text == expected.text);
    }
  }
}

BOOST_AUTO_TEST_CASE(conversations_have_the_ids_of_the_release) {
  const std::pair<const char*, Role> kRoles[] = {
      {"system", Role::kSystem}, {"user", Role::kUser}, {"assistant", Role::kAssistant}};
  const auto tokenizer = LoadTokenizer();
  const auto format = MakeK3Format(*tokenizer);
  BOOST_REQUIRE(format.ok());
  const auto all = ReadExpected("chat");
  BOOST_TEST(all.size() == 60u);
  for (const Expected& expected : all) {
    const Json chat = Json::parse(expected.text);
    const bool thinking = chat["thinking"].get<bool>();
    std::vector<int32_t> ids;
    for (const Json& message : chat["messages"])
      for (const auto& [name, role] : kRoles)
        if (message["role"] == name)
          BOOST_REQUIRE(
              (*format)
                  ->AppendMessage(role, message["content"].get<std::string>(), thinking, ids)
                  .ok());
    (*format)->AppendOpening(thinking, ids);
    BOOST_TEST_CONTEXT(expected.text) {
      BOOST_TEST(ids == expected.ids, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
