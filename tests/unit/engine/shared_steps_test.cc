// SPDX-License-Identifier: Apache-2.0
//
// Sessions of the mini model that share steps, while reads fail and callers give up.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <future>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/eventually.h"
#include "support/faulty_engine.h"

namespace waste {
namespace {

using boost::unit_test::timeout;

constexpr unsigned kHangs = 300;  // seconds
constexpr float kTolerance = 1e-3f;
constexpr std::string_view kPrompt = "Tell me a story about a fox.";

// Greedy tokens of one timeline, and the last logits.
struct Written {
  std::vector<int32_t> tokens;
  std::vector<float> logits;
  int64_t given_up_inside = 0;  // steps that were cancelled while they ran
};

// Each step may be given up after a few polls, where `gives_up`, and is then made again.
Written Write(Model& model, int32_t first, int count, bool gives_up) {
  const auto timeline = Require(model.NewTimeline(256));
  std::minstd_rand random(static_cast<uint32_t>(first));
  Written written;
  written.logits.resize(static_cast<size_t>(model.info().vocab));
  int32_t token = first;
  while (std::ssize(written.tokens) < count) {
    auto polls = static_cast<int64_t>(gives_up ? random() % 12 : INT64_MAX);
    ExpertCounters used;
    const int64_t position = timeline->position();
    const Status status = model.Step(
        *timeline, {&token, 1}, written.logits, false, [&] { return polls-- <= 0; }, used);
    if (status.code() == Code::kCancelled) {
      if (timeline->position() != position) throw std::runtime_error("a trace is left");
      written.given_up_inside += status.message() == "cancelled while its step ran";
      continue;
    }
    Require(status);
    const auto likeliest = std::max_element(written.logits.begin(), written.logits.end());
    token = static_cast<int32_t>(likeliest - written.logits.begin());
    written.tokens.push_back(token);
  }
  return written;
}

void CheckAlike(const Written& one, const Written& other) {
  BOOST_TEST(one.tokens == other.tokens, boost::test_tools::per_element());
  float largest = 0, apart = 0;
  for (size_t i = 0; i < one.logits.size(); ++i) {
    largest = std::max(largest, std::fabs(other.logits[i]));
    apart = std::max(apart, std::fabs(other.logits[i] - one.logits[i]));
  }
  BOOST_TEST(apart <= kTolerance * largest);
}

BOOST_AUTO_TEST_SUITE(shared_steps)

BOOST_AUTO_TEST_CASE(steps_given_up_in_company_leave_no_trace, *timeout(kHangs)) {
  constexpr int kTokens = 80;
  constexpr int32_t kFirst[] = {3, 40, 500, 60};
  const FaultyEngine engine({}, 4);
  Model& model = *engine.model();
  std::vector<Written> alone;
  for (const int32_t first : kFirst) alone.push_back(Write(model, first, kTokens, false));
  const BatchQueue::Counts before = model.batch_counts();
  BOOST_TEST(before.batches == before.steps);
  std::vector<std::future<Written>> together;
  for (const int32_t first : kFirst)
    together.push_back(std::async(
        std::launch::async, [&model, first] { return Write(model, first, kTokens, first > 100); }));
  int64_t given_up_inside = 0;
  for (size_t i = 0; i < together.size(); ++i) {
    const Written written = together[i].get();
    given_up_inside += written.given_up_inside;
    CheckAlike(written, alone[i]);
  }
  BOOST_TEST(given_up_inside > 0);
  const BatchQueue::Counts after = model.batch_counts();
  BOOST_TEST(after.steps - before.steps > after.batches - before.batches);
}

// Whichever sessions were in the step that failed, each tries again and says what it says alone.
BOOST_AUTO_TEST_CASE(failures_of_shared_steps_are_gone_with_their_cause, *timeout(kHangs)) {
  constexpr int64_t kSessions = 4;
  const FaultyEngine engine({}, kSessions);
  const auto tell = [&engine](int64_t& failures, WorkCounters* work) {
    const auto session = Require(Session::Create(engine.model(), {}));
    Answer answer(session, kPrompt);
    failures += std::ssize(answer.PullAll([&](const Answer&) { engine.Heal(); }));
    if (work != nullptr) work->misses += session->work().misses;
    return answer.text();
  };
  int64_t none = 0;
  const std::string story = tell(none, nullptr);
  BOOST_TEST(none == 0);
  Model& model = *engine.model();
  const int64_t misses_before = model.work().misses;
  WorkCounters of_sessions;
  std::vector<int64_t> failures(kSessions);
  std::vector<std::future<std::string>> stories;
  const int64_t batches = model.batch_counts().batches;
  for (int64_t& count : failures)
    stories.push_back(std::async(std::launch::async, [&] { return tell(count, &of_sessions); }));
  for (int64_t i = 1; i <= 3; ++i) {
    Eventually([&] { return model.batch_counts().batches >= batches + 5 * i; });
    engine.bank(static_cast<int32_t>(2 * i)).fail_from = 0;
  }
  for (auto& one : stories) BOOST_TEST(one.get() == story);
  int64_t failed = 0;
  for (const int64_t count : failures) failed += count;
  BOOST_TEST(failed > 0);
  BOOST_TEST(of_sessions.misses == model.work().misses - misses_before);
}

BOOST_AUTO_TEST_CASE(shares_add_up_to_the_whole) {
  const ExpertCounters whole = {7, 1000003, 0, 5, 1, 123456789012345, 2, 31};
  for (const std::vector<int64_t>& counts :
       std::vector<std::vector<int64_t>>{{1}, {1, 1, 1}, {63, 1}, {5, 9, 2, 1, 1}}) {
    int64_t rows = 0, begin = 0;
    for (const int64_t count : counts) rows += count;
    ExpertCounters sum;
    for (const int64_t count : counts) {
      const ExpertCounters share = ShareOf(whole, begin, begin + count, rows);
      begin += count;
      sum.hits += share.hits;
      sum.misses += share.misses;
      sum.speculative_bytes += share.speculative_bytes;
      sum.read_us += share.read_us;
    }
    BOOST_TEST(sum.hits == whole.hits);
    BOOST_TEST(sum.misses == whole.misses);
    BOOST_TEST(sum.speculative_bytes == whole.speculative_bytes);
    BOOST_TEST(sum.read_us == whole.read_us);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
