// SPDX-License-Identifier: Apache-2.0

#include "engine/pressure_watcher.h"

#include <new>
#include <system_error>
#include <utility>

#include "os/signals_blocked.h"
#include "os/system.h"

namespace waste {
namespace {

constexpr int64_t kIdleMs = 60'000;
constexpr int64_t kLimitedMs = 100;

}  // namespace

Result<std::unique_ptr<PressureWatcher>> PressureWatcher::Create(
    std::unique_ptr<MemoryPressure> pressure, int64_t full_bytes, const ElasticPace& pace,
    Limit limit) {
  std::unique_ptr<PressureWatcher> watcher(
      new PressureWatcher(std::move(pressure), full_bytes, pace, std::move(limit)));
  const SignalsBlocked blocked;
  try {
    watcher->thread_ = std::thread([w = watcher.get()] { w->Watch(); });
  } catch (const std::system_error& error) {
    return Failure(Code::kNoMemory,
                   "the system gave no thread that listens for memory pressure: ", error.what(),
                   "; end other threads or raise the limit of threads");
  }
  return watcher;
}

PressureWatcher::PressureWatcher(std::unique_ptr<MemoryPressure> pressure, int64_t full_bytes,
                                 const ElasticPace& pace, Limit limit)
    : pressure_(std::move(pressure)), policy_(full_bytes, pace), limit_(std::move(limit)) {}

PressureWatcher::~PressureWatcher() {
  stop_.store(true);
  pressure_->Stop();
  if (thread_.joinable()) thread_.join();
}

PressureLevel PressureWatcher::Listen(int64_t timeout_ms) {
  try {
    return pressure_->Wait(timeout_ms);
  } catch (const std::bad_alloc&) {  // nothing says it more clearly
    return PressureLevel::kCritical;
  }
}

void PressureWatcher::Watch() {
  int64_t held_bytes = policy_.full_bytes();
  bool limited = false;
  while (true) {
    const PressureLevel level = Listen(limited ? kLimitedMs : kIdleMs);
    if (stop_.load()) return;
    if (!limited && level >= PressureLevel::kSome) held_bytes = limit_(policy_.full_bytes());
    const int64_t bytes = policy_.Update(level, MonotonicMicros(), held_bytes);
    const bool was_limited = std::exchange(limited, policy_.limits());
    if (limited || was_limited) held_bytes = limit_(bytes);
  }
}

}  // namespace waste
