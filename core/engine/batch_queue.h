// SPDX-License-Identifier: Apache-2.0
//
// Sessions of one model that step at the same time share a step. There is no thread for it: the
// caller who is first in line while nothing runs leads. It takes its own rows and, in the order in
// which they came, those of all waiting callers that still fit, runs them as one batch, hands out
// the results, and the next in line leads. Each batch has the first in line, so nobody waits for
// more batches than there were callers before it; what does not fit is passed over meanwhile.
//
// Sessions that decode come back within the time of sampling a token. A leader who finds some of
// the last batch missing waits for them, but no longer than a small part of the time that a batch
// takes: else the first one back would run alone, and the others would be halves of batches for
// ever. A session that was alone in the last batch waits for nobody.
//
// Any thread; a session has one step in the queue at a time.

#ifndef WASTE_CORE_ENGINE_BATCH_QUEUE_H_
#define WASTE_CORE_ENGINE_BATCH_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "engine/backend.h"

namespace waste {

class BatchQueue {
 public:
  // Runs all as one step and sets the status of each. One call at a time, from any thread.
  using Run = std::function<void(std::span<SessionStep>)>;

  // How long the missing members of a batch are waited for once it has ended.
  struct Patience {
    double share = 1.0 / 16;  // of the time that the batch took
    std::chrono::microseconds most{10'000};
  };

  // The most tokens of a batch, and of them the most that are of answers.
  struct Limits {
    int64_t rows;
    int64_t written;
  };

  BatchQueue(const Limits& limits, Run run, Patience patience);
  // Other limits, no larger than those at first, from the next batch on. Steps that wait already
  // and are longer still run, alone.
  void Limit(const Limits& limits);

  // Returns once `step`, of at most limits.rows tokens, was part of a batch, with the status that
  // `run` set, or with kCancelled as soon as it is stopped before that. What `run` throws, each
  // member of its batch throws.
  void Step(SessionStep& step);

  // No batch runs while it lives.
  class Turn {
   public:
    explicit Turn(BatchQueue* queue) : queue_(queue) {}
    Turn(Turn&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (queue_ != nullptr) queue_->Leave();
    }

   private:
    BatchQueue* queue_;
  };
  // Blocks until all who came before have had their batch.
  Turn Enter();

  struct Counts {
    int64_t batches = 0;
    int64_t steps = 0;  // of single sessions, in all batches
    int64_t waits = 0;  // for members of the batch before
    int64_t waited_us = 0;
    int64_t in_line = 0;  // callers that wait now
  };
  Counts counts() const;
  // Whether sessions other than that of `timeline` step at this time.
  bool HasCompany(const Timeline& timeline) const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Place { kWaiting, kInBatch, kDone };

  // Somebody in the queue, on its own stack.
  struct Ticket {
    SessionStep* step = nullptr;  // null: wants a Turn
    Place place = Place::kWaiting;
    std::exception_ptr failure;
    std::condition_variable moved;
  };

  class Room;

  void Leave();

  // All with mutex_ held.
  bool IsNext(const Ticket& ticket) const { return !running_ && waiting_.front() == &ticket; }
  void Join(Ticket& ticket);
  void Withdraw(const Ticket& ticket);
  void Lead(std::unique_lock<std::mutex>& lock);
  void AwaitAbsent(std::unique_lock<std::mutex>& lock);
  bool IsFull() const;
  void TakeBatch();
  void EndBatch(const std::exception_ptr& failure);
  void WakeNext();

  const Run run_;
  const Patience patience_;

  mutable std::mutex mutex_;  // guards what follows
  Limits limits_;
  std::condition_variable complete_;     // nobody is absent, or the batch is full
  bool running_ = false;                 // somebody leads, or has a Turn
  std::vector<Ticket*> waiting_;         // in the order in which they came
  std::vector<Ticket*> batch_;           // those whose steps run
  std::vector<SessionStep> steps_;       // theirs
  std::vector<const Timeline*> absent_;  // of the last batch, those expected back; only compared
  Clock::time_point deadline_;           // for waiting for them
  Counts counts_;
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_BATCH_QUEUE_H_
