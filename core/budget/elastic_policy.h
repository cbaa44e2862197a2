// SPDX-License-Identifier: Apache-2.0
//
// How much the expert cache may hold while memory is short: it gives back fast and takes again
// slowly. Critical: everything, at once. Some: half of what it holds, five times a second while
// that lasts. Tight: no more than now. None: a sixteenth more each second, from five seconds after
// the last pressure on. Numbers in, a number out, the clock included; one thread.

#ifndef WASTE_CORE_BUDGET_ELASTIC_POLICY_H_
#define WASTE_CORE_BUDGET_ELASTIC_POLICY_H_

#include <cstdint>

#include "base/pressure_level.h"

namespace waste {

struct ElasticPace {
  int64_t halving_us = 200'000;   // for others to notice, before the next half
  int64_t calm_us = 5'000'000;    // without pressure, before the first growth
  int64_t growth_us = 1'000'000;  // between growths
};

class ElasticPolicy {
 public:
  static constexpr int64_t kGrowthParts = 16;

  // `full_bytes`: the cache without pressure, where it begins.
  explicit ElasticPolicy(int64_t full_bytes, const ElasticPace& pace = {})
      : full_bytes_(full_bytes), pace_(pace), limit_bytes_(full_bytes) {}

  // What the cache may hold from `now_us` on. `held_bytes` is what it may hold now, which other
  // limits may have made less than the last answer.
  int64_t Update(PressureLevel level, int64_t now_us, int64_t held_bytes);

  int64_t full_bytes() const { return full_bytes_; }
  bool limits() const { return limit_bytes_ < full_bytes_; }

 private:
  void Shrink(int64_t limit_bytes, int64_t now_us);

  int64_t full_bytes_;
  ElasticPace pace_;
  int64_t limit_bytes_;
  int64_t next_halving_us_ = INT64_MIN;
  int64_t next_growth_us_ = INT64_MIN;
};

}  // namespace waste

#endif  // WASTE_CORE_BUDGET_ELASTIC_POLICY_H_
