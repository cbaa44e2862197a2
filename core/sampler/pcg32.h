// SPDX-License-Identifier: Apache-2.0
//
// PCG32 (XSH-RR), the generator of M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient
// Statistically Good Algorithms for Random Number Generation" (2014): 64 bits of state, 32 bits a
// draw, streams that do not overlap. Integers only, so a seed means the same everywhere. Not for
// secrets. One thread.

#ifndef WASTE_CORE_SAMPLER_PCG32_H_
#define WASTE_CORE_SAMPLER_PCG32_H_

#include <bit>
#include <cstdint>

namespace waste {

class Pcg32 {
 public:
  Pcg32(uint64_t seed, uint64_t stream) : increment_(stream << 1 | 1) {
    Next();
    state_ += seed;
    Next();
  }

  uint32_t Next() {
    const uint64_t old = state_;
    state_ = old * 6364136223846793005u + increment_;
    const uint32_t shifted = static_cast<uint32_t>((old >> 18 ^ old) >> 27);
    return std::rotr(shifted, static_cast<int>(old >> 59));
  }

  // In [0, 1), a multiple of 2^-32; one draw.
  double NextUnit() { return Next() * 0x1p-32; }

 private:
  uint64_t state_ = 0;
  uint64_t increment_;  // odd
};

}  // namespace waste

#endif  // WASTE_CORE_SAMPLER_PCG32_H_
