// SPDX-License-Identifier: Apache-2.0

#include "budget/elastic_policy.h"

#include <algorithm>

namespace waste {

int64_t ElasticPolicy::Update(PressureLevel level, int64_t now_us, int64_t held_bytes) {
  switch (level) {
    case PressureLevel::kCritical:
      Shrink(0, now_us);
      break;
    case PressureLevel::kSome:
      Shrink(now_us >= next_halving_us_ ? std::min(limit_bytes_, held_bytes) / 2 : limit_bytes_,
             now_us);
      break;
    case PressureLevel::kTight:
      break;
    case PressureLevel::kNone:
      if (!limits() || now_us < next_growth_us_) break;
      limit_bytes_ = std::min(full_bytes_, limit_bytes_ + full_bytes_ / kGrowthParts + 1);
      next_growth_us_ = now_us + pace_.growth_us;
      break;
  }
  return limit_bytes_;
}

void ElasticPolicy::Shrink(int64_t limit_bytes, int64_t now_us) {
  if (limit_bytes < limit_bytes_) next_halving_us_ = now_us + pace_.halving_us;
  limit_bytes_ = limit_bytes;
  next_growth_us_ = now_us + pace_.calm_us;
}

}  // namespace waste
