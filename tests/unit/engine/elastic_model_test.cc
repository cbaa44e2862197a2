// SPDX-License-Identifier: Apache-2.0
//
// The small trained model, whole, while memory is short and short no more.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "engine/model.h"
#include "os/system.h"
#include "support/eventually.h"
#include "support/fake_pressure.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

constexpr ElasticPace kQuick = {.halving_us = 1000, .calm_us = 1000, .growth_us = 1000};
constexpr const char* kMini = WASTE_SOURCE_DIR "/examples/mini/mini.waste";
constexpr int64_t kContext = 256;

struct Opened {
  explicit Opened(const ElasticPace& pace = {})
      : model(Require(Model::Open(kMini,
                                  {.context = kContext,
                                   .threads = 1,
                                   .io = IoMode::kBuffered,
                                   .pressure = FakePressure::On(knob),
                                   .pace = pace},
                                  std::make_shared<Progress>()))),
        timeline(Require(model->NewTimeline(kContext))),
        whole_bytes(model->charged_bytes()) {}

  // Greedy: each token is the likeliest one after those before. Adds every logit to `seen`.
  void Generate(int count, std::vector<float>& seen) {
    std::vector<float> logits(static_cast<size_t>(model->info().vocab));
    used = {};
    for (int i = 0; i < count; ++i) {
      Require(model->Step(*timeline, {&token, 1}, logits, false, nullptr, used));
      token = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      seen.insert(seen.end(), logits.begin(), logits.end());
    }
  }
  int64_t given_back() const { return whole_bytes - model->charged_bytes(); }

  std::shared_ptr<PressureKnob> knob = std::make_shared<PressureKnob>();
  std::shared_ptr<Model> model;
  std::unique_ptr<Timeline> timeline;
  int64_t whole_bytes;
  int32_t token = 3;
  ExpertCounters used;  // of the last call
};

BOOST_AUTO_TEST_SUITE(elastic_model)

BOOST_AUTO_TEST_CASE(pressure_changes_the_memory_and_not_the_text) {
  std::vector<float> calm, pressed;
  Opened().Generate(120, calm);

  Opened opened(kQuick);
  opened.Generate(24, pressed);
  opened.Generate(24, pressed);
  const int64_t warm_misses = opened.used.misses;
  opened.knob->Set(PressureLevel::kCritical);
  BOOST_TEST(Eventually([&] { return opened.given_back() == opened.model->plan().cache_bytes; }));
  opened.Generate(24, pressed);
  BOOST_TEST(opened.used.misses > 4 * (warm_misses + 1));
  BOOST_TEST(Eventually([&] {
    opened.knob->Set(PressureLevel::kNone);
    return opened.given_back() == 0;
  }));
  opened.Generate(24, pressed);
  opened.Generate(24, pressed);
  BOOST_TEST(opened.used.misses <= warm_misses + 1);
  BOOST_TEST((pressed == calm));
}

BOOST_AUTO_TEST_CASE(the_cache_gives_back_within_a_second) {
  Opened opened;
  std::vector<float> seen;
  opened.Generate(20, seen);
  const int64_t start_us = MonotonicMicros();
  opened.knob->Set(PressureLevel::kSome);
  const int64_t cache_bytes = opened.model->plan().cache_bytes;
  BOOST_TEST(Eventually([&] { return opened.given_back() >= cache_bytes / 8 * 7; }));
  const int64_t took_us = MonotonicMicros() - start_us;
  BOOST_TEST_MESSAGE("7/8 of the cache were given back after " << took_us / 1000 << " ms");
  BOOST_TEST(took_us >= 2 * ElasticPace().halving_us);
  BOOST_TEST(took_us < 10'000'000);  // a second, and what a loaded machine adds
}

BOOST_AUTO_TEST_CASE(pressure_that_comes_and_goes_while_steps_run_changes_no_bit) {
  std::vector<float> calm, pressed;
  Opened().Generate(120, calm);
  Opened opened(kQuick);
  std::atomic<bool> done{false};
  std::thread shaking([&] {
    const PressureLevel levels[] = {PressureLevel::kSome, PressureLevel::kCritical,
                                    PressureLevel::kNone, PressureLevel::kTight};
    for (int i = 0; !done; ++i) {
      opened.knob->Set(levels[i % 4]);
      std::this_thread::sleep_for(std::chrono::microseconds(300 + 100 * (i % 7)));
    }
  });
  opened.Generate(120, pressed);
  done = true;
  shaking.join();
  BOOST_TEST((pressed == calm));
}

BOOST_AUTO_TEST_CASE(sessions_that_come_and_go_do_not_lift_the_limit) {
  Opened opened;
  opened.knob->Set(PressureLevel::kCritical);
  const int64_t cache_bytes = opened.model->plan().cache_bytes;
  BOOST_TEST(Eventually([&] { return opened.given_back() == cache_bytes; }));
  Require(opened.model->ChargeSession(1000));
  BOOST_TEST(opened.given_back() == cache_bytes - 1000);  // and takes 1000 itself
  opened.model->ReleaseSession(1000);
  BOOST_TEST(opened.given_back() == cache_bytes);
  std::vector<float> seen;
  opened.Generate(20, seen);
  BOOST_TEST(opened.used.misses > 0);
}

BOOST_AUTO_TEST_CASE(a_model_without_a_cache_listens_to_nobody) {
  const OpenOptions plain = {.context = kContext, .threads = 1};
  int asked = 0;
  OpenOptions options = plain;
  options.budget_bytes = Require(Model::Plan(kMini, plain)).floor_bytes;
  options.pressure = [&asked] {
    ++asked;
    return nullptr;
  };
  Require(Model::Open(kMini, options, std::make_shared<Progress>()));
  BOOST_TEST(asked == 0);
  options.budget_bytes = 0;
  Require(Model::Open(kMini, options, std::make_shared<Progress>()));
  BOOST_TEST(asked == 1);
}

BOOST_AUTO_TEST_CASE(a_model_closes_while_pressure_is_reported) {
  for (int i = 0; i < 10; ++i) {
    Opened opened(kQuick);
    opened.knob->Set(i % 2 == 0 ? PressureLevel::kCritical : PressureLevel::kSome);
    opened.timeline.reset();
    opened.model.reset();
    BOOST_TEST(opened.knob->stopped());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
