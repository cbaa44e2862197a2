// SPDX-License-Identifier: Apache-2.0
//
// Cuts one buffer into arrays. Without a buffer it only counts, so that what a plan measures is
// what is later allocated, by construction: both run the same code. Arrays start on cache lines.
// Blocks that never live at the same time share memory: RewindTo a mark, and the peak is
// remembered. Not synchronised.

#ifndef WASTE_CORE_MODEL_ARENA_H_
#define WASTE_CORE_MODEL_ARENA_H_

#include <algorithm>
#include <cstdint>

#include "base/checked.h"

namespace waste {

class Arena {
 public:
  static constexpr int64_t kAlignment = 64;  // bytes

  explicit Arena(uint8_t* memory = nullptr) : memory_(memory) {}

  float* Floats(int64_t count) { return Take<float>(count); }
  int32_t* Ints(int64_t count) { return Take<int32_t>(count); }
  uint8_t* Bytes(int64_t count) { return Take<uint8_t>(count); }

  int64_t mark() const { return used_; }
  void RewindTo(int64_t mark) { used_ = mark; }
  int64_t peak_bytes() const { return peak_; }

 private:
  // Null while only counting.
  template <typename T>
  T* Take(int64_t count) {
    const int64_t at = used_;
    used_ += RoundUp(count * static_cast<int64_t>(sizeof(T)), kAlignment);
    peak_ = std::max(peak_, used_);
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + at);
  }

  uint8_t* memory_;
  int64_t used_ = 0;
  int64_t peak_ = 0;
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_ARENA_H_
