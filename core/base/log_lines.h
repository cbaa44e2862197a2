// SPDX-License-Identifier: Apache-2.0
//
// Lines for the user that wait to be fetched: what was left out, what was fallen back to. Any
// thread adds and fetches; each line is fetched once.

#ifndef WASTE_CORE_BASE_LOG_LINES_H_
#define WASTE_CORE_BASE_LOG_LINES_H_

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace waste {

class LogLines {
 public:
  void Add(std::string line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::optional<std::string> Next() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (lines_.empty()) return std::nullopt;
    std::string line = std::move(lines_.front());
    lines_.pop_front();
    return line;
  }

 private:
  std::mutex mutex_;
  std::deque<std::string> lines_;
};

}  // namespace waste

#endif  // WASTE_CORE_BASE_LOG_LINES_H_
