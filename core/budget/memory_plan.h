// SPDX-License-Identifier: Apache-2.0
//
// How a model's RAM is divided: plain numbers in, a plan out. floor = trunk + one session's state +
// scratch + staging (the experts that one layer of one token needs at once, and those that are read
// ahead of it); what is granted beyond the floor makes steps of prefill longer, so that an expert
// is read for more rows, and caches experts. Nothing is measured or allocated here, so the rules
// can be tested as a table. Pure function; any thread.

#ifndef WASTE_CORE_BUDGET_MEMORY_PLAN_H_
#define WASTE_CORE_BUDGET_MEMORY_PLAN_H_

#include <array>
#include <cstdint>
#include <span>

namespace waste {

// How long a step of prefill may be, and what of scratch it takes beyond the shortest.
struct PrefillStep {
  int64_t rows = 0;
  int64_t more_bytes = 0;
};

// The longest of `steps` (ascending, the first takes nothing more) for which `bytes` are enough.
PrefillStep LongestStep(std::span<const PrefillStep> steps, int64_t bytes);

// Sizes of one model, in bytes unless they are counts.
struct ModelSizes {
  int64_t trunk_bytes = 0;  // shared weights and codebooks
  int64_t state_bytes = 0;  // one session of the context asked for
  int64_t scratch_bytes = 0;
  int64_t record_bytes = 0;  // one expert in memory; 0 for a model without experts
  int64_t top_k = 0;         // experts a token uses in a layer
  int64_t ahead = 0;         // experts that are read ahead of the layer that needs them
  int64_t moe_layers = 0;
  int64_t expert_total = 0;                       // experts of all layers
  std::array<PrefillStep, 5> prefill_steps = {};  // ascending; the first is in scratch_bytes
};

struct MemoryRequest {
  int64_t budget_bytes = 0;    // 0: automatic
  int64_t usable_bytes = 0;    // RAM that this process may use
  int64_t reserved_bytes = 0;  // of it, what other models were promised and have not touched yet
};

struct MemoryPlan {
  int64_t floor_bytes = 0;
  int64_t recommended_bytes = 0;
  int64_t trunk_bytes = 0;
  int64_t state_bytes = 0;
  int64_t scratch_bytes = 0;
  int64_t staging_bytes = 0;
  int64_t prefill_bytes = 0;  // scratch beyond scratch_bytes, for longer steps of prefill
  int64_t prefill_rows = 0;   // most of a step
  int64_t cache_bytes = 0;
  int64_t usable_bytes = 0;  // without what is reserved
  int64_t reserved_bytes = 0;
  int64_t budget_bytes = 0;
  int64_t limit_bytes = 0;  // what sessions may be charged up to; above budget only if automatic
  int64_t slot_count = 0;   // experts in memory: staging and cache
  bool fits = false;

  // What opening allocates, one session included.
  int64_t allocated_bytes() const { return floor_bytes + prefill_bytes + cache_bytes; }
};

// Automatic: floor and two working sets (the experts of one token), the whole bank if that fits,
// all within 3/4 of usable memory but never below the floor; it fits if the floor is within usable
// memory. An explicit budget is taken as it is and fits if it is at least the floor. Longer steps
// of prefill get at most a quarter of what is beyond the floor, and nothing that every expert needs
// where all fit.
MemoryPlan PlanMemory(const ModelSizes& sizes, const MemoryRequest& request);

}  // namespace waste

#endif  // WASTE_CORE_BUDGET_MEMORY_PLAN_H_
