// SPDX-License-Identifier: Apache-2.0

#include "stream/expert_reader.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "os/signals_blocked.h"

namespace waste {
namespace {

auto FindId(std::vector<ExpertReader::Request>& queue, int64_t id) {
  return std::find_if(queue.begin(), queue.end(),
                      [id](const ExpertReader::Request& request) { return request.id == id; });
}

}  // namespace

Result<std::unique_ptr<ExpertReader>> ExpertReader::Create(const Container& container,
                                                           int32_t lanes, int64_t capacity,
                                                           bool verify) {
  if (lanes < 1 || lanes > kMaxLanes)
    return Failure(Code::kArgument, "lanes is ", lanes, "; it may be 1 to ", kMaxLanes);
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
  reader->LimitLanes(lanes);
  return reader;
}

ExpertReader::ExpertReader(const Container& container, int64_t capacity, bool verify)
    : container_(container), verify_(verify) {
  for (Queue& queue : queues_) queue.reserve(static_cast<size_t>(capacity));
  completions_.reserve(static_cast<size_t>(capacity));
}

ExpertReader::~ExpertReader() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  asked_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ExpertReader::LimitLanes(int32_t lanes) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    lanes_ = std::clamp(lanes, 1, static_cast<int32_t>(threads_.size()));
  }
  asked_.notify_all();
}

void ExpertReader::Read(std::span<const Request> requests, ReadPriority priority) {
  if (requests.empty()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Queue& queue = QueueOf(priority);
    WASTE_CHECK(queue.size() + requests.size() <= queue.capacity());
    queue.insert(queue.end(), requests.begin(), requests.end());
  }
  if (requests.size() == 1)
    asked_.notify_one();
  else
    asked_.notify_all();
}

void ExpertReader::Promote(int64_t id) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Queue& speculation = QueueOf(ReadPriority::kSpeculation);
    const auto found = FindId(speculation, id);
    if (found == speculation.end()) return;
    Queue& demand = QueueOf(ReadPriority::kDemand);
    WASTE_CHECK(demand.size() < demand.capacity());
    demand.push_back(*found);
    speculation.erase(found);
  }
  asked_.notify_one();  // a lane that speculation may not use may take it now
}

bool ExpertReader::Cancel(int64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Queue& queue : queues_) {
    const auto found = FindId(queue, id);
    if (found == queue.end()) continue;
    queue.erase(found);
    return true;
  }
  return false;
}

std::optional<ExpertReader::Completion> ExpertReader::Wait(int64_t timeout_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!completed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                           [this] { return !completions_.empty(); }))
    return std::nullopt;
  Completion completion = std::move(completions_.front());
  completions_.erase(completions_.begin());
  return completion;
}

void ExpertReader::CancelAll() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (Queue& queue : queues_) queue.clear();
  completed_.wait(lock, [this] { return reading_[0] + reading_[1] == 0; });
  completions_.clear();
}

// The queue whose first request a free lane may begin, or null.
ExpertReader::Queue* ExpertReader::Next() {
  if (reading_[0] + reading_[1] >= lanes_) return nullptr;
  if (Queue& demand = QueueOf(ReadPriority::kDemand); !demand.empty()) return &demand;
  Queue& speculation = QueueOf(ReadPriority::kSpeculation);
  const bool may_speculate = reading_[1] < std::max(1, lanes_ / 2);
  return may_speculate && !speculation.empty() ? &speculation : nullptr;
}

void ExpertReader::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    Queue* queue = nullptr;
    asked_.wait(lock, [&] { return ending_ || (queue = Next()) != nullptr; });
    if (ending_) return;
    const Request request = queue->front();
    queue->erase(queue->begin());
    int64_t& reading = reading_[static_cast<size_t>(queue - queues_.data())];
    ++reading;
    lock.unlock();
    Status status = container_.ReadRecord(request.layer, request.expert, request.into, verify_);
    lock.lock();
    --reading;
    // The client waits for what it asked before it asks for more than `capacity`.
    WASTE_CHECK(completions_.size() < completions_.capacity());
    completions_.push_back({request.id, std::move(status)});
    completed_.notify_all();
  }
}

}  // namespace waste
