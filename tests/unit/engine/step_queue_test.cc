// SPDX-License-Identifier: Apache-2.0

#include "engine/step_queue.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(step_queue)

BOOST_AUTO_TEST_CASE(one_turn_at_a_time_and_nobody_starves) {
  StepQueue queue;
  std::atomic<int> inside{0};
  std::atomic<bool> collided{false};
  constexpr int kTurns = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kTurns; ++i) {
        const auto turn = queue.Enter(nullptr);
        if (!turn.ok() || inside.fetch_add(1) != 0) collided = true;
        inside.fetch_sub(1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(!collided);
}

BOOST_AUTO_TEST_CASE(waiting_ends_when_cancelled) {
  StepQueue queue;
  auto first = queue.Enter(nullptr);
  std::atomic<bool> stop{false};
  auto waiter = std::async(std::launch::async, [&] {
    const auto turn = queue.Enter([&] { return stop.load(); });
    return turn.status().code();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  stop = true;
  BOOST_CHECK(waiter.get() == Code::kCancelled);
  { const auto turn = std::move(first); }
  BOOST_CHECK(queue.Enter(nullptr).ok());  // the one who left is not waited for
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
