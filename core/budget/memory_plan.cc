// SPDX-License-Identifier: Apache-2.0

#include "budget/memory_plan.h"

#include <algorithm>

namespace waste {
namespace {

constexpr int64_t kWorkingSets = 2;   // beyond the floor, in a recommended budget
constexpr int64_t kPrefillShare = 4;  // of what is beyond the floor: one part of so many

int64_t AutomaticBudget(const MemoryPlan& plan, const ModelSizes& sizes, int64_t whole_bank_bytes) {
  const int64_t share = plan.usable_bytes / 4 * 3;
  const int64_t prefill_bytes = LongestStep(sizes.prefill_steps, INT64_MAX).more_bytes;
  const int64_t everything = plan.floor_bytes + whole_bank_bytes +
                             std::min(prefill_bytes, whole_bank_bytes / (kPrefillShare - 1));
  if (everything <= share) return everything;
  return std::max(plan.floor_bytes, std::min(plan.recommended_bytes, share));
}

// The longest step of prefill that its share pays for. Where all experts fit, they stay.
PrefillStep ChoosePrefillStep(const ModelSizes& sizes, int64_t beyond_floor_bytes,
                              int64_t whole_bank_bytes) {
  int64_t share = beyond_floor_bytes / kPrefillShare;
  if (beyond_floor_bytes >= whole_bank_bytes)
    share = std::min(share, beyond_floor_bytes - whole_bank_bytes);
  return LongestStep(sizes.prefill_steps, share);
}

}  // namespace

PrefillStep LongestStep(std::span<const PrefillStep> steps, int64_t bytes) {
  PrefillStep longest = steps.front();
  for (const PrefillStep& step : steps)
    if (step.rows > longest.rows && step.more_bytes <= bytes) longest = step;
  return longest;
}

MemoryPlan PlanMemory(const ModelSizes& sizes, const MemoryRequest& request) {
  const int64_t staging_slots = std::min(sizes.top_k + sizes.ahead, sizes.expert_total);
  const int64_t working_set = std::min(sizes.top_k * sizes.moe_layers, sizes.expert_total);
  const int64_t cacheable = sizes.expert_total - staging_slots;  // slots beyond staging with a use

  MemoryPlan plan;
  plan.trunk_bytes = sizes.trunk_bytes;
  plan.state_bytes = sizes.state_bytes;
  plan.scratch_bytes = sizes.scratch_bytes;
  plan.staging_bytes = staging_slots * sizes.record_bytes;
  plan.reserved_bytes = request.reserved_bytes;
  plan.usable_bytes = std::max<int64_t>(request.usable_bytes - request.reserved_bytes, 0);
  plan.floor_bytes = plan.trunk_bytes + plan.state_bytes + plan.scratch_bytes + plan.staging_bytes;
  plan.recommended_bytes =
      plan.floor_bytes + std::min(kWorkingSets * working_set, cacheable) * sizes.record_bytes;

  const bool automatic = request.budget_bytes == 0;
  plan.budget_bytes = automatic ? AutomaticBudget(plan, sizes, cacheable * sizes.record_bytes)
                                : request.budget_bytes;
  plan.limit_bytes =
      automatic ? std::max(plan.budget_bytes, plan.usable_bytes / 4 * 3) : plan.budget_bytes;
  plan.fits =
      automatic ? plan.floor_bytes <= plan.usable_bytes : plan.budget_bytes >= plan.floor_bytes;

  const int64_t beyond_floor = std::max<int64_t>(plan.budget_bytes - plan.floor_bytes, 0);
  const PrefillStep step = ChoosePrefillStep(sizes, beyond_floor, cacheable * sizes.record_bytes);
  plan.prefill_rows = step.rows;
  plan.prefill_bytes = step.more_bytes;
  int64_t cache_slots = 0;
  if (sizes.record_bytes > 0)
    cache_slots = std::min((beyond_floor - plan.prefill_bytes) / sizes.record_bytes, cacheable);
  plan.cache_bytes = cache_slots * sizes.record_bytes;
  plan.slot_count = staging_slots + cache_slots;
  return plan;
}

}  // namespace waste
