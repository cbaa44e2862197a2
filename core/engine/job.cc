// SPDX-License-Identifier: Apache-2.0

#include "engine/job.h"

#include <chrono>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "os/signals_blocked.h"

namespace waste {

Result<std::shared_ptr<Job>> Job::Start(Work work) {
  const SignalsBlocked signals_blocked;
  try {
    return std::shared_ptr<Job>(new Job(std::move(work)));
  } catch (const std::system_error& error) {
    return Failure(Code::kNoMemory, "the system gave no thread: ", error.what());
  }
}

Job::Job(Work work) : thread_([this, work = std::move(work)] { Run(work); }) {}

Job::~Job() {
  Cancel();
  thread_.join();
}

// This thread has no caller, so what the C boundary does for others happens here: no exception
// leaves.
void Job::Run(const Work& work) {
  Status status;
  try {
    status = work(progress_);
  } catch (const std::bad_alloc&) {
    status = Status(Code::kNoMemory, "the system gave no memory");
  } catch (const std::exception& error) {
    status = Status(Code::kInternal, error.what());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  result_ = std::move(status);
  ended_.notify_all();
}

bool Job::finished() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return result_.has_value();
}

std::optional<Status> Job::Wait(int64_t timeout_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto done = [this] { return result_.has_value(); };
  if (timeout_ms < 0) {
    ended_.wait(lock, done);
  } else if (!ended_.wait_for(lock, std::chrono::milliseconds(timeout_ms), done)) {
    return std::nullopt;
  }
  return result_;
}

}  // namespace waste
