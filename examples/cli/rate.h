// SPDX-License-Identifier: Apache-2.0
//
// How often threads do something a second, for limits of the machine. One thread calls; these start
// their own.

#ifndef WASTE_EXAMPLES_CLI_RATE_H_
#define WASTE_EXAMPLES_CLI_RATE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace waste_cli {

inline constexpr double kRateSeconds = 0.4;  // of a limit in all

// Runs `work`, which returns how much it did, on each thread again and again for `seconds`. Returns
// the sum of what was done a second.
inline double Rate(int32_t threads, double seconds,
                   const std::function<double(int32_t thread)>& work) {
  using Clock = std::chrono::steady_clock;
  std::atomic<double> total{0};
  std::vector<std::thread> team;
  const auto start = Clock::now();
  for (int32_t thread = 0; thread < threads; ++thread)
    team.emplace_back([&, thread] {
      double done = 0;
      const std::chrono::duration<double> limit(seconds);
      while (Clock::now() - start < limit) done += work(thread);
      total.fetch_add(done);
    });
  for (std::thread& thread : team) thread.join();
  return total / std::chrono::duration<double>(Clock::now() - start).count();
}

// The best of several shorter runs: what else the machine does is no limit of it.
inline double BestRate(int32_t threads, const std::function<double(int32_t thread)>& work) {
  constexpr int kRuns = 4;
  double best = 0;
  for (int run = 0; run < kRuns; ++run)
    best = std::max(best, Rate(threads, kRateSeconds / kRuns, work));
  return best;
}

// Keeps the compiler from leaving out what made `value`.
template <typename T>
void Keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_RATE_H_
