// SPDX-License-Identifier: Apache-2.0

#include "engine/expert_streamer.h"

#include <algorithm>
#include <utility>

#include "stream/usage_log.h"

namespace waste {
namespace {

constexpr int32_t kMostLanes = 8;  // that are tried when nobody says how many
constexpr int32_t kPlainLanes = 4;
// A smaller bank is read, or cached by somebody, in less time than lanes are measured in.
constexpr int64_t kWorthMeasuring = int64_t{256} << 20;

int64_t ExpertTotal(const Container& container) {
  int64_t total = 0;
  for (const auto& [layer, entry] : container.manifest().layers) total += entry.experts;
  return total;
}

// Through the page cache it is memory that would be measured.
bool IsWorthMeasuring(const Container& container) {
  return container.direct_io() && container.total_bytes() >= kWorthMeasuring;
}

}  // namespace

int64_t ExpertsAhead(int64_t top_k, const OpenOptions& options) {
  return options.lookahead ? top_k : 0;
}

ExpertStreamer::ExpertStreamer(const Container& container, const MemoryPlan& plan)
    : container_(container), staging_slots_(plan.staging_bytes / container.record_bytes()) {}

Result<std::unique_ptr<ExpertStreamer>> ExpertStreamer::Create(const Container& container,
                                                               const MemoryPlan& plan,
                                                               int64_t top_k,
                                                               const OpenOptions& options,
                                                               Progress& progress) {
  std::unique_ptr<ExpertStreamer> streamer(new ExpertStreamer(container, plan));
  const bool measure = options.lanes == 0 && IsWorthMeasuring(container);
  const int32_t lanes = measure ? kMostLanes : options.lanes > 0 ? options.lanes : kPlainLanes;
  const int64_t experts = std::min(top_k, streamer->staging_slots_);
  WASTE_ASSIGN(streamer->cache_,
               ExpertCache::Create(container, {.slot_count = plan.slot_count,
                                               .max_experts = experts,
                                               .max_expected = streamer->staging_slots_ - experts,
                                               .lanes = lanes,
                                               .verify = options.verify}));
  if (measure) streamer->cache_->CalibrateLanes();
  if (options.io != IoMode::kBuffered && !container.direct_io())
    progress.Log(container.folder() + ": the file system refuses direct reads of experts; " +
                 "they go through the page cache");
  // Where all experts fit there is nothing to choose, and where none is kept nothing to remember.
  const int64_t total = ExpertTotal(container);
  streamer->keeps_usage_ = plan.cache_bytes > 0 && plan.slot_count < total;
  if (streamer->keeps_usage_) streamer->Learn(progress);
  if (plan.cache_bytes > 0 && streamer->cache_->has_filling())
    streamer->filler_ = std::make_unique<BackgroundFiller>(*streamer->cache_);
  return streamer;
}

// A damaged log costs a cold start, and is replaced at the end.
void ExpertStreamer::Learn(Progress& progress) {
  if (!FileExists(UsagePath())) return;
  const auto usage = ReadUsageLog(UsagePath());
  if (usage.ok())
    cache_->Learn(*usage);
  else
    progress.Log(usage.status().message() + "; the expert cache begins empty");
}

// A folder that cannot be written, on a phone or a shared drive, is no error.
ExpertStreamer::~ExpertStreamer() {
  filler_.reset();
  if (!keeps_usage_ || cache_ == nullptr) return;
  const ExpertCacheCounters used = cache_->counters();
  if (used.hits + used.misses == 0) return;
  static_cast<void>(WriteUsageLog(cache_->Usage(), UsagePath()));
}

ExpertCounters ExpertStreamer::counters() const {
  const ExpertCacheCounters c = cache_->counters();
  return {.hits = c.hits,
          .misses = c.misses,
          .foreseen = c.foreseen,
          .bytes_read = c.bytes_read,
          .speculative_reads = c.speculative_reads,
          .speculative_bytes = c.speculative_bytes,
          .stalls = c.stalls,
          .read_us = c.wait_us};
}

void ExpertStreamer::LimitCache(int64_t bytes) {
  cache_->LimitSlots(staging_slots_ + bytes / container_.record_bytes());
}

}  // namespace waste
