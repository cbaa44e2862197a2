// SPDX-License-Identifier: Apache-2.0
//
// Experts in a fixed number of slots: what is not in one is read from its bank, by the calling
// thread, into the slot that the policy of SlotTable gives up. A leased slot is never given up, and
// a slot whose read failed is empty. The memory is slots times record, reserved once, and a few
// bytes for each expert and slot; a step allocates nothing. What a cache holds changes speed, never
// results. Any thread may call Acquire (one reads at a time, the others wait) and may destroy
// leases. A thread that waits for slots while it keeps leases of its own waits until `stop`.

#ifndef WASTE_CORE_STREAM_EXPERT_CACHE_H_
#define WASTE_CORE_STREAM_EXPERT_CACHE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "container/container.h"
#include "stream/expert_source.h"
#include "stream/slot_table.h"

namespace waste {

struct ExpertCacheCounters {
  int64_t hits = 0;        // experts that were in a slot when they were asked for
  int64_t misses = 0;      // experts whose read was begun
  int64_t bytes_read = 0;  // of the reads that succeeded
  int64_t read_us = 0;     // time spent in reads, failed ones too
};

class ExpertCache : public ExpertSource {
 public:
  // `container` has had SetExpertDims and outlives the cache. With `verify`, each read checks the
  // record's crc. Errors: kArgument (not 1 <= max_leases <= slot_count), kNoMemory.
  static Result<std::unique_ptr<ExpertCache>> Create(const Container& container, int64_t slot_count,
                                                     int64_t max_leases, bool verify);
  ~ExpertCache() override;

  int64_t max_leases() const override { return max_leases_; }
  Status Acquire(int32_t layer, std::span<const int32_t> experts, const std::function<bool()>& stop,
                 std::vector<ExpertLease>& out) override;

  // Uses only `slot_count` slots from now on (held within max_leases and what Create was given) and
  // gives the memory of the others back: at once of those the policy gives up first, and of leased
  // ones as their leases end.
  void LimitSlots(int64_t slot_count);

  ExpertCacheCounters counters() const;

 private:
  static constexpr int32_t kNone = SlotTable::kNone;

  ExpertCache(const Container& container, AlignedBuffer memory, int64_t slot_count,
              int64_t max_leases, bool verify);

  Status FillLeased(int32_t layer, std::span<const int32_t> experts,
                    const std::function<bool()>& stop);
  Result<int32_t> LeaseIdleSlot(const std::function<bool()>& stop);
  Status Read(int32_t layer, int32_t expert, int32_t slot);
  Status HandOut(int32_t layer, std::span<const int32_t> experts, std::vector<ExpertLease>& out);
  std::span<uint8_t> RecordOf(int32_t layer, int32_t slot);
  void Release(int32_t slot);
  void ReleaseAllLeased();
  int32_t NumberOf(int32_t layer, int32_t expert) const;

  // With mutex_ held.
  void BeginStepAt(int32_t layer);
  void Retire(int32_t slot);

  const Container& container_;
  const int64_t max_leases_;
  const bool verify_;
  AlignedBuffer memory_;               // [slots, record_bytes]
  std::vector<int32_t> first_number_;  // of each layer's experts in table_; kNone without a bank

  std::mutex acquire_mutex_;     // held through an Acquire, reads included; taken before mutex_
  std::vector<int32_t> leased_;  // slots of the Acquire that runs, in the order asked for

  mutable std::mutex mutex_;  // guards what follows; never held over a read
  std::condition_variable released_;
  SlotTable table_;
  int32_t last_layer_ = kNone;    // of the last Acquire
  std::vector<int32_t> retired_;  // leased in table_ for good, until the limit is raised
  int64_t slot_limit_;
  ExpertCacheCounters counters_;
};

}  // namespace waste

#endif  // WASTE_CORE_STREAM_EXPERT_CACHE_H_
