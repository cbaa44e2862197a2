// SPDX-License-Identifier: Apache-2.0
//
// The queue with a fake step behind it, which the test holds at a gate where the order in which
// callers come must be known.

#include "engine/batch_queue.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/eventually.h"

namespace waste {
namespace {

using Milliseconds = std::chrono::milliseconds;
using boost::test_tools::per_element;

constexpr int64_t kMaxRows = 8;
constexpr BatchQueue::Patience kNone = {.share = 0, .most = {}};
constexpr BatchQueue::Patience kEndless = {.share = 1e9, .most = std::chrono::seconds(20)};

// Counts its tokens and nothing else.
class FakeTimeline : public Timeline {
 public:
  int64_t position() const override { return position_; }
  void RewindTo(int64_t position) override { position_ = position; }
  void CopyFrom(const Timeline& other) override { position_ = other.position(); }
  int64_t SavedBytes() const override { return 0; }
  void SaveTo(std::span<uint8_t>) const override {}
  Status LoadFrom(std::span<const uint8_t>, int64_t) override { return Status(); }

 private:
  int64_t position_ = 0;
};

// Sessions by number, and the queue. A step of n tokens moves its timeline on by n and writes the
// new position to its logits.
class Rig {
 public:
  explicit Rig(BatchQueue::Patience patience = kNone)
      : queue(
            {.rows = kMaxRows, .written = kMaxRows},
            [this](std::span<SessionStep> batch) { Run(batch); }, patience) {}

  Status Step(size_t session, int64_t rows = 1, const std::function<bool()>& stop = {}) {
    const std::vector<int32_t> tokens(static_cast<size_t>(rows));
    float position = 0;
    const std::span<float> logits(&position, rows <= 2 ? 1 : 0);  // more is a prompt's beginning
    SessionStep step{&timelines[session], tokens, logits, rows > 2, &stop};
    queue.Step(step);
    if (step.status.ok() && !logits.empty() &&
        position != static_cast<float>(timelines[session].position()))
      return Status(Code::kInternal, "the logits are another's");
    return std::move(step.status);
  }

  // The same on a thread of its own; returns once the caller is in line.
  std::future<Status> StepLater(size_t session, int64_t rows = 1,
                                const std::function<bool()>& stop = {}) {
    const int64_t before = queue.counts().in_line;
    auto later = std::async(std::launch::async,
                            [this, session, rows, stop] { return Step(session, rows, stop); });
    if (!Eventually([&] { return queue.counts().in_line > before; }))
      throw std::runtime_error("the caller does not wait");
    return later;
  }

  // A batch with session 0 alone that runs until Open is called.
  std::future<Status> CloseGate() {
    is_closed = true;
    auto first = std::async(std::launch::async, [this] { return Step(0); });
    if (!Eventually([this] { return started == 1; })) throw std::runtime_error("nothing runs");
    return first;
  }
  void Open() { is_closed = false; }

  std::vector<FakeTimeline> timelines{16};
  BatchQueue queue;
  std::vector<std::vector<size_t>> batches;  // the sessions of each
  std::atomic<int> started{0};
  std::atomic<bool> is_closed{false};
  std::function<void()> meanwhile = [] {};  // in a batch
  Status outcome;                           // of a batch

 private:
  void Run(std::span<SessionStep> batch) {
    if (inside_.exchange(true)) throw std::runtime_error("two batches at once");
    const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)> leave(
        &inside_, [](std::atomic<bool>* inside) { *inside = false; });
    ++started;
    std::vector<size_t> sessions;
    int64_t rows = 0;
    for (const SessionStep& step : batch) {
      sessions.push_back(
          static_cast<size_t>(static_cast<FakeTimeline*>(step.timeline) - timelines.data()));
      rows += std::ssize(step.tokens);
    }
    batches.push_back(sessions);
    if (rows > kMaxRows) throw std::runtime_error("too many rows");
    while (is_closed) std::this_thread::sleep_for(Milliseconds(1));
    meanwhile();
    for (SessionStep& step : batch) Finish(step);
  }

  void Finish(SessionStep& step) {
    step.status = step.stopped() ? Status(Code::kCancelled, "while it ran") : outcome;
    if (!step.status.ok()) return;
    step.timeline->RewindTo(step.timeline->position() + std::ssize(step.tokens));
    if (!step.logits.empty()) step.logits[0] = static_cast<float>(step.timeline->position());
  }

