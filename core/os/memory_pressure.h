// SPDX-License-Identifier: Apache-2.0
//
// Hears from the system that memory is short. Linux: what /proc/meminfo and every control group
// above this process leave, stalls on memory (PSI) and hits at a group's limit; see
// pressure_sampler.h. macOS: its memory pressure events. Windows: its low-memory notification and
// the share of memory that is available. One thread waits; any thread may stop it.

#ifndef WASTE_CORE_OS_MEMORY_PRESSURE_H_
#define WASTE_CORE_OS_MEMORY_PRESSURE_H_

#include <cstdint>
#include <memory>

#include "base/pressure_level.h"

namespace waste {

class MemoryPressure {
 public:
  virtual ~MemoryPressure() = default;

  // Returns the level that holds now, when it may have changed or after `timeout_ms` at the latest;
  // a source that samples returns after each sample.
  virtual PressureLevel Wait(int64_t timeout_ms) = 0;

  // Ends the Wait that runs, and every later one at once.
  virtual void Stop() = 0;
};

// Null where the system tells nothing of the kind.
std::unique_ptr<MemoryPressure> SystemMemoryPressure();

// The level when `left_bytes` can still be had of `limit_bytes`, for systems and groups that give
// numbers: below an eighth it is tight, below a sixteenth (at most 1 GiB) there is pressure, below
// a 32nd it is critical. Growing by at most a sixteenth does not lead from none into pressure.
PressureLevel LevelOfRoom(int64_t limit_bytes, int64_t left_bytes);

}  // namespace waste

#endif  // WASTE_CORE_OS_MEMORY_PRESSURE_H_
