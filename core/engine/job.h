// SPDX-License-Identifier: Apache-2.0
//
// Long work on a thread of its own: opening, converting, verifying. The work writes its Progress
// and asks it whether to stop; any thread may read, wait and cancel. Destruction cancels and joins.

#ifndef WASTE_CORE_ENGINE_JOB_H_
#define WASTE_CORE_ENGINE_JOB_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/progress.h"
#include "base/status.h"

namespace waste {

class Job {
 public:
  using Work = std::function<Status(const std::shared_ptr<Progress>&)>;

  // Errors: kNoMemory if the system gives no thread.
  static Result<std::shared_ptr<Job>> Start(Work work);
  ~Job();

  Progress& progress() { return *progress_; }
  void Cancel() { progress_->Cancel(); }
  bool finished() const;
  // What the work returned, or nothing if it still runs after `timeout_ms` (< 0: no limit).
  std::optional<Status> Wait(int64_t timeout_ms);

 private:
  explicit Job(Work work);
  void Run(const Work& work);

  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<Status> result_;
  std::thread thread_;
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_JOB_H_
