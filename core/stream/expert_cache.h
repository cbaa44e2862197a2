// SPDX-License-Identifier: Apache-2.0
//
// Experts in a fixed number of slots: what is not in one is read from its bank into the slot that
// the policy of SlotTable gives up, several reads at a time, while the caller computes with what is
// there. An expert that is in use is never given up, and a slot whose read failed is empty. The
// memory is slots times record, reserved once, and a few bytes for each expert and slot; a fetch
// allocates nothing. What a cache holds changes speed, never results. Any thread may call Fetch;
// one fetches at a time and the others wait.

#ifndef WASTE_CORE_STREAM_EXPERT_CACHE_H_
#define WASTE_CORE_STREAM_EXPERT_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "container/container.h"
#include "stream/expert_reader.h"
#include "stream/expert_source.h"
#include "stream/slot_table.h"

namespace waste {

struct ExpertCacheOptions {
  int64_t slot_count = 0;
  int64_t max_experts = 0;  // of one Fetch; at most slot_count
  int32_t lanes = 4;        // reads at once
  bool verify = false;      // check the crc of each record that is read
};

struct ExpertCacheCounters {
  int64_t hits = 0;        // experts that were in a slot when they were asked for
  int64_t misses = 0;      // experts that had to be read
  int64_t bytes_read = 0;  // of the reads that succeeded
  int64_t wait_us = 0;     // time spent with nothing to do but wait for reads
};

class ExpertCache : public ExpertSource {
 public:
  // `container` has had SetExpertDims and outlives the cache. Errors: kArgument (not 1 <=
  // max_experts <= slot_count, or lanes < 1), kNoMemory.
  static Result<std::unique_ptr<ExpertCache>> Create(const Container& container,
                                                     const ExpertCacheOptions& options);
  ~ExpertCache() override;

  int64_t max_experts() const override { return options_.max_experts; }
  Status Fetch(int32_t layer, std::span<const int32_t> experts, const std::function<bool()>& stop,
               const Use& use) override;

  // Uses only `slot_count` slots from now on (held within max_experts and what Create was given)
  // and gives the memory of the others back: at once, or when the fetch that runs has ended.
  void LimitSlots(int64_t slot_count);

  ExpertCacheCounters counters() const;

 private:
  static constexpr int32_t kNone = SlotTable::kNone;

  ExpertCache(const Container& container, const ExpertCacheOptions& options, AlignedBuffer memory,
              std::unique_ptr<ExpertReader> reader);

  void LeaseAll(int32_t layer, std::span<const int32_t> experts);
  Status UseResident(int32_t layer, std::span<const int32_t> experts, const Use& use);
  Status UseArriving(int32_t layer, std::span<const int32_t> experts,
                     const std::function<bool()>& stop, const Use& use);
  Result<ExpertReader::Completion> NextRead(const std::function<bool()>& stop);
  Status TakeIn(int32_t layer, int32_t expert, const ExpertReader::Completion& read);
  Status AddArrived(int32_t layer, int32_t expert, int64_t index);
  void ReleaseAll();
  std::span<uint8_t> RecordOf(int32_t layer, int32_t slot);
  int32_t NumberOf(int32_t layer, int32_t expert) const { return first_number_[layer] + expert; }
  void ApplyLimit();

  const Container& container_;
  const ExpertCacheOptions options_;
  AlignedBuffer memory_;               // [slots, record_bytes]
  std::vector<int32_t> first_number_;  // of each layer's experts in table_; kNone without a bank

  std::mutex fetch_mutex_;  // held through a Fetch; guards what follows, taken before mutex_
  SlotTable table_;
  int32_t last_layer_ = kNone;                   // of the last Fetch
  std::vector<int32_t> leased_;                  // slots of the Fetch that runs, by index
  std::vector<int64_t> missing_;                 // indices that are read
  std::vector<ExpertReader::Request> requests_;  // of those
  std::vector<ArrivedExpert> arrived_;
  std::vector<int32_t> retired_;  // leased in table_ for good, until the limit is raised
  std::unique_ptr<ExpertReader> reader_;

  mutable std::mutex mutex_;  // guards what follows
  int64_t slot_limit_;
  ExpertCacheCounters counters_;
};

}  // namespace waste

#endif  // WASTE_CORE_STREAM_EXPERT_CACHE_H_
