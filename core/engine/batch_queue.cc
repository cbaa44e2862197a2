// SPDX-License-Identifier: Apache-2.0

#include "engine/batch_queue.h"

#include <algorithm>

#include "base/check.h"

namespace waste {
namespace {

// A cancel does not wake who waits, so it looks this often.
constexpr auto kPollInterval = std::chrono::milliseconds(10);

// What a Turn needs of a batch: nothing.
int64_t RowsOf(const SessionStep* step) {
  return step == nullptr ? 0 : static_cast<int64_t>(step->tokens.size());
}

}  // namespace

// What is left of a batch.
class BatchQueue::Room {
 public:
  explicit Room(const Limits& limits) : left_(limits) {}

  // False, and nothing is taken, if `step` does not fit; the first one always does. A Turn's null
  // takes no room.
  bool Take(const SessionStep* step) {
    const int64_t rows = RowsOf(step), written = step != nullptr && !step->is_prompt ? rows : 0;
    const bool fits = rows <= left_.rows && written <= left_.written;
    if (!fits && !is_empty_) return false;
    is_empty_ = is_empty_ && rows == 0;
    left_.rows -= rows;
    left_.written -= written;
    return true;
  }
  bool is_full() const { return left_.rows <= 0 || left_.written <= 0; }

 private:
  Limits left_;
  bool is_empty_ = true;
};

BatchQueue::BatchQueue(const Limits& limits, Run run, Patience patience)
    : run_(std::move(run)), patience_(patience), limits_(limits) {
  const auto most = static_cast<size_t>(limits.rows);
  waiting_.reserve(most);
  batch_.reserve(most);
  steps_.reserve(most);
  absent_.reserve(most);
}

void BatchQueue::Limit(const Limits& limits) {
  const std::lock_guard<std::mutex> lock(mutex_);
  limits_ = limits;
}

void BatchQueue::Step(SessionStep& step) {
  WASTE_CHECK(!step.tokens.empty());
  Ticket ticket;
  ticket.step = &step;
  std::unique_lock<std::mutex> lock(mutex_);
  Join(ticket);
  while (ticket.place != Place::kDone) {
    if (IsNext(ticket)) {
      Lead(lock);
      continue;
    }
    ticket.moved.wait_for(lock, kPollInterval);
    // Once in a batch its rows are being worked on, and the batch decides.
    if (ticket.place == Place::kWaiting && !IsNext(ticket) && step.stopped()) {
      Withdraw(ticket);
      step.status = Status(Code::kCancelled, "cancelled while waiting for other sessions");
      return;
    }
  }
  if (ticket.failure) std::rethrow_exception(ticket.failure);
}

BatchQueue::Turn BatchQueue::Enter() {
  Ticket ticket;
  std::unique_lock<std::mutex> lock(mutex_);
  Join(ticket);
  while (!IsNext(ticket)) ticket.moved.wait(lock);
  Withdraw(ticket);
  running_ = true;
  return Turn(this);
}

void BatchQueue::Leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  running_ = false;
  WakeNext();
}

BatchQueue::Counts BatchQueue::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Counts counts = counts_;
  counts.in_line = std::ssize(waiting_);
  return counts;
}

void BatchQueue::Join(Ticket& ticket) {
  waiting_.push_back(&ticket);
  if (ticket.step != nullptr) std::erase(absent_, ticket.step->timeline);
  if (absent_.empty() || IsFull()) complete_.notify_one();
}

void BatchQueue::Withdraw(const Ticket& ticket) {
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &ticket));
}

void BatchQueue::Lead(std::unique_lock<std::mutex>& lock) {
  running_ = true;
  AwaitAbsent(lock);
  TakeBatch();
  const Clock::time_point start = Clock::now();
  std::exception_ptr failure;
  if (!steps_.empty()) {
    lock.unlock();
    try {
      run_(steps_);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
  }
  const Clock::time_point end = Clock::now();
  const std::chrono::duration<double> patience =
      std::min<std::chrono::duration<double>>((end - start) * patience_.share, patience_.most);
  deadline_ = end + std::chrono::duration_cast<Clock::duration>(patience);
  EndBatch(failure);
}

void BatchQueue::AwaitAbsent(std::unique_lock<std::mutex>& lock) {
  const auto is_complete = [this] { return absent_.empty() || IsFull(); };
  const Clock::time_point start = Clock::now();
  if (is_complete() || start >= deadline_) return;
  ++counts_.waits;
  complete_.wait_until(lock, deadline_, is_complete);
  counts_.waited_us +=
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
}

bool BatchQueue::HasCompany(const Timeline& timeline) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto is_other = [&](const Timeline* other) { return other != &timeline; };
  const auto is_others = [&](const Ticket* t) {
    return t->step != nullptr && is_other(t->step->timeline);
  };
  return std::ranges::any_of(waiting_, is_others) || std::ranges::any_of(batch_, is_others) ||
         std::ranges::any_of(absent_, is_other);
}

// Whether a batch of those who wait has no room left.
bool BatchQueue::IsFull() const {
  Room room(limits_);
  for (const Ticket* ticket : waiting_) room.Take(ticket->step);
  return room.is_full();
}

// Who was stopped meanwhile is done without having been in a batch.
void BatchQueue::TakeBatch() {
  Room room(limits_);
  for (Ticket* ticket : waiting_) {
    SessionStep* step = ticket->step;
    if (step == nullptr) continue;
    if (step->stopped()) {
      step->status = Status(Code::kCancelled, "cancelled before its step began");
      ticket->place = Place::kDone;
      ticket->moved.notify_one();
      continue;
    }
    if (!room.Take(step)) continue;
    ticket->place = Place::kInBatch;
    batch_.push_back(ticket);
    steps_.push_back(*step);
  }
  std::erase_if(waiting_, [](const Ticket* t) { return t->place != Place::kWaiting; });
}

// Whoever wanted logits samples a token and comes back with it.
void BatchQueue::EndBatch(const std::exception_ptr& failure) {
  counts_.batches += batch_.empty() ? 0 : 1;
  counts_.steps += std::ssize(batch_);
  absent_.clear();
  for (size_t i = 0; i < batch_.size(); ++i) {
    Ticket& ticket = *batch_[i];
    *ticket.step = std::move(steps_[i]);
    ticket.failure = failure;
    ticket.place = Place::kDone;
    ticket.moved.notify_one();
    if (ticket.step->status.ok() && !ticket.step->logits.empty())
      absent_.push_back(ticket.step->timeline);
  }
  batch_.clear();
  steps_.clear();
  running_ = false;
  WakeNext();
}

void BatchQueue::WakeNext() {
  if (!waiting_.empty()) waiting_.front()->moved.notify_one();
}

}  // namespace waste
