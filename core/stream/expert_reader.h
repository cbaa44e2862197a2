// SPDX-License-Identifier: Apache-2.0
//
// Reads of expert records on threads of their own, several at once, because a drive serves two or
// more faster than one after another. Requests are begun in the order they were made; a completion
// is a number in a list that the one who asked waits for. A request that was not begun can be
// taken back; one that was begun writes into its buffer until it completes. Nothing is allocated
// after Create. One client thread at a time; the buffers are the client's.

#ifndef WASTE_CORE_STREAM_EXPERT_READER_H_
#define WASTE_CORE_STREAM_EXPERT_READER_H_

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

class ExpertReader {
 public:
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

  int32_t lanes() const { return static_cast<int32_t>(threads_.size()); }

  // All of them are queued before the first begins.
  void Read(std::span<const Request> requests);
  // The next completion, or nothing after `timeout_ms`.
  std::optional<Completion> Wait(int64_t timeout_ms);
  // Takes back what was not begun and waits for what was. Completions that were not waited for are
  // dropped. Returns how many requests were begun and dropped.
  void CancelAll();

 private:
  ExpertReader(const Container& container, int64_t capacity, bool verify);
  void Work();

  const Container& container_;
  const bool verify_;

  std::mutex mutex_;  // guards what follows; never held over a read
  std::condition_variable asked_;
  std::condition_variable completed_;
  std::vector<Request> queue_;  // from next_ on
  size_t next_ = 0;
  int64_t reading_ = 0;
  std::vector<Completion> completions_;  // from delivered_ on
  size_t delivered_ = 0;
  bool ending_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace waste

#endif  // WASTE_CORE_STREAM_EXPERT_READER_H_
