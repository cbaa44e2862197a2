// SPDX-License-Identifier: Apache-2.0

#include "engine/step_queue.h"

#include <algorithm>
#include <chrono>

namespace waste {

// A cancel does not wake the waiter, so it looks this often.
constexpr auto kPollInterval = std::chrono::milliseconds(10);

Result<StepQueue::Turn> StepQueue::Enter(const std::function<bool()>& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t ticket = next_ticket_++;
  waiting_.push_back(ticket);
  while (waiting_.front() != ticket) {
    moved_.wait_for(lock, kPollInterval);
    if (stop && stop() && waiting_.front() != ticket) {
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), ticket));
      return Status(Code::kCancelled, "cancelled while waiting for other sessions");
    }
  }
  return Turn(this);
}

void StepQueue::Leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.pop_front();
  moved_.notify_all();
}

}  // namespace waste
