// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "os/cpu_affinity.h"
#include "os/system.h"
#include "parallel/thread_pool.h"
#include "support/granted_cpus.h"

namespace waste {
namespace {

constexpr int32_t kTeams[] = {1, 2, 3, 8};

std::unique_ptr<ThreadPool> MakePool(int32_t threads) {
  auto pool = ThreadPool::Create(threads);
  BOOST_REQUIRE(pool.ok());
  return *std::move(pool);
}

int64_t ProcessCpuMicros() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

BOOST_AUTO_TEST_SUITE(thread_pool)

BOOST_AUTO_TEST_CASE(every_item_is_done_once_in_whole_pieces) {
  const struct {
    int64_t count, grain;
  } kJobs[] = {{0, 1},   {1, 1},    {1, 100},  {7, 1},           {64, 64},
               {65, 64}, {1000, 7}, {1000, 1}, {1000, INT64_MAX}};
  for (const int32_t threads : kTeams) {
    const auto pool = MakePool(threads);
    BOOST_TEST(pool->threads() == threads);
    for (const auto& job : kJobs) {
      std::vector<int32_t> times(static_cast<size_t>(job.count));
      std::atomic<bool> whole{true}, called{false};
      pool->Run(job.count, job.grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++times[i];
        if (begin % job.grain != 0 || (end % job.grain != 0 && end != job.count)) whole = false;
        if (end > begin) called = true;
      });
      BOOST_TEST_CONTEXT(threads << " threads, " << job.count << " by " << job.grain) {
        BOOST_TEST(std::all_of(times.begin(), times.end(), [](int32_t n) { return n == 1; }));
        BOOST_TEST(whole);
        BOOST_TEST((called || job.count == 0));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_negative_count_is_no_work) {
  bool called = false;
  MakePool(2)->Run(-5, 1, [&](int64_t, int64_t) { called = true; });
  BOOST_TEST(!called);
}

// What the caller wrote before Run is seen by the bodies, and what they wrote by the caller.
BOOST_AUTO_TEST_CASE(many_short_jobs_follow_each_other_without_a_mix_up) {
  for (const int32_t threads : kTeams) {
    const auto pool = MakePool(threads);
    std::vector<int64_t> in(37), out(37);
    for (int64_t job = 0; job < 3000; ++job) {
      std::iota(in.begin(), in.end(), job);
      pool->Run(37, 1 + job % 5, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = 3 * in[i] + 1;
      });
      for (int64_t i = 0; i < 37; ++i) BOOST_REQUIRE_EQUAL(out[i], 3 * (job + i) + 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(jobs_after_a_pause_wake_the_parked_team) {
  const auto pool = MakePool(3);
  for (int job = 0; job < 20; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int64_t> sum{0};
    pool->Run(100, 3, [&](int64_t begin, int64_t end) { sum += end - begin; });
    BOOST_REQUIRE_EQUAL(sum.load(), 100);
  }
}

BOOST_AUTO_TEST_CASE(workers_help_with_long_pieces) {
  const auto pool = MakePool(4);
  std::mutex mutex;
  std::set<std::thread::id> helpers;
  pool->Run(8, 1, [&](int64_t, int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const std::lock_guard<std::mutex> lock(mutex);
    helpers.insert(std::this_thread::get_id());
  });
  BOOST_TEST(helpers.size() == 4u);
}

BOOST_AUTO_TEST_CASE(an_idle_team_takes_no_processor_time) {
  const auto pool = MakePool(4);
  pool->Run(100, 1, [](int64_t, int64_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const int64_t before = ProcessCpuMicros();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  BOOST_TEST(ProcessCpuMicros() - before < 20'000);
}

BOOST_AUTO_TEST_CASE(what_a_body_throws_reaches_the_caller_and_the_team_lives_on) {
  for (const int32_t threads : kTeams) {
    const auto pool = MakePool(threads);
    for (int64_t bad = 0; bad < 20; ++bad) {
      std::atomic<int32_t> inside{0};
      const auto body = [&](int64_t begin, int64_t end) {
        ++inside;
        if (begin <= bad && bad < end) {
          --inside;
          throw std::runtime_error("piece");
        }
        --inside;
      };
      BOOST_CHECK_THROW(pool->Run(20, 1, body), std::runtime_error);
      BOOST_TEST(inside == 0);  // nobody is left in a body whose captures are about to die
    }
    std::atomic<int64_t> done{0};
    pool->Run(20, 1, [&](int64_t begin, int64_t end) { done += end - begin; });
    BOOST_TEST(done == 20);
  }
}

std::atomic<int> handled_elsewhere{0};
pthread_t main_thread;

void Handle(int) {
  if (!pthread_equal(pthread_self(), main_thread)) ++handled_elsewhere;
}

BOOST_AUTO_TEST_CASE(host_signal_handlers_do_not_run_on_workers) {
  main_thread = pthread_self();
  struct sigaction action = {}, before;
  action.sa_handler = Handle;
  sigaction(SIGUSR1, &action, &before);
  const auto pool = MakePool(4);
  std::atomic<int> seen{0};
  pool->Run(64, 1, [&](int64_t, int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that others get some
    if (pthread_equal(pthread_self(), main_thread)) return;
    ++seen;
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM, SIGPROF})
      if (sigismember(&blocked, number) == 0) ++handled_elsewhere;
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE})  // a crash reporter must see these
      if (sigismember(&blocked, fault) != 0) ++handled_elsewhere;
  });
  BOOST_TEST(seen > 0);
  for (int i = 0; i < 50; ++i) kill(getpid(), SIGUSR1);
  sigset_t mine;  // and the caller's own mask is as it was
  pthread_sigmask(SIG_BLOCK, nullptr, &mine);
  BOOST_TEST(sigismember(&mine, SIGUSR1) == 0);
  sigaction(SIGUSR1, &before, nullptr);
  BOOST_TEST(handled_elsewhere == 0);
}

// What every thread of a team of four on `cpus` sees as its own place.
std::set<std::vector<int>> PlacesOfTeam(const CpuSet& cpus) {
  const auto pool = ThreadPool::Create(4, cpus);
  BOOST_REQUIRE(pool.ok());
  std::mutex mutex;
  std::set<std::vector<int>> places;
  std::set<std::thread::id> seen;
  const OnCpus on_cpus(cpus);
  for (int tries = 0; seen.size() < 4 && tries < 100; ++tries) {
    (*pool)->Run(8, 1, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const std::lock_guard<std::mutex> lock(mutex);
      places.insert(waste_test::CpusOfThisThread());
      seen.insert(std::this_thread::get_id());
    });
  }
  BOOST_TEST(seen.size() == 4u);
  return places;
}

BOOST_AUTO_TEST_CASE(a_team_runs_on_its_cpus_only_and_may_use_each_of_them,
                     *boost::unit_test::precondition(waste_test::HasTwoCpus)) {
  const std::vector<int> before = waste_test::CpusOfThisThread();
  CpuSet one, two;
  one.Add(before.back());
  two.Add(before.front());
  two.Add(before.back());
  const std::set<std::vector<int>> on_one = {{before.back()}};
  const std::set<std::vector<int>> on_two = {{before.front(), before.back()}};
  BOOST_TEST((PlacesOfTeam(one) == on_one));
  BOOST_TEST((PlacesOfTeam(two) == on_two));
  BOOST_TEST((PlacesOfTeam(CpuSet()) == std::set<std::vector<int>>{before}));
  BOOST_TEST(waste_test::CpusOfThisThread() == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(pools_come_and_go) {
  for (int i = 0; i < 200; ++i) {
    const auto pool = MakePool(1 + i % 5);
    if (i % 3 == 0) continue;  // some are never used
    std::atomic<int64_t> sum{0};
    pool->Run(10, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    BOOST_REQUIRE_EQUAL(sum.load(), 10);
  }
}

BOOST_AUTO_TEST_CASE(two_pools_work_side_by_side) {
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> hosts;
  for (int h = 0; h < 2; ++h) {
    hosts.emplace_back([&] {
      const auto pool = ThreadPool::Create(3);
      if (!pool.ok()) return;
      for (int job = 0; job < 500; ++job)
        (*pool)->Run(10, 1, [&](int64_t begin, int64_t) { sum += begin; });
    });
  }
  for (std::thread& host : hosts) host.join();
  BOOST_TEST(sum == 2 * 500 * 45);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
