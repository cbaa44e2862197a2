// SPDX-License-Identifier: Apache-2.0
//
// How long work tells how far it is and learns that it should stop. The worker writes, any thread
// reads and cancels; nothing is called back.

#ifndef WASTE_CORE_BASE_PROGRESS_H_
#define WASTE_CORE_BASE_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/log_lines.h"
#include "base/status.h"

namespace waste {

class Progress {
 public:
  void SetTotal(int64_t total) { total_.store(total, std::memory_order_relaxed); }
  void Add(int64_t amount) { done_.fetch_add(amount, std::memory_order_relaxed); }
  int64_t done() const { return done_.load(std::memory_order_relaxed); }
  int64_t total() const { return total_.load(std::memory_order_relaxed); }

  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // kCancelled once somebody called Cancel; the worker asks between pieces of work.
  Status CheckCancelled() const {
    return cancelled() ? Status(Code::kCancelled, "cancelled by the caller") : Status();
  }

  // A line for the user: what was left out, what was fallen back to.
  void Log(std::string line) { lines_.Add(std::move(line)); }
  std::optional<std::string> NextLine() { return lines_.Next(); }

 private:
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> total_{0};
  std::atomic<bool> cancelled_{false};
  LogLines lines_;
};

}  // namespace waste

#endif  // WASTE_CORE_BASE_PROGRESS_H_
