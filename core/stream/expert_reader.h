// SPDX-License-Identifier: Apache-2.0
//
// Reads of expert records on threads of their own, several at once, because a drive serves two or
// more faster than one after another. What is needed now goes before what may be needed soon, and
// the latter never has more than half of the lanes, so that a demand finds one. Within a priority,
// requests are begun in the order they were made; a completion is a number in a list that the one
// who asked waits for. A request that was not begun can be taken back; one that was begun writes
// into its buffer until it completes. Nothing is allocated after Create. One client thread at a
// time; the buffers are the client's.

#ifndef WASTE_CORE_STREAM_EXPERT_READER_H_
#define WASTE_CORE_STREAM_EXPERT_READER_H_

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/status.h"
#include "container/container.h"

namespace waste {

enum class ReadPriority : int32_t { kDemand = 0, kSpeculation = 1 };

class ExpertReader {
 public:
  static constexpr int32_t kMaxLanes = 32;

  struct Request {
    int64_t id = 0;  // the client's
    int32_t layer = 0;
    int32_t expert = 0;
    std::span<uint8_t> into;  // as Container::ReadRecord wants it
  };
  struct Completion {
    int64_t id = 0;
    Status status;
  };

  // `lanes` reads at once, at most `capacity` requests that have not been waited for. With
  // `verify`, each read checks the record's crc. Errors: kNoMemory (no thread).
  static Result<std::unique_ptr<ExpertReader>> Create(const Container& container, int32_t lanes,
                                                      int64_t capacity, bool verify);
  ~ExpertReader();  // takes back what was not begun and joins

  int32_t lanes() const { return lanes_; }
  // From now on, held within 1 and the lanes that it was made with.
  void LimitLanes(int32_t lanes);

  // All of them are queued before the first begins.
  void Read(std::span<const Request> requests, ReadPriority priority);
  // Of a speculation that has turned out to be needed: it goes behind the demands that wait.
  void Promote(int64_t id);
  // Takes one back; false if it was begun (or was never asked for): then it completes.
  bool Cancel(int64_t id);
  // The next completion, or nothing after `timeout_ms`.
  std::optional<Completion> Wait(int64_t timeout_ms);
  // Takes back what was not begun and waits for what was. Completions that were not waited for are
  // dropped.
  void CancelAll();

 private:
  using Queue = std::vector<Request>;  // a few dozen at most: to take from the front is cheap

  ExpertReader(const Container& container, int64_t capacity, bool verify);
  void Work();
  Queue* Next();
  Queue& QueueOf(ReadPriority priority) { return queues_[static_cast<size_t>(priority)]; }

  const Container& container_;
  const bool verify_;

  std::mutex mutex_;  // guards what follows; never held over a read
  std::condition_variable asked_;
  std::condition_variable completed_;
  std::array<Queue, 2> queues_;       // by priority
  std::array<int64_t, 2> reading_{};  // begun and not completed, by the priority they began with
  std::vector<Completion> completions_;
  int32_t lanes_ = 0;
  bool ending_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace waste

#endif  // WASTE_CORE_STREAM_EXPERT_READER_H_
