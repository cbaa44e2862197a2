// SPDX-License-Identifier: Apache-2.0
//
// Sessions of one model that answer at the same time, on a thread each: they share steps, and each
// says what it says alone. Logits may differ in their last bits with the shape of a batch.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <thread>

#include "support/capi.h"

namespace waste_test {
namespace {

constexpr size_t kSessions = 8;
constexpr float kTolerance = 1e-3f;  // of the largest logit

constexpr const char* kQuestions[] = {
    "What is the capital of Italy?", "What is the chemical symbol of iron?", "Count from 3 to 12."};
constexpr const char* kLong = "Tell me a story about a fox.";

// All questions, from the `first` on and round again, and a prompt without a chat.
struct Talk {
  std::vector<std::string> texts;
  std::vector<int32_t> tokens;
  std::vector<float> logits;
  waste_stats stats = Sized<waste_stats>();

  bool IsLike(const Talk& other) const {
    if (texts != other.texts || tokens != other.tokens) return false;
    float largest = 0, apart = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      largest = std::max(largest, std::fabs(other.logits[i]));
      apart = std::max(apart, std::fabs(other.logits[i] - logits[i]));
    }
    return apart <= kTolerance * largest;
  }
};

int64_t ExpertsUsed(const waste_stats& stats) { return stats.experts_hit + stats.experts_missed; }

Talk TalkTo(const Model& model, size_t first) {
  constexpr size_t kCount = std::size(kQuestions);
  Talk talk;
  const Session session = NewSession(model);
  for (size_t i = 0; i < kCount; ++i)
    talk.texts.push_back(Ask(session, kQuestions[(first + i) % kCount]).text);
  talk.tokens = Tokens(session);
  waste_info info = Sized<waste_info>();
  Require(waste_model_info(model.get(), &info, nullptr) == 0, "no info");
  talk.logits.resize(static_cast<size_t>(info.vocab_size) * 3);
  const auto floats = std::ssize(talk.logits);
  Require(waste_session_reset(session.get(), nullptr) == 0, "no reset");
  waste_error error = Sized<waste_error>();
  const int64_t written = waste_eval(session.get(), talk.tokens.data(), std::ssize(talk.tokens),
                                     talk.logits.data(), floats, &error);
  Require(written == floats, error.message);
  Require(waste_session_stats(session.get(), &talk.stats, nullptr) == 0, "no stats");
  return talk;
}

waste_stats StatsOf(const Model& model) {
  waste_stats stats = Sized<waste_stats>();
  Require(waste_model_stats(model.get(), &stats, nullptr) == 0, "no stats");
  return stats;
}

BOOST_AUTO_TEST_SUITE(company)

BOOST_AUTO_TEST_CASE(eight_sessions_share_steps_and_say_what_they_say_alone,
                     *boost::unit_test::label("slow")) {
  const Model model = Open(MiniModel());
  std::vector<Talk> alone;
  for (size_t i = 0; i < std::size(kQuestions); ++i) alone.push_back(TalkTo(model, i));
  const waste_stats before = StatsOf(model);
  std::vector<std::future<Talk>> sessions;
  for (size_t i = 0; i < kSessions; ++i)
    sessions.push_back(std::async(std::launch::async, [&, i] { return TalkTo(model, i); }));
  int64_t used = 0, missed = 0, read = 0, used_alone = 0;
  for (size_t i = 0; i < kSessions; ++i) {
    const Talk talk = sessions[i].get();
    const Talk& expected = alone[i % alone.size()];
    BOOST_TEST(talk.texts == expected.texts, boost::test_tools::per_element());
    BOOST_TEST(talk.IsLike(expected));
    used += ExpertsUsed(talk.stats);
    missed += talk.stats.experts_missed;
    read += talk.stats.bytes_read;
    used_alone += ExpertsUsed(expected.stats);
  }
  // A step asks once for an expert, whichever of its sessions want it.
  BOOST_TEST(used < used_alone);
  const waste_stats after = StatsOf(model);
  BOOST_TEST(used == ExpertsUsed(after) - ExpertsUsed(before));
  BOOST_TEST(missed == after.experts_missed - before.experts_missed);
  BOOST_TEST(read == after.bytes_read - before.bytes_read);
}

BOOST_AUTO_TEST_CASE(a_cancelled_answer_changes_nothing_for_those_beside_it) {
  const Model model = Open(MiniModel());
  const std::string story = Ask(NewSession(model), kLong).text;
  std::atomic<bool> done{false};
  const auto listen = [&] { return Ask(NewSession(model), kLong).text == story; };
  auto canceller = std::async(std::launch::async, [&] {
    const Session session = NewSession(model);
    bool sound = true;
    for (int i = 0; !done; ++i) {
      const Generation answer = Generate(session, kLong);
      auto cancel = std::async(std::launch::async, [&answer, i] {
        std::this_thread::sleep_for(std::chrono::microseconds(500 + 700 * (i % 5)));
        waste_cancel(answer.get());
      });
      const Answer heard = Drain(answer);
      cancel.get();
      sound = sound && heard.status == WASTE_ERR_CANCELLED && story.starts_with(heard.text);
      sound = sound && waste_session_reset(session.get(), nullptr) == 0;
    }
    return sound && Ask(session, kLong).text == story;
  });
  std::vector<std::future<bool>> listeners;
  for (int i = 0; i < 3; ++i) listeners.push_back(std::async(std::launch::async, listen));
  for (auto& listener : listeners) BOOST_TEST(listener.get());
  done = true;
  BOOST_TEST(canceller.get());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste_test
