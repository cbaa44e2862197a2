// SPDX-License-Identifier: Apache-2.0
//
// A model's memory plan on this machine as it is now: what the budget module computes, from the RAM
// that the system, cgroups and other models leave. A grant also reserves what the plan allocates,
// so that what is planned next, here or in another process, no longer counts on it. Any thread.

#ifndef WASTE_CORE_ENGINE_MEMORY_GRANT_H_
#define WASTE_CORE_ENGINE_MEMORY_GRANT_H_

#include <cstdint>

#include "base/progress.h"
#include "budget/memory_plan.h"
#include "os/reservation.h"

namespace waste {

struct MemoryGrant {
  MemoryPlan plan;
  Reservation reservation;  // empty if the plan does not fit, or nothing can be reserved here
};

// `budget_bytes` is 0 for automatic.
MemoryPlan PlanOnThisMachine(const ModelSizes& sizes, int64_t budget_bytes);
// Writes a line to `log` if a budget that was asked for is more than the machine has left.
MemoryGrant GrantMemory(const ModelSizes& sizes, int64_t budget_bytes, Progress& log);

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_MEMORY_GRANT_H_
