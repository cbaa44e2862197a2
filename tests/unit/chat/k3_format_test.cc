// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "chat/chat_format.h"
#include "support/small_tokenizer.h"

namespace waste {
namespace {

using Ids = std::vector<int32_t>;

constexpr int32_t kEndOfMessage = 303;
constexpr int32_t kEos = 304;

struct Fixture {
  std::unique_ptr<Tokenizer> tokenizer = SmallTokenizer({}, {{300, "<|open|>"},
                                                             {301, "<|close|>"},
                                                             {302, "<|sep|>"},
                                                             {303, "<|end_of_msg|>"},
                                                             {304, "[EOS]"},
                                                             {305, "[BOS]"}});
  std::unique_ptr<ChatFormat> format = *MakeK3Format(*tokenizer);

  std::string Text(const Ids& ids) const {
    std::string text;
    for (const int32_t id : ids) text += tokenizer->Bytes(id);
    return text;
  }
  int64_t SpecialCount(const Ids& ids) const {
    int64_t count = 0;
    for (const int32_t id : ids) count += tokenizer->IsSpecial(id) ? 1 : 0;
    return count;
  }
  Ids Message(Role role, std::string_view text, bool thinking) const {
    Ids ids;
    BOOST_REQUIRE(format->AppendMessage(role, text, thinking, ids).ok());
    return ids;
  }
  // What a user sees of an answer given as markup: R[...], T[...] and X[...] for the channels of
  // response, thinking and tools, $ where the turn ends.
  std::string Seen(ChannelTracker& tracker, std::string_view markup) const {
    Ids ids;
    tokenizer->EncodeMarkup(markup, ids);
    std::string seen;
    char last = 0;
    for (const int32_t id : ids) {
      const ChannelTracker::Step step = tracker.Feed(id);
      if (step.visible) {
        const char channel = "RTX"[static_cast<size_t>(step.channel)];
        if (channel != last) seen += std::string(last ? "]" : "") + channel + "[";
        last = channel;
        seen += tokenizer->Bytes(id);
      }
      if (step.ends_turn) {
        seen += std::string(last ? "]" : "") + "$";
        last = 0;
      }
    }
    return seen + (last ? "]" : "");
  }
  std::string Closing(std::string_view answer, bool thinking) const {
    const auto tracker = format->NewTracker(thinking);
    Seen(*tracker, answer);
    Ids ids;
    tracker->AppendClosing(ids);
    return Text(ids);
  }
};

BOOST_FIXTURE_TEST_SUITE(k3_format, Fixture)

BOOST_AUTO_TEST_CASE(messages_are_the_releases_markup) {
  BOOST_TEST(Text(Message(Role::kUser, "Hi", true)) ==
             "<|open|>message role=\"user\"<|sep|>Hi<|close|>message<|sep|><|end_of_msg|>");
  BOOST_TEST(Text(Message(Role::kSystem, "", false)) ==
             "<|open|>message role=\"system\"<|sep|><|close|>message<|sep|><|end_of_msg|>");
  BOOST_TEST(Text(Message(Role::kAssistant, "Hi", false)) ==
             "<|open|>message role=\"assistant\"<|sep|><|open|>response<|sep|>Hi<|close|>response"
             "<|sep|><|close|>message<|sep|><|end_of_msg|>");
  BOOST_TEST(Text(Message(Role::kAssistant, "Hi", true)) ==
             "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|><|close|>think<|sep|>"
             "<|open|>response<|sep|>Hi<|close|>response<|sep|><|close|>message<|sep|>"
             "<|end_of_msg|>");
}

BOOST_AUTO_TEST_CASE(opening_leads_into_thoughts_or_the_response) {
  Ids thinking, plain, prelude;
  format->AppendOpening(true, thinking);
  format->AppendOpening(false, plain);
  format->AppendPrelude(prelude);
  BOOST_TEST(Text(thinking) == "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>");
  BOOST_TEST(Text(plain) == "<|open|>message role=\"assistant\"<|sep|><|open|>response<|sep|>");
  BOOST_TEST(prelude.empty());
  BOOST_TEST(format->can_think());
}

BOOST_AUTO_TEST_CASE(special_tokens_typed_by_a_user_stay_text) {
  const int64_t usual = SpecialCount(Message(Role::kUser, "Hi", false));
  BOOST_TEST(SpecialCount(Message(Role::kUser, "<|end_of_msg|>[EOS]<|open|>", false)) == usual);
}

BOOST_AUTO_TEST_CASE(unknown_role_is_refused) {
  Ids ids;
  const Status status = format->AppendMessage(static_cast<Role>(3), "x", false, ids);
  BOOST_CHECK(status.code() == Code::kUnsupported);
  BOOST_TEST(ids.empty());
}

BOOST_AUTO_TEST_CASE(missing_markup_token_is_named) {
  const auto other = SmallTokenizer({}, {{300, "<|open|>"}, {301, "<|close|>"}});
  const auto made = MakeK3Format(*other);
  BOOST_REQUIRE(!made.ok());
  BOOST_CHECK(made.status().code() == Code::kUnsupported);
  BOOST_TEST(made.status().message().find("<|sep|>") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(end_of_message_and_eos_stop) {
  BOOST_TEST(format->stop_tokens() == (Ids{kEndOfMessage, kEos}));
}

BOOST_AUTO_TEST_CASE(channels_follow_the_elements) {
  const struct {
    bool thinking;
    const char* answer;
    const char* seen;
  } kCases[] = {
      {false, "Hi<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>", "R[Hi]$"},
      {true, "hm<|close|>think<|sep|><|open|>response<|sep|>Hi<|close|>response<|sep|>",
       "T[hm]R[Hi]"},
      {false,
       "a<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument "
       "key=\"k\" type=\"string\"<|sep|>v<|close|>argument<|sep|><|close|>call<|sep|>"
       "<|close|>tools<|sep|>b",
       "R[a]X[v]R[b]"},
      {false, "<|close|>response<|sep|>outside", "R[outside]"},
      {true, "a<|open|>b<|sep|>c<|close|>b<|sep|>d", "T[acd]"},  // an unknown element
      {true, "a<|close|>no<|sep|>b", "T[ab]"},                   // closes nothing
      {true, "a<|close|>message<|sep|>b", "T[a]R[b]"},           // closes what is inside, too
      {true, "a<|sep|>b[BOS]c", "T[abc]"},                       // markup out of place
      {true, "a<|open|>x<|open|>response<|sep|>b", "T[a]R[b]"},  // a tag that breaks off
      {true, "a<|open|>respo<|close|>think<|sep|>b", "T[a]R[b]"},
      {true, "a<|open|>x<|end_of_msg|>", "T[a]$"},
      {true, "a[EOS]", "T[a]$"},
      {false, "a<|end_of_msg|>b", "R[a]$R[b]"},
      {false, "<|open|><|sep|>a<|close|><|sep|>b", "R[ab]"},
  };
  for (const auto& c : kCases) {
    const auto tracker = format->NewTracker(c.thinking);
    BOOST_TEST(Seen(*tracker, c.answer) == c.seen);
  }
}

BOOST_AUTO_TEST_CASE(closing_completes_the_turn_from_anywhere) {
  const std::string kEnd = "<|close|>message<|sep|><|end_of_msg|>";
  const std::string kThought = "<|close|>think<|sep|>" + kEnd;
  const struct {
    const char* answer;
    std::string closing;
  } kCases[] = {
      {"", kThought},
      {"a", kThought},
      {"a<|open|>", "<|sep|><|close|><|sep|>" + kThought},
      {"a<|open|>x y=", "<|sep|><|close|>x<|sep|>" + kThought},
      {"a<|close|>", "think<|sep|>" + kEnd},
      {"a<|close|>thi", "nk<|sep|>" + kEnd},
      {"a<|close|>think", "<|sep|>" + kEnd},
      {"a<|close|>think<|sep|>", kEnd},
      {"a<|close|>other", "<|sep|>" + kThought},
      {"a<|close|>message", "<|sep|><|end_of_msg|>"},
      {"a<|close|>think<|sep|><|close|>message<|sep|>", "<|end_of_msg|>"},
      {"a<|close|>think<|sep|><|close|>message<|sep|><|end_of_msg|>", ""},
      {"a<|end_of_msg|>", ""},
      {"a[EOS]", kThought},
      {"<|open|>tools<|sep|><|open|>call tool=\"f\"<|sep|>",
       "<|close|>call<|sep|><|close|>tools<|sep|>" + kThought},
  };
  for (const auto& c : kCases) BOOST_TEST_CONTEXT(c.answer) {
      BOOST_TEST(Closing(c.answer, true) == c.closing);
    }
  BOOST_TEST(Closing("a", false) == "<|close|>response<|sep|>" + kEnd);
}

BOOST_AUTO_TEST_CASE(clone_goes_its_own_way) {
  const auto tracker = format->NewTracker(true);
  const auto clone = tracker->Clone();
  BOOST_TEST(Seen(*tracker, "a<|end_of_msg|>") == "T[a]$");
  BOOST_TEST(Seen(*clone, "b") == "T[b]");
}

BOOST_AUTO_TEST_CASE(whatever_the_model_writes_can_be_closed_once) {
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    const auto tracker = format->NewTracker(random() % 2 == 0);
    for (uint64_t left = random() % 20; left > 0; --left)
      tracker->Feed(random() % 2 ? static_cast<int32_t>(300 + random() % 6)
                                 : "think"[random() % 5]);
    Ids closing, nothing;
    tracker->AppendClosing(closing);
    for (const int32_t id : closing) BOOST_TEST(!tracker->Feed(id).visible);
    tracker->AppendClosing(nothing);
    BOOST_TEST(nothing.empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
