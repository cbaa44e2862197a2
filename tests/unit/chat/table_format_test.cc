// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "chat/chat_format.h"
#include "support/small_tokenizer.h"

namespace waste {
namespace {

using Ids = std::vector<int32_t>;
using Json = nlohmann::ordered_json;

constexpr const char* kGood = R"({
  "system": ["<s>", "<end>"], "user": ["<u>user:", "<end>"], "assistant": ["<a>", "<end>\n"],
  "open": "<a>", "prelude": "[BOS]", "stop": ["<stop>"]})";

struct Fixture {
  std::unique_ptr<Tokenizer> tokenizer = SmallTokenizer({}, {{300, "<s>"},
                                                             {301, "<u>"},
                                                             {302, "<a>"},
                                                             {303, "<end>"},
                                                             {304, "<stop>"},
                                                             {305, "[BOS]"},
                                                             {306, "[EOS]"}});

  Result<std::unique_ptr<ChatFormat>> Make(const Json& chat) const {
    return MakeTableFormat(*tokenizer, chat, "chat.json");
  }
  std::unique_ptr<ChatFormat> Good() const { return *Make(Json::parse(kGood)); }
};

BOOST_FIXTURE_TEST_SUITE(table_format, Fixture)

BOOST_AUTO_TEST_CASE(strings_of_the_table_are_markup_and_content_is_text) {
  const auto format = Good();
  Ids ids;
  format->AppendPrelude(ids);
  BOOST_REQUIRE(format->AppendMessage(Role::kUser, "a<s>", false, ids).ok());
  format->AppendOpening(false, ids);
  BOOST_TEST(ids == (Ids{305, 301, 'u', 's', 'e', 'r', ':', 'a', '<', 's', '>', 303, 302}));
  BOOST_TEST(!format->can_think());
}

BOOST_AUTO_TEST_CASE(stop_tokens_are_the_tables_and_those_that_end_a_turn_anyway) {
  BOOST_TEST(Good()->stop_tokens() == (Ids{303, 304, 306}));
  Json chat = Json::parse(kGood);
  chat["stop"] = "<end>";
  BOOST_TEST((*Make(chat))->stop_tokens() == (Ids{303, 306}));
  chat.erase("stop");
  chat["assistant"] = {"a:", "\n"};
  BOOST_TEST((*Make(chat))->stop_tokens() == Ids{306});
}

BOOST_AUTO_TEST_CASE(role_that_the_table_lacks_is_refused) {
  Json chat = Json::parse(kGood);
  chat.erase("system");
  const auto format = Make(chat);
  BOOST_REQUIRE(format.ok());
  Ids ids;
  for (const Role role : {Role::kSystem, static_cast<Role>(3), static_cast<Role>(-1)}) {
    const Status status = (*format)->AppendMessage(role, "x", false, ids);
    BOOST_CHECK(status.code() == Code::kUnsupported);
  }
  BOOST_TEST(ids.empty());
}

BOOST_AUTO_TEST_CASE(answer_is_all_response_until_a_stop_token) {
  const auto format = Good();
  const auto tracker = format->NewTracker(true);
  const auto feed = [&](int32_t token, bool visible, bool ends) {
    const ChannelTracker::Step step = tracker->Feed(token);
    BOOST_CHECK(step.channel == Channel::kResponse);
    BOOST_TEST(step.visible == visible);
    BOOST_TEST(step.ends_turn == ends);
  };
  feed('a', true, false);
  feed(300, false, false);
  feed(99999, true, false);
  feed(304, false, true);
  feed(303, false, true);
}

BOOST_AUTO_TEST_CASE(closing_adds_what_of_the_suffix_is_missing) {
  const auto format = Good();
  const auto closing = [&](const Ids& answer) {
    const auto tracker = format->NewTracker(false);
    for (const int32_t id : answer) tracker->Feed(id);
    Ids ids;
    tracker->Clone()->AppendClosing(ids);
    return ids;
  };
  BOOST_TEST(closing({'a'}) == (Ids{303, '\n'}));
  BOOST_TEST(closing({'a', 303}) == Ids{'\n'});
  BOOST_TEST(closing({'a', 304}) == (Ids{303, '\n'}));
  BOOST_TEST(closing({'a', 303, 'b'}) == (Ids{303, '\n'}));
}

BOOST_AUTO_TEST_CASE(bad_tables_are_refused_by_key) {
  const struct {
    const char* key;
    const char* value;
    const char* message;
  } kCases[] = {
      {"user", "null", "chat.json: \"user\" is not a list of two strings, prefix and suffix"},
      {"user", "[\"a\"]", "chat.json: \"user\" is not a list of two strings, prefix and suffix"},
      {"system", "[\"a\", 1]",
       "chat.json: \"system\" is not a list of two strings, prefix and suffix"},
      {"assistant", "{}",
       "chat.json: \"assistant\" is not a list of two strings, prefix and suffix"},
      {"open", "[]", "chat.json: \"open\" is not a string"},
      {"prelude", "7", "chat.json: \"prelude\" is not a string"},
      {"stop", "7", "chat.json: \"stop\" is neither a string nor a list of strings"},
      {"stop", "[7]", "chat.json: \"stop\" holds something that is no string"},
      {"stop", "\"abc\"", "chat.json: \"stop\" names a text that is no special token of the model"},
  };
  for (const auto& c : kCases) {
    Json chat = Json::parse(kGood);
    chat[c.key] = Json::parse(c.value);
    const auto format = Make(chat);
    BOOST_REQUIRE(!format.ok());
    BOOST_CHECK(format.status().code() == Code::kFormat);
    BOOST_TEST(format.status().message() == c.message);
  }
  for (const char* key : {"user", "assistant", "open"}) {
    Json chat = Json::parse(kGood);
    chat.erase(key);
    BOOST_TEST(Make(chat).status().message() ==
               std::string("chat.json: \"") + key + "\" is missing");
  }
  BOOST_TEST(Make(Json::array()).status().message() == "chat.json: not a JSON object");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