  std::atomic<bool> inside_{false};
};

using Batches = std::vector<std::vector<size_t>>;

BOOST_AUTO_TEST_SUITE(batch_queue)

BOOST_AUTO_TEST_CASE(a_lone_session_waits_for_nobody) {
  Rig rig(kEndless);
  for (int i = 0; i < 100; ++i) BOOST_TEST(rig.Step(0).ok());
  const BatchQueue::Counts counts = rig.queue.counts();
  BOOST_TEST(counts.batches == 100);
  BOOST_TEST(counts.steps == 100);
  BOOST_TEST(counts.waits == 0);
}

BOOST_AUTO_TEST_CASE(callers_that_wait_share_the_next_batch_in_the_order_in_which_they_came) {
  Rig rig;
  auto first = rig.CloseGate();
  std::vector<std::future<Status>> others;
  for (const size_t session : {3, 1, 2}) others.push_back(rig.StepLater(session));
  rig.Open();
  BOOST_TEST(first.get().ok());
  for (auto& other : others) BOOST_TEST(other.get().ok());
  BOOST_TEST((rig.batches == Batches{{0}, {3, 1, 2}}));
  BOOST_TEST(rig.queue.counts().steps == 4);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_passed_over_once_and_leads_the_next_batch) {
  Rig rig;
  auto first = rig.CloseGate();
  std::vector<std::future<Status>> others;
  others.push_back(rig.StepLater(1));
  others.push_back(rig.StepLater(2, kMaxRows));      // a whole batch
  others.push_back(rig.StepLater(3, kMaxRows - 3));  // leaves room for two rows
  others.push_back(rig.StepLater(4, 2));
  others.push_back(rig.StepLater(5));
  rig.Open();
  for (auto& other : others) BOOST_TEST(other.get().ok());
  BOOST_TEST((rig.batches == Batches{{0}, {1, 3, 4}, {2}, {5}}));
}

// The gate holds each batch until all others are in line again, so that the order is known.
BOOST_AUTO_TEST_CASE(prompts_and_answers_take_turns) {
  Rig rig;
  constexpr int kRounds = 10;
  constexpr size_t kPrompts = 2, kAnswers = 4;
  std::vector<int> left(kPrompts + kAnswers, kRounds);
  rig.meanwhile = [&] {
    auto others = std::count_if(left.begin(), left.end(), [](int rounds) { return rounds > 0; });
    others -= std::ssize(rig.batches.back());
    for (const size_t session : rig.batches.back()) --left[session];
    Eventually([&] { return rig.queue.counts().in_line >= others; });
  };
  std::vector<std::future<bool>> sessions;
  for (size_t session = 0; session < kPrompts + kAnswers; ++session)
    sessions.push_back(std::async(std::launch::async, [&rig, session] {
      bool sound = true;
      for (int i = 0; i < kRounds; ++i)
        sound = rig.Step(session, session < kPrompts ? kMaxRows : 1).ok() && sound;
      return sound;
    }));
  for (auto& session : sessions) BOOST_TEST(session.get());
  std::map<size_t, size_t> last;
  for (size_t at = 0; at < rig.batches.size(); ++at)
    for (const size_t session : rig.batches[at]) {
      if (last.contains(session)) BOOST_TEST(at - last[session] <= kPrompts + 2);
      last[session] = at;
    }
}

BOOST_AUTO_TEST_CASE(members_of_the_last_batch_are_waited_for) {
  Rig rig(kEndless);
  auto first = rig.CloseGate();
  auto second = rig.StepLater(1);
  rig.Open();
  BOOST_TEST(first.get().ok());
  // Session 1 leads and finds session 0 missing.
  BOOST_TEST(Eventually([&] { return rig.queue.counts().waits == 1; }));
  BOOST_TEST(rig.started == 1);
  BOOST_TEST(rig.Step(0).ok());
  BOOST_TEST(second.get().ok());
  BOOST_TEST((rig.batches == Batches{{0}, {1, 0}}));
}

BOOST_AUTO_TEST_CASE(who_does_not_come_back_is_waited_for_once) {
  Rig rig({.share = 1e9, .most = Milliseconds(20)});
  auto first = rig.CloseGate();
  auto second = rig.StepLater(1);
  rig.Open();
  BOOST_TEST(first.get().ok());
  BOOST_TEST(second.get().ok());
  for (int i = 0; i < 10; ++i) BOOST_TEST(rig.Step(1).ok());
  BOOST_TEST(rig.queue.counts().waits <= 1);
  BOOST_TEST(rig.queue.counts().waited_us < 10'000'000);
}

BOOST_AUTO_TEST_CASE(a_full_batch_waits_for_nobody) {
  Rig rig(kEndless);
  auto first = rig.CloseGate();
  auto prompt = rig.StepLater(1, kMaxRows);
  rig.Open();
  BOOST_TEST(first.get().ok());
  BOOST_TEST(prompt.get().ok());
  BOOST_TEST(rig.queue.counts().waits == 0);
}

BOOST_AUTO_TEST_CASE(a_caller_cancelled_in_line_leaves_at_once_and_is_missed_by_nobody) {
  Rig rig;
  auto first = rig.CloseGate();
  std::atomic<bool> stop{false};
  auto leaver = rig.StepLater(1, 1, [&] { return stop.load(); });
  auto other = rig.StepLater(2);
  stop = true;
  BOOST_TEST((leaver.get().code() == Code::kCancelled));
  BOOST_TEST(rig.started == 1);
  rig.Open();
  BOOST_TEST(other.get().ok());
  BOOST_TEST((rig.batches == Batches{{0}, {2}}));
  BOOST_TEST(rig.timelines[1].position() == 0);
  BOOST_TEST(rig.Step(1).ok());
}

BOOST_AUTO_TEST_CASE(a_caller_cancelled_before_its_batch_has_no_part_in_it) {
  Rig rig;
  BOOST_TEST((rig.Step(0, 1, [] { return true; }).code() == Code::kCancelled));
  BOOST_TEST(rig.queue.counts().batches == 0);
  BOOST_TEST(rig.Step(1).ok());
}

BOOST_AUTO_TEST_CASE(a_member_cancelled_in_its_batch_changes_nothing_for_the_others) {
  Rig rig;
  auto first = rig.CloseGate();
  std::atomic<bool> stop{false};
  auto leaver = rig.StepLater(1, 1, [&] { return stop.load(); });
  auto other = rig.StepLater(2);
  rig.meanwhile = [&] { stop = rig.started == 2; };
  rig.Open();
  BOOST_TEST((leaver.get().code() == Code::kCancelled));
  BOOST_TEST(other.get().ok());
  BOOST_TEST((rig.batches == Batches{{0}, {1, 2}}));
  BOOST_TEST(rig.timelines[1].position() == 0);
  BOOST_TEST(rig.timelines[2].position() == 1);
}

BOOST_AUTO_TEST_CASE(an_error_is_that_of_all_members_and_each_may_try_again) {
  Rig rig;
  auto first = rig.CloseGate();
  std::vector<std::future<Status>> others;
  for (const size_t session : {1, 2, 3}) others.push_back(rig.StepLater(session));
  rig.outcome = Status(Code::kIo, "bank 3");
  rig.Open();
  for (auto& other : others) {
    const Status status = other.get();
    BOOST_TEST((status.code() == Code::kIo));
    BOOST_TEST(status.message() == "bank 3");
  }
  rig.outcome = Status();
  for (const size_t session : {1, 2, 3}) BOOST_TEST(rig.Step(session).ok());
}

BOOST_AUTO_TEST_CASE(what_a_batch_throws_all_members_throw_and_the_queue_goes_on) {
  Rig rig;
  auto first = rig.CloseGate();
  std::vector<std::future<Status>> others;
  for (const size_t session : {1, 2}) others.push_back(rig.StepLater(session));
  rig.meanwhile = [&] {
    if (rig.started == 2) throw std::runtime_error("a bug");
  };
  rig.Open();
  for (auto& other : others) BOOST_CHECK_THROW(static_cast<void>(other.get()), std::runtime_error);
  BOOST_TEST(rig.Step(1).ok());
}

BOOST_AUTO_TEST_CASE(a_turn_comes_in_order_and_no_batch_runs_meanwhile) {
  Rig rig;
  auto first = rig.CloseGate();
  auto before = rig.StepLater(1, kMaxRows);
  auto holder = std::async(std::launch::async, [&] { return rig.queue.Enter(); });
  BOOST_TEST(Eventually([&] { return rig.queue.counts().in_line == 2; }));
  auto after = rig.StepLater(2, kMaxRows);
  rig.Open();
  BOOST_TEST(before.get().ok());
  {
    const BatchQueue::Turn turn = holder.get();
    std::this_thread::sleep_for(Milliseconds(20));
    BOOST_TEST(rig.started == 2);
  }
  BOOST_TEST(after.get().ok());
  BOOST_TEST((rig.batches == Batches{{0}, {1}, {2}}));
}

BOOST_AUTO_TEST_CASE(many_threads_each_get_their_own) {
  Rig rig(BatchQueue::Patience{});
  constexpr int kSteps = 300;
  rig.meanwhile = [] { std::this_thread::sleep_for(std::chrono::microseconds(20)); };
  std::vector<std::future<bool>> sessions;
  for (size_t session = 0; session < rig.timelines.size(); ++session)
    sessions.push_back(std::async(std::launch::async, [&, session] {
      std::minstd_rand random(static_cast<uint32_t>(session + 1));
      bool sound = true;
      int64_t rows_done = 0;
      for (int i = 0; i < kSteps; ++i) {
        if (random() % 16 == 0) const BatchQueue::Turn turn = rig.queue.Enter();
        const auto rows = static_cast<int64_t>(random() % 8 == 0 ? kMaxRows : 1 + random() % 2);
        int polls = static_cast<int>(random() % 6);
        const bool stops = random() % 4 == 0;
        const Status status = rig.Step(session, rows, [&] { return stops && polls-- <= 0; });
        rows_done += status.ok() ? rows : 0;
        sound = sound && (status.ok() || status.code() == Code::kCancelled) &&
                rig.timelines[session].position() == rows_done;
      }
      return sound;
    }));
  for (auto& session : sessions) BOOST_TEST(session.get());
  for (const auto& batch : rig.batches)
    BOOST_TEST(std::set<size_t>(batch.begin(), batch.end()).size() == batch.size());
  const BatchQueue::Counts counts = rig.queue.counts();
  BOOST_TEST(counts.in_line == 0);
  BOOST_TEST(counts.batches == std::ssize(rig.batches));
  BOOST_TEST(counts.steps > counts.batches);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
