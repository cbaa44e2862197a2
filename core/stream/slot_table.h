// SPDX-License-Identifier: Apache-2.0
//
// Which expert is in which slot, and which slot is given up next: the policy of the expert cache,
// without memory, files or locks. Every use of an expert, in a slot or not, adds one to its count,
// and counts halve every kHalfLife steps. What is given up is the idle slot with the lowest count.
// An expert that is rarely used thus leaves first even if it came last, which is what admission
// means: below a working set of slots, where the least recently used one is always the next one
// needed, the best experts stay. O(log slots) an access, nothing is allocated after Create. One
// thread at a time.

#ifndef WASTE_CORE_STREAM_SLOT_TABLE_H_
#define WASTE_CORE_STREAM_SLOT_TABLE_H_

#include <cstdint>
#include <vector>

namespace waste {

class SlotTable {
 public:
  static constexpr int32_t kNone = -1;
  // Of counts, in steps. Chosen on data/routing of Kimi-Linear: 6 to 12 differ by less than 0.01 of
  // all accesses (docs/learned.md).
  static constexpr double kHalfLife = 8;

  // Experts are numbered 0 to expert_count - 1, slots 0 to slot_count - 1; all slots are empty.
  SlotTable(int64_t expert_count, int64_t slot_count);

  // Counts decay by one step: one token of every layer.
  void BeginStep();
  void Count(int32_t expert);
  // What was counted before this table was made; of an expert in no slot.
  void SetCount(int32_t expert, double count);
  double count_of(int32_t expert) const { return counts_[expert] / gain_; }
  static double MaxCount();  // of an expert that every step uses

  // Steps since the first; of an expert, when it was counted last.
  void SetSteps(uint32_t steps) { steps_ = steps; }
  uint32_t steps() const { return steps_; }
  uint32_t last_step(int32_t expert) const { return last_step_[expert]; }

  int32_t SlotOf(int32_t expert) const { return slot_of_[expert]; }  // or kNone
  int32_t ExpertIn(int32_t slot) const { return slots_[slot].expert; }
  bool leased(int32_t slot) const { return slots_[slot].leases > 0; }

  // A leased slot is not given up. Released, it is idle.
  void Lease(int32_t slot);
  void Release(int32_t slot);
  // Leases the idle slot that is given up first, emptied; kNone if every slot is leased.
  int32_t Take();

  void Fill(int32_t slot, int32_t expert);  // of an empty slot
  void Empty(int32_t slot);                 // of a leased slot, or of an empty one

  bool has_empty() const { return !heap_.empty() && ExpertIn(heap_.front()) == kNone; }
  int64_t idle() const { return static_cast<int64_t>(heap_.size()); }
  int64_t slot_count() const { return static_cast<int64_t>(slots_.size()); }

 private:
  struct Slot {
    int32_t expert = kNone;
    int32_t leases = 0;
    int32_t heap_at = kNone;  // of an idle slot
  };

  bool GoesBefore(int32_t slot, int32_t other) const;
  void Push(int32_t slot);
  void Remove(int32_t slot);
  void Settle(int64_t at);
  void Put(int64_t at, int32_t slot);

  std::vector<double> counts_;       // by expert, times gain_ of the time when it was counted
  double gain_ = 1;                  // 2^(steps / kHalfLife): what a use adds now
  std::vector<uint32_t> last_step_;  // by expert
  uint32_t steps_ = 0;
  std::vector<int32_t> slot_of_;  // by expert
  std::vector<Slot> slots_;
  std::vector<int32_t> heap_;  // idle slots; its first is given up first
};

}  // namespace waste

#endif  // WASTE_CORE_STREAM_SLOT_TABLE_H_
