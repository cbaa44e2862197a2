// SPDX-License-Identifier: Apache-2.0
//
// Finds stop strings in text that arrives in pieces. Text that could be the start of a stop string
// is held back, so no prefix of one is ever given out. One thread.

#ifndef WASTE_CORE_ENGINE_STOP_MATCHER_H_
#define WASTE_CORE_ENGINE_STOP_MATCHER_H_

#include <string>
#include <string_view>
#include <vector>

namespace waste {

class StopMatcher {
 public:
  // `stop` is not empty.
  void AddStop(std::string stop) { stops_.push_back(std::move(stop)); }

  // Appends to `out` what of the text so far is certain to come before any stop string. True once a
  // stop string is complete: `out` then ends right before it, and no more text is taken.
  bool Add(std::string_view text, std::string& out);
  // The end of the text: what was held is ordinary text.
  void Finish(std::string& out);
  bool holding() const { return !held_.empty(); }

 private:
  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_STOP_MATCHER_H_
