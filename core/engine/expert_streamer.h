// SPDX-License-Identifier: Apache-2.0
//
// The experts of an open container: a cache that a plan sized, as many reading lanes as the drive
// wants, and what is kept from one run to the next (usage.waste in the container's folder, where
// that can be written). Any thread.

#ifndef WASTE_CORE_ENGINE_EXPERT_STREAMER_H_
#define WASTE_CORE_ENGINE_EXPERT_STREAMER_H_

#include <cstdint>
#include <memory>

#include "base/progress.h"
#include "base/status.h"
#include "budget/memory_plan.h"
#include "container/container.h"
#include "engine/backend.h"
#include "engine/open_options.h"
#include "stream/background_filler.h"
#include "stream/expert_cache.h"

namespace waste {

// How many experts are read ahead of the layer that needs them: a layer's worth.
int64_t ExpertsAhead(int64_t top_k, const OpenOptions& options);

class ExpertStreamer {
 public:
  // `container` outlives it; the plan has slots. Errors: kNoMemory.
  static Result<std::unique_ptr<ExpertStreamer>> Create(const Container& container,
                                                        const MemoryPlan& plan, int64_t top_k,
                                                        const OpenOptions& options,
                                                        Progress& progress);
  ~ExpertStreamer();  // writes usage.waste

  ExpertSource& source() { return *cache_; }
  int32_t lanes() const { return cache_->lanes(); }
  ExpertCounters counters() const;
  // How many bytes of experts may be kept beyond staging.
  void LimitCache(int64_t bytes);

 private:
  ExpertStreamer(const Container& container, const MemoryPlan& plan);
  std::string UsagePath() const { return JoinPath(container_.folder(), "usage.waste"); }
  void Learn(Progress& progress);

  const Container& container_;
  const int64_t staging_slots_;
  bool keeps_usage_ = false;
  std::unique_ptr<ExpertCache> cache_;
  std::unique_ptr<BackgroundFiller> filler_;  // stops before the cache goes
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_EXPERT_STREAMER_H_
