// SPDX-License-Identifier: Apache-2.0
//
// A thread that listens for memory pressure and makes the expert cache smaller while it lasts and
// larger again afterwards, as ElasticPolicy says. It starts with Create, ends with the object, runs
// no signal handlers of the host, and calls nothing but what it was given.

#ifndef WASTE_CORE_ENGINE_PRESSURE_WATCHER_H_
#define WASTE_CORE_ENGINE_PRESSURE_WATCHER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/status.h"
#include "budget/elastic_policy.h"
#include "os/memory_pressure.h"

namespace waste {

class PressureWatcher {
 public:
  // Lets the cache hold `bytes` from now on; returns what it may hold with all other limits. Called
  // on the watcher's thread, a few times a second while there is a limit: a cache that was busy
  // gives back at the next call what it kept. Does not throw.
  using Limit = std::function<int64_t(int64_t bytes)>;

  // `full_bytes`: what the cache may hold without pressure. Errors: kNoMemory if the system gives
  // no thread.
  static Result<std::unique_ptr<PressureWatcher>> Create(std::unique_ptr<MemoryPressure> pressure,
                                                         int64_t full_bytes,
                                                         const ElasticPace& pace, Limit limit);
  PressureWatcher(const PressureWatcher&) = delete;
  PressureWatcher& operator=(const PressureWatcher&) = delete;
  ~PressureWatcher();  // no call of `limit` runs any more when it returns

 private:
  PressureWatcher(std::unique_ptr<MemoryPressure> pressure, int64_t full_bytes,
                  const ElasticPace& pace, Limit limit);
  void Watch();
  PressureLevel Listen(int64_t timeout_ms);

  std::unique_ptr<MemoryPressure> pressure_;
  ElasticPolicy policy_;  // of the thread alone, like what follows
  Limit limit_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_PRESSURE_WATCHER_H_
