// SPDX-License-Identifier: Apache-2.0

#include "stream/slot_table.h"

#include <cmath>
#include <utility>

#include "base/check.h"

namespace waste {
namespace {

constexpr double kGainLimit = 1e100;  // beyond it, all counts are brought back to a gain of 1

}  // namespace

SlotTable::SlotTable(int64_t expert_count, int64_t slot_count)
    : counts_(static_cast<size_t>(expert_count)),
      last_step_(static_cast<size_t>(expert_count)),
      slot_of_(static_cast<size_t>(expert_count), kNone),
      slots_(static_cast<size_t>(slot_count)) {
  heap_.reserve(slots_.size());
  for (int32_t slot = 0; slot < slot_count; ++slot) Push(slot);
}

// Instead of every count shrinking, what is added grows; the order is the same.
void SlotTable::BeginStep() {
  ++steps_;
  gain_ *= std::exp2(1 / kHalfLife);
  if (gain_ < kGainLimit) return;
  for (double& count : counts_) count /= gain_;
  gain_ = 1;
}

// The order of the heap would change under an idle slot, so a slot's expert is counted while the
// slot is leased.
void SlotTable::Count(int32_t expert) {
  const int32_t slot = slot_of_[expert];
  WASTE_CHECK(slot == kNone || leased(slot));
  counts_[expert] += gain_;
  last_step_[expert] = steps_;
}

void SlotTable::SetCount(int32_t expert, double count) {
  WASTE_CHECK(slot_of_[expert] == kNone);
  counts_[expert] = count * gain_;
}

double SlotTable::MaxCount() { return 1 / (1 - std::exp2(-1 / kHalfLife)); }

void SlotTable::Lease(int32_t slot) {
  if (slots_[slot].leases++ == 0) Remove(slot);
}

void SlotTable::Release(int32_t slot) {
  WASTE_CHECK(leased(slot));
  if (--slots_[slot].leases == 0) Push(slot);
}

int32_t SlotTable::Take() {
  if (heap_.empty()) return kNone;
  const int32_t slot = heap_.front();
  Lease(slot);
  Empty(slot);
  return slot;
}

void SlotTable::Fill(int32_t slot, int32_t expert) {
  WASTE_CHECK(leased(slot) && slots_[slot].expert == kNone && slot_of_[expert] == kNone);
  slots_[slot].expert = expert;
  slot_of_[expert] = slot;
}

void SlotTable::Empty(int32_t slot) {
  const int32_t expert = std::exchange(slots_[slot].expert, kNone);
  if (expert == kNone) return;
  WASTE_CHECK(leased(slot));
  slot_of_[expert] = kNone;
}

// Empty slots first, then the lowest count. A total order, so that the same accesses give the same
// cache.
bool SlotTable::GoesBefore(int32_t slot, int32_t other) const {
  const int32_t a = slots_[slot].expert;
  const int32_t b = slots_[other].expert;
  if (a == kNone || b == kNone) return a == b ? slot < other : a == kNone;
  return counts_[a] != counts_[b] ? counts_[a] < counts_[b] : a < b;
}

void SlotTable::Push(int32_t slot) {
  heap_.push_back(slot);
  slots_[slot].heap_at = static_cast<int32_t>(heap_.size()) - 1;
  Settle(slots_[slot].heap_at);
}

void SlotTable::Remove(int32_t slot) {
  const int64_t at = std::exchange(slots_[slot].heap_at, kNone);
  const int32_t last = heap_.back();
  heap_.pop_back();
  if (last == slot) return;
  Put(at, last);
  Settle(at);
}

// Moves what is at `at` up or down to where it belongs.
void SlotTable::Settle(int64_t at) {
  const int32_t slot = heap_[at];
  while (at > 0 && GoesBefore(slot, heap_[(at - 1) / 2])) {
    Put(at, heap_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  const auto size = static_cast<int64_t>(heap_.size());
  for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && GoesBefore(heap_[child + 1], heap_[child])) ++child;
    if (!GoesBefore(heap_[child], slot)) break;
    Put(at, heap_[child]);
    at = child;
  }
  Put(at, slot);
}

void SlotTable::Put(int64_t at, int32_t slot) {
  heap_[at] = slot;
  slots_[slot].heap_at = static_cast<int32_t>(at);
}

}  // namespace waste
