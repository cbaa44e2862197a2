// SPDX-License-Identifier: Apache-2.0
//
// macOS reports changes of three levels to a queue of its own; the level at the start comes from
// sysctl. Written by Apple's documentation; the tests of this tree do not run it.

#if defined(__APPLE__)

#include <dispatch/dispatch.h>
#include <sys/sysctl.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "os/memory_pressure.h"

namespace waste {
namespace {

// The bits of a dispatch source's data, and the values of the sysctl as well.
PressureLevel LevelOf(uintptr_t reported) {
  if ((reported & DISPATCH_MEMORYPRESSURE_CRITICAL) != 0) return PressureLevel::kCritical;
  if ((reported & DISPATCH_MEMORYPRESSURE_WARN) != 0) return PressureLevel::kSome;
  return PressureLevel::kNone;
}

class AppleMemoryPressure : public MemoryPressure {
 public:
  explicit AppleMemoryPressure(dispatch_source_t source)
      : source_(source), cancelled_(dispatch_semaphore_create(0)) {
    int32_t level = 0;
    size_t size = sizeof level;
    if (sysctlbyname("kern.memorystatus_vm_pressure_level", &level, &size, nullptr, 0) == 0)
      level_ = LevelOf(static_cast<uintptr_t>(level));
    dispatch_set_context(source_, this);
    dispatch_source_set_event_handler_f(
        source_, [](void* self) { static_cast<AppleMemoryPressure*>(self)->Change(); });
    dispatch_source_set_cancel_handler_f(source_, [](void* self) {
      dispatch_semaphore_signal(static_cast<AppleMemoryPressure*>(self)->cancelled_);
    });
    dispatch_resume(source_);
  }
  AppleMemoryPressure(const AppleMemoryPressure&) = delete;
  AppleMemoryPressure& operator=(const AppleMemoryPressure&) = delete;
  ~AppleMemoryPressure() override {
    dispatch_source_cancel(source_);
    dispatch_semaphore_wait(cancelled_, DISPATCH_TIME_FOREVER);  // no handler runs after that one
    dispatch_release(source_);
    dispatch_release(cancelled_);
  }

  PressureLevel Wait(int64_t timeout_ms) override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                      [this] { return stopped_ || fresh_; });
    fresh_ = false;
    return level_;
  }

  void Stop() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  void Change() {
    const std::lock_guard<std::mutex> lock(mutex_);
    level_ = LevelOf(dispatch_source_get_data(source_));
    fresh_ = true;
    changed_.notify_all();
  }

  const dispatch_source_t source_;
  const dispatch_semaphore_t cancelled_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  PressureLevel level_ = PressureLevel::kNone;
  bool fresh_ = false;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<MemoryPressure> SystemMemoryPressure() {
  const dispatch_source_t source =
      dispatch_source_create(DISPATCH_SOURCE_TYPE_MEMORYPRESSURE, 0,
                             DISPATCH_MEMORYPRESSURE_NORMAL | DISPATCH_MEMORYPRESSURE_WARN |
                                 DISPATCH_MEMORYPRESSURE_CRITICAL,
                             dispatch_get_global_queue(QOS_CLASS_UTILITY, 0));
  if (source == nullptr) return nullptr;
  return std::make_unique<AppleMemoryPressure>(source);
}

}  // namespace waste

#endif  // defined(__APPLE__)
