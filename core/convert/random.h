// SPDX-License-Identifier: Apache-2.0
//
// Pseudo-random numbers for choosing samples and first guesses: SplitMix64 (Steele, Lea and Flood,
// OOPSLA 2014), the same sequence on every machine. Not for secrets. One thread an object.

#ifndef WASTE_CORE_CONVERT_RANDOM_H_
#define WASTE_CORE_CONVERT_RANDOM_H_

#include <cstdint>

namespace waste {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
  }

  // A number below `count` >= 1. (The remainder's bias is below count / 2^64.)
  int64_t Below(int64_t count) {
    return static_cast<int64_t>(Next() % static_cast<uint64_t>(count));
  }

 private:
  uint64_t state_;
};

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_RANDOM_H_
