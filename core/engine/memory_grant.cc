// SPDX-License-Identifier: Apache-2.0

#include "engine/memory_grant.h"

#include <string>

#include "os/system.h"

namespace waste {
namespace {

MemoryPlan PlanBeside(const ModelSizes& sizes, int64_t budget_bytes, int64_t reserved_bytes) {
  return PlanMemory(sizes, {.budget_bytes = budget_bytes,
                            .usable_bytes = UsableMemoryBytes(),
                            .reserved_bytes = reserved_bytes});
}

}  // namespace

MemoryPlan PlanOnThisMachine(const ModelSizes& sizes, int64_t budget_bytes) {
  return PlanBeside(sizes, budget_bytes, Reservation::ReservedBytes());
}

MemoryGrant GrantMemory(const ModelSizes& sizes, int64_t budget_bytes, Progress& log) {
  MemoryGrant grant;
  grant.reservation = Reservation::Make([&](int64_t reserved_bytes) {
    grant.plan = PlanBeside(sizes, budget_bytes, reserved_bytes);
    return grant.plan.fits ? grant.plan.allocated_bytes() : 0;
  });
  const MemoryPlan& plan = grant.plan;
  if (budget_bytes > plan.usable_bytes)
    log.Log("the budget of " + std::to_string(budget_bytes) + " bytes is more than the " +
            std::to_string(plan.usable_bytes) + " bytes of RAM that are left (other models have " +
            std::to_string(plan.reserved_bytes) +
            " reserved); the system may swap or end the process; grant less");
  return grant;
}

}  // namespace waste
