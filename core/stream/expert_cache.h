// SPDX-License-Identifier: Apache-2.0
//
// Experts in a fixed number of slots: what is not in one is read from its bank into the slot that
// the policy of SlotTable gives up, several reads at a time, while the caller computes with what is
// there. Guesses of what comes next are read behind all demands, and taken back when they prove
// wrong before they were begun. An expert that is in use is never given up, and a slot whose read
// failed is empty. The memory is slots times record, reserved once, and a few bytes for each expert
// and slot; a fetch allocates nothing. What a cache holds changes speed, never results. Any thread
// may call Fetch; one fetches at a time and the others wait.

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
#include "stream/expert_numbers.h"
#include "stream/expert_reader.h"
#include "stream/expert_source.h"
#include "stream/slot_table.h"
#include "stream/usage_log.h"

namespace waste {

struct ExpertCacheOptions {
  int64_t slot_count = 0;
  int64_t max_experts = 0;   // of one Fetch
  int64_t max_expected = 0;  // guesses that are read ahead; with max_experts at most slot_count
  int32_t lanes = 4;         // reads at once
  bool verify = false;       // check the crc of each record that is read
};

// Every expert that was asked for is a hit or a miss.
struct ExpertCacheCounters {
  int64_t slots = 0;              // in use now: the others' memory was given back
  int64_t hits = 0;               // experts that were in a slot when they were asked for
  int64_t misses = 0;             // experts that had to be read for it
  int64_t foreseen = 0;           // of those, the ones whose read a guess had begun, or ended
  int64_t bytes_read = 0;         // of the reads that succeeded, guesses and filling included
  int64_t speculative_reads = 0;  // guesses whose read succeeded
  int64_t speculative_bytes = 0;  // of those; part of bytes_read
  int64_t filled = 0;             // experts read while nobody asked for any
  int64_t stalls = 0;             // times that there was nothing to do but wait for a read
  int64_t wait_us = 0;            // time spent so
};

class ExpertCache : public ExpertSource {
 public:
  enum class Filling {
    kFilled,  // one more expert is in a slot
    kBusy,    // somebody fetches, or has a moment ago
    kDone,    // no slot is empty, or nothing is worth reading
  };

  // `container` has had SetExpertDims and outlives the cache. Errors: kArgument (max_experts < 1,
  // fewer slots than max_experts and max_expected, lanes not 1 to ExpertReader::kMaxLanes),
  // kNoMemory.
  static Result<std::unique_ptr<ExpertCache>> Create(const Container& container,
                                                     const ExpertCacheOptions& options);
  ~ExpertCache() override;

  // Before the first Fetch: measures how many reads at once the drive wants, of as many lanes as
  // there are, and uses that many.
  void CalibrateLanes();
  int32_t lanes() const { return reader_->lanes(); }

  int64_t max_experts() const override { return options_.max_experts; }
  Status Fetch(int32_t layer, std::span<const int32_t> experts, const std::function<bool()>& stop,
               const Use& use) override;
  // Guesses are of no use to who finds everything here.
  int64_t max_expected() const override {
    return fetches_without_miss_ < kNoMoreMisses ? options_.max_expected : 0;
  }
  void Expect(int32_t layer, std::span<const int32_t> experts) override;

  // Uses only `slot_count` slots from now on (held within what one fetch needs and what Create was
  // given) and gives the memory of the others back: at once, or as soon as the fetch that runs is
  // between two experts.
  void LimitSlots(int64_t slot_count);

  // Reads one expert into an empty slot, on the calling thread, unless somebody fetches: first
  // those that Learn named, then, if all experts fit, the others. One thread at a time.
  Filling FillOne();
  // Before the first Fetch: whether there is anything that it could fill in.
  bool has_filling() const { return !to_fill_.empty(); }

  // Counts from an earlier run, before the first Fetch; what they name and is not here is skipped.
  void Learn(const UsageLog& usage);
  // What is in the slots now, and how much it was used.
  UsageLog Usage();

  ExpertCacheCounters counters() const;

 private:
  static constexpr int32_t kNone = SlotTable::kNone;
  // Fetches in a row that needed no read, after which the next are taken to need none: some tokens.
  static constexpr int64_t kNoMoreMisses = 256;

  // A read that is under way into a slot, which is leased for it.
  struct Read {
    int32_t layer = kNone;
    int32_t expert = kNone;  // kNone: no read
    int64_t index = kNone;   // of the fetch that waits for it; kNone: a guess
  };

  ExpertCache(const Container& container, const ExpertCacheOptions& options, AlignedBuffer memory,
              std::unique_ptr<ExpertReader> reader);

  // expert_cache.cc: what is asked for.
  void LeaseAll(int32_t layer, std::span<const int32_t> experts);
  void BeginStepIfNext(int32_t layer, std::span<const int32_t> experts);
  bool LeaseHere(int32_t number, int64_t index);
  void RequestMissing(int32_t layer, std::span<const int32_t> experts);
  Status UseResident(int32_t layer, std::span<const int32_t> experts, const Use& use);
  Status UseArriving(const std::function<bool()>& stop, const Use& use);
  Result<ExpertReader::Completion> NextRead(const std::function<bool()>& stop);
  Status TakeIn(const ExpertReader::Completion& completion);
  Status AddArrived(int32_t layer, int32_t expert, int64_t index);
  void ReleaseAll();
  std::span<uint8_t> RecordOf(int32_t layer, int32_t slot);
  void ApplyLimit();

  // expert_cache_ahead.cc: what is not.
  int32_t GuessedSlot(int32_t layer, int32_t expert) const;
  bool LeaseGuessed(int32_t layer, int32_t expert, int64_t index);
  void TakeInGuesses();
  void SettleGuess(int32_t slot, const Status& status);
  void EndGuess(int32_t slot);
  void DropStaleGuesses();
  int32_t NextToFill();

  const Container& container_;
  const ExpertCacheOptions options_;
  const ExpertNumbers numbers_;
  const int64_t slot_bytes_;  // of the largest record
  AlignedBuffer memory_;      // [slots, slot_bytes_]

  std::mutex fetch_mutex_;  // held through a Fetch; guards what follows, taken before mutex_
  SlotTable table_;
  int32_t last_layer_ = kNone;                   // of the last Fetch
  int32_t last_expert_ = kNone;                  // the last of those it asked for
  int64_t last_fetch_us_ = 0;                    // when it ended
  std::vector<int32_t> leased_;                  // slots of the Fetch that runs, by index
  int64_t awaited_ = 0;                          // of them, those whose reads are under way
  int64_t fetches_without_miss_ = 0;             // since the last that had one
  std::vector<Read> reads_;                      // by slot
  std::vector<uint8_t> is_guess_;                // by slot: read ahead, and not asked for yet
  std::vector<int32_t> guesses_;                 // slots with reads that nobody waits for
  std::vector<int32_t> kept_;                    // slots leased while Expect takes others
  std::vector<ExpertReader::Request> requests_;  // made together
  std::vector<ArrivedExpert> arrived_;
  std::vector<int32_t> retired_;  // leased in table_ for good, until the limit is raised
  std::vector<int32_t> to_fill_;  // experts' numbers, from next_to_fill_ on
  size_t next_to_fill_ = 0;
  bool filling_ = false;  // FillOne has a slot leased
  std::unique_ptr<ExpertReader> reader_;

  mutable std::mutex mutex_;  // guards what follows
  int64_t slot_limit_;
  ExpertCacheCounters counters_;
};

}  // namespace waste

#endif  // WASTE_CORE_STREAM_EXPERT_CACHE_H_
