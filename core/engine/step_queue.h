// SPDX-License-Identifier: Apache-2.0
//
// Steps of one model run one at a time, in the order in which sessions asked: a mutex would let a
// session that asks again at once starve the others. Waiting ends early when `stop` says so. Any
// thread.

#ifndef WASTE_CORE_ENGINE_STEP_QUEUE_H_
#define WASTE_CORE_ENGINE_STEP_QUEUE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "base/status.h"

namespace waste {

class StepQueue {
 public:
  // Holds the turn until destroyed.
  class Turn {
   public:
    explicit Turn(StepQueue* queue) : queue_(queue) {}
    Turn(Turn&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (queue_ != nullptr) queue_->Leave();
    }

   private:
    StepQueue* queue_;
  };

  // Blocks until it is this caller's turn, or gives kCancelled.
  Result<Turn> Enter(const std::function<bool()>& stop);

 private:
  void Leave();

  std::mutex mutex_;
  std::condition_variable moved_;
  std::deque<uint64_t> waiting_;  // tickets; the first one has the turn
  uint64_t next_ticket_ = 0;
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_STEP_QUEUE_H_
