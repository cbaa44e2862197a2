// SPDX-License-Identifier: Apache-2.0

#include "os/memory_pressure.h"

#include <algorithm>

namespace waste {
namespace {

constexpr int64_t kMostSpare = int64_t{1} << 30;  // of a large machine, where a share is too much

}  // namespace

PressureLevel LevelOfRoom(int64_t limit_bytes, int64_t left_bytes) {
  const int64_t spare = std::min(limit_bytes / 16, kMostSpare);
  if (left_bytes < spare / 2) return PressureLevel::kCritical;
  if (left_bytes < spare) return PressureLevel::kSome;
  if (left_bytes < spare * 2) return PressureLevel::kTight;
  return PressureLevel::kNone;
}

#if !defined(__linux__) && !defined(__APPLE__) && !defined(_WIN32)
std::unique_ptr<MemoryPressure> SystemMemoryPressure() { return nullptr; }
#endif

}  // namespace waste
