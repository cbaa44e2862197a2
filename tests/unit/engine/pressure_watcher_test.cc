// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <csignal>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>

#include "engine/pressure_watcher.h"
#include "os/system.h"
#include "support/eventually.h"
#include "support/fake_pressure.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

constexpr ElasticPace kQuick = {.halving_us = 1000, .calm_us = 1000, .growth_us = 1000};
constexpr int64_t kFull = 1 << 20;

// A watcher over a number in place of a cache.
struct Rig {
  explicit Rig(const ElasticPace& pace = kQuick)
      : watcher(Require(PressureWatcher::Create(std::make_unique<FakePressure>(knob), kFull, pace,
                                                [this](int64_t bytes) {
                                                  allowed = bytes;
                                                  ++calls;
                                                  return std::min(bytes, other_limit.load());
                                                }))) {}

  std::shared_ptr<PressureKnob> knob = std::make_shared<PressureKnob>();
  std::atomic<int64_t> allowed{kFull};
  std::atomic<int64_t> calls{0};
  std::atomic<int64_t> other_limit{INT64_MAX};
  std::unique_ptr<PressureWatcher> watcher;
};

BOOST_AUTO_TEST_SUITE(pressure_watcher)

BOOST_AUTO_TEST_CASE(nothing_is_limited_without_pressure) {
  Rig rig;
  rig.knob->Set(PressureLevel::kNone);
  rig.knob->Set(PressureLevel::kTight);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  rig.watcher.reset();
  BOOST_TEST(rig.calls == 0);
  BOOST_TEST(rig.knob->stopped());
}

BOOST_AUTO_TEST_CASE(critical_pressure_leaves_nothing_and_calm_gives_it_back) {
  Rig rig;
  rig.knob->Set(PressureLevel::kCritical);
  BOOST_TEST(Eventually([&] { return rig.allowed == 0; }));
  rig.knob->Set(PressureLevel::kNone);
  BOOST_TEST(Eventually([&] { return rig.allowed > 0; }));
  BOOST_TEST(Eventually([&] {
    rig.knob->Set(PressureLevel::kNone);  // wakes it, as a source that samples would
    return rig.allowed == kFull;
  }));
}

BOOST_AUTO_TEST_CASE(half_is_of_what_the_cache_may_hold) {
  Rig rig({.halving_us = INT64_MAX / 4});
  rig.other_limit = 1000;
  rig.knob->Set(PressureLevel::kSome);
  BOOST_TEST(Eventually([&] { return rig.allowed == 500; }));
}

BOOST_AUTO_TEST_CASE(a_limit_is_repeated_for_a_cache_that_was_busy) {
  Rig rig{ElasticPace()};
  rig.knob->Set(PressureLevel::kCritical);
  BOOST_TEST(Eventually([&] { return rig.calls >= 4; }));
  BOOST_TEST(rig.allowed == 0);
}

BOOST_AUTO_TEST_CASE(it_ends_at_once_whatever_it_is_doing) {
  const int64_t start_us = MonotonicMicros();
  for (int i = 0; i < 30; ++i) {
    Rig rig;
    if (i % 3 != 0) rig.knob->Set(i % 3 == 1 ? PressureLevel::kSome : PressureLevel::kCritical);
  }
  BOOST_TEST(MonotonicMicros() - start_us < 20'000'000);  // of 30 waits of a minute each
}

BOOST_AUTO_TEST_CASE(a_source_without_memory_of_its_own_means_critical) {
  class Failing : public FakePressure {
   public:
    using FakePressure::FakePressure;
    PressureLevel Wait(int64_t timeout_ms) override {
      FakePressure::Wait(std::min<int64_t>(timeout_ms, 10));
      throw std::bad_alloc();
    }
  };
  std::atomic<int64_t> allowed{kFull};
  const auto watcher =
      Require(PressureWatcher::Create(std::make_unique<Failing>(std::make_shared<PressureKnob>()),
                                      kFull, {}, [&](int64_t bytes) { return allowed = bytes; }));
  BOOST_TEST(Eventually([&] { return allowed == 0; }));
}

BOOST_AUTO_TEST_CASE(its_thread_takes_no_signals_of_the_host) {
  Rig rig;
  rig.watcher.reset();
  std::atomic<bool> blocked{false};
  const auto watcher = Require(PressureWatcher::Create(
      std::make_unique<FakePressure>(rig.knob = std::make_shared<PressureKnob>()), kFull, kQuick,
      [&](int64_t bytes) {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGSEGV) == 0;
        return bytes;
      }));
  rig.knob->Set(PressureLevel::kCritical);
  BOOST_TEST(Eventually([&] { return blocked.load(); }));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
