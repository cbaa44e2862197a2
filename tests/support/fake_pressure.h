// SPDX-License-Identifier: Apache-2.0
//
// A source of memory pressure that says what the test orders, at once. Test and source share the
// knob, which may outlive the source. Any thread.

#ifndef WASTE_TESTS_SUPPORT_FAKE_PRESSURE_H_
#define WASTE_TESTS_SUPPORT_FAKE_PRESSURE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "os/memory_pressure.h"

namespace waste {

class PressureKnob {
 public:
  void Set(PressureLevel level) {
    const std::lock_guard<std::mutex> lock(mutex_);
    level_ = level;
    changed_ = true;
    wake_.notify_all();
  }
  void Stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    wake_.notify_all();
  }
  PressureLevel Wait(int64_t timeout_ms) {
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                   [this] { return stopped_ || changed_; });
    changed_ = false;
    return level_;
  }
  bool stopped() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stopped_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  PressureLevel level_ = PressureLevel::kNone;
  bool changed_ = false;
  bool stopped_ = false;
};

class FakePressure : public MemoryPressure {
 public:
  explicit FakePressure(std::shared_ptr<PressureKnob> knob) : knob_(std::move(knob)) {}

  PressureLevel Wait(int64_t timeout_ms) override { return knob_->Wait(timeout_ms); }
  void Stop() override { knob_->Stop(); }

  // What OpenOptions::pressure takes.
  static std::function<std::unique_ptr<MemoryPressure>()> On(std::shared_ptr<PressureKnob> knob) {
    return [knob = std::move(knob)] { return std::make_unique<FakePressure>(knob); };
  }

 private:
  std::shared_ptr<PressureKnob> knob_;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_FAKE_PRESSURE_H_
