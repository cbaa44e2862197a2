// SPDX-License-Identifier: Apache-2.0

#include "engine/stop_matcher.h"

#include <algorithm>

namespace waste {
namespace {

// The longest end of `text` that is a proper beginning of `stop`.
size_t Overlap(std::string_view text, std::string_view stop) {
  for (size_t size = std::min(text.size(), stop.size() - 1); size > 0; --size)
    if (text.ends_with(stop.substr(0, size))) return size;
  return 0;
}

}  // namespace

bool StopMatcher::Add(std::string_view text, std::string& out) {
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    out.append(held_, 0, first);
    held_.clear();
    return true;
  }
  size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, Overlap(held_, stop));
  out.append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return false;
}

void StopMatcher::Finish(std::string& out) {
  out += held_;
  held_.clear();
}

}  // namespace waste
