// SPDX-License-Identifier: Apache-2.0

#include "stream/expert_reader.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "os/signals_blocked.h"

namespace waste {

Result<std::unique_ptr<ExpertReader>> ExpertReader::Create(const Container& container,
                                                           int32_t lanes, int64_t capacity,
                                                           bool verify) {
  std::unique_ptr<ExpertReader> reader(new ExpertReader(container, capacity, verify));
  const SignalsBlocked signals_blocked;
  try {
    for (int32_t lane = 0; lane < lanes; ++lane)
      reader->threads_.emplace_back([r = reader.get()] { r->Work(); });
  } catch (const std::system_error& error) {
    // A drive that is read by fewer threads is slower, and that is all.
    if (reader->threads_.empty())
      return Failure(Code::kNoMemory, "the system gives no thread for reads: ", error.what());
  }
  return reader;
}

ExpertReader::ExpertReader(const Container& container, int64_t capacity, bool verify)
    : container_(container), verify_(verify) {
  queue_.reserve(static_cast<size_t>(capacity));
  completions_.reserve(static_cast<size_t>(capacity));
}

ExpertReader::~ExpertReader() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    next_ = queue_.size();
  }
  asked_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ExpertReader::Read(std::span<const Request> requests) {
  if (requests.empty()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (next_ == queue_.size()) {
      queue_.clear();
      next_ = 0;
    }
    WASTE_CHECK(queue_.size() + requests.size() <= queue_.capacity());
    queue_.insert(queue_.end(), requests.begin(), requests.end());
  }
  if (requests.size() == 1)
    asked_.notify_one();
  else
    asked_.notify_all();
}

std::optional<ExpertReader::Completion> ExpertReader::Wait(int64_t timeout_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto arrived = [this] { return delivered_ < completions_.size(); };
  if (!completed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), arrived))
    return std::nullopt;
  Completion completion = std::move(completions_[delivered_++]);
  if (delivered_ == completions_.size()) {
    completions_.clear();
    delivered_ = 0;
  }
  return completion;
}

void ExpertReader::CancelAll() {
  std::unique_lock<std::mutex> lock(mutex_);
  next_ = queue_.size();
  completed_.wait(lock, [this] { return reading_ == 0; });
  completions_.clear();
  delivered_ = 0;
}

void ExpertReader::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    asked_.wait(lock, [this] { return ending_ || next_ < queue_.size(); });
    if (ending_) return;
    const Request request = queue_[next_++];
    ++reading_;
    lock.unlock();
    Status status = container_.ReadRecord(request.layer, request.expert, request.into, verify_);
    lock.lock();
    --reading_;
    completions_.push_back({request.id, std::move(status)});
    completed_.notify_all();
  }
}

}  // namespace waste
