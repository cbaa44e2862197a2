// SPDX-License-Identifier: Apache-2.0

#include "stream/expert_cache.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "os/system.h"

namespace waste {
namespace {

constexpr std::chrono::milliseconds kStopPoll{10};  // while all slots are leased

}  // namespace

Result<std::unique_ptr<ExpertCache>> ExpertCache::Create(const Container& container,
                                                         int64_t slot_count, int64_t max_leases,
                                                         bool verify) {
  if (max_leases < 1 || slot_count < max_leases ||
      slot_count > std::numeric_limits<int32_t>::max() / 4)
    return Failure(Code::kArgument, "an expert cache of ", slot_count, " slots cannot lease ",
                   max_leases, " experts at once");
  const auto bytes = CheckedMultiply(slot_count, container.record_bytes());
  if (!bytes.has_value())
    return Failure(Code::kNoMemory, slot_count, " expert slots of ", container.record_bytes(),
                   " bytes are more than can be addressed");
  WASTE_ASSIGN(AlignedBuffer memory, AlignedBuffer::Allocate(*bytes));
  return std::unique_ptr<ExpertCache>(
      new ExpertCache(container, std::move(memory), slot_count, max_leases, verify));
}

ExpertCache::ExpertCache(const Container& container, AlignedBuffer memory, int64_t slot_count,
                         int64_t max_leases, bool verify)
    : container_(container),
      max_leases_(max_leases),
      verify_(verify),
      memory_(std::move(memory)),
      slots_(static_cast<size_t>(slot_count)),
      buckets_(std::bit_ceil(2 * static_cast<size_t>(slot_count)), kNone),
      used_slots_(slot_count),
      slot_limit_(slot_count) {
  leased_.reserve(static_cast<size_t>(max_leases));
  for (int32_t slot = 0; slot < slot_count; ++slot) AddIdle(slot);
}

ExpertCache::~ExpertCache() = default;

ExpertCacheCounters ExpertCache::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

void ExpertCache::LimitSlots(int64_t slot_count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  slot_limit_ = std::clamp(slot_count, max_leases_, static_cast<int64_t>(slots_.size()));
  while (used_slots_ > slot_limit_ && oldest_ != kNone) {
    const int32_t slot = oldest_;
    RemoveIdle(slot);
    Retire(slot);
  }
  while (used_slots_ < slot_limit_) {
    const int32_t slot = retired_;
    retired_ = slots_[slot].older;
    ++used_slots_;
    AddIdle(slot);
  }
  released_.notify_all();
}

Status ExpertCache::Acquire(int32_t layer, std::span<const int32_t> experts,
                            const std::function<bool()>& stop, std::vector<ExpertLease>& out) {
  WASTE_CHECK(out.empty());
  WASTE_CHECK(static_cast<int64_t>(experts.size()) <= max_leases_);
  out.reserve(experts.size());
  const std::lock_guard<std::mutex> one_at_a_time(acquire_mutex_);
  leased_.assign(experts.size(), kNone);
  Status status = FillLeased(layer, experts, stop);
  if (status.ok()) status = HandOut(layer, experts, out);
  if (!status.ok()) ReleaseAllLeased();
  return status;
}

// Leases a slot with each expert. What is here is leased first, so that no read evicts it.
Status ExpertCache::FillLeased(int32_t layer, std::span<const int32_t> experts,
                               const std::function<bool()>& stop) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < experts.size(); ++i) {
      const int32_t slot = Find(layer, experts[i]);
      if (slot == kNone) continue;
      Lease(slot);
      leased_[i] = slot;
      ++counters_.hits;
    }
  }
  for (size_t i = 0; i < experts.size(); ++i) {
    if (leased_[i] != kNone) continue;
    if (stop && stop()) return Status(Code::kCancelled, "stopped while experts were read");
    WASTE_ASSIGN(leased_[i], LeaseIdleSlot(stop));
    WASTE_TRY(Read(layer, experts[i], leased_[i]));
  }
  return Status();
}

// The slot used least recently, emptied. Waits while other threads lease all of them.
Result<int32_t> ExpertCache::LeaseIdleSlot(const std::function<bool()>& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (oldest_ == kNone) {
    released_.wait_for(lock, kStopPoll);
    if (oldest_ != kNone) break;
    lock.unlock();
    if (stop && stop()) return Status(Code::kCancelled, "stopped while all slots were in use");
    lock.lock();
  }
  const int32_t slot = oldest_;
  Lease(slot);
  Empty(slot);
  return slot;
}

// Nobody else touches the slot meanwhile: it is leased and in no bucket.
Status ExpertCache::Read(int32_t layer, int32_t expert, int32_t slot) {
  const std::span<uint8_t> record = RecordOf(layer, slot);
  const int64_t start = MonotonicMicros();
  const Status status = container_.ReadRecord(layer, expert, record, verify_);
  const int64_t read_us = MonotonicMicros() - start;
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counters_.misses;
  counters_.read_us += read_us;
  if (!status.ok()) return status;
  counters_.bytes_read += static_cast<int64_t>(record.size());
  Fill(slot, layer, expert);
  return status;
}

Status ExpertCache::HandOut(int32_t layer, std::span<const int32_t> experts,
                            std::vector<ExpertLease>& out) {
  for (size_t i = 0; i < experts.size(); ++i) {
    const int32_t slot = leased_[i];
    const auto record = container_.ParseRecord(layer, experts[i], RecordOf(layer, slot));
    if (!record.ok()) {
      out.clear();
      const std::lock_guard<std::mutex> lock(mutex_);
      Empty(slot);  // the next one to ask reads it again
      return record.status();
    }
    out.emplace_back(*record, [this, slot] { Release(slot); });
    leased_[i] = kNone;  // the lease has it now
  }
  return Status();
}

std::span<uint8_t> ExpertCache::RecordOf(int32_t layer, int32_t slot) {
  const auto& layers = container_.manifest().layers;
  const auto entry = layers.find(layer);
  const int64_t slot_bytes = container_.record_bytes();
  const int64_t size = entry == layers.end() ? slot_bytes : entry->second.record_bytes();
  WASTE_CHECK(size <= slot_bytes);
  return memory_.bytes().subspan(static_cast<size_t>(slot * slot_bytes), static_cast<size_t>(size));
}

void ExpertCache::ReleaseAllLeased() {
  for (int32_t& slot : leased_)
    if (slot != kNone) Release(std::exchange(slot, kNone));
}

void ExpertCache::Release(int32_t slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--slots_[slot].leases > 0) return;
  if (used_slots_ > slot_limit_) return Retire(slot);
  AddIdle(slot);
  released_.notify_one();
}

// Neighbouring experts must not share a bucket: multiply, and take the upper bits.
int32_t* ExpertCache::BucketOf(int32_t layer, int32_t expert) {
  const uint64_t key =
      uint64_t{static_cast<uint32_t>(layer)} << 32 | uint64_t{static_cast<uint32_t>(expert)};
  const int bits = std::countr_zero(buckets_.size());
  return &buckets_[key * 0x9E3779B97F4A7C15u >> (64 - bits)];
}

int32_t ExpertCache::Find(int32_t layer, int32_t expert) {
  int32_t slot = *BucketOf(layer, expert);
  while (slot != kNone && (slots_[slot].layer != layer || slots_[slot].expert != expert))
    slot = slots_[slot].next_in_bucket;
  return slot;
}

void ExpertCache::Lease(int32_t slot) {
  if (slots_[slot].leases++ == 0) RemoveIdle(slot);
}

void ExpertCache::Fill(int32_t slot, int32_t layer, int32_t expert) {
  int32_t* bucket = BucketOf(layer, expert);
  Slot& s = slots_[slot];
  s.full = true;
  s.layer = layer;
  s.expert = expert;
  s.next_in_bucket = std::exchange(*bucket, slot);
}

void ExpertCache::Empty(int32_t slot) {
  Slot& s = slots_[slot];
  if (!s.full) return;
  int32_t* link = BucketOf(s.layer, s.expert);
  while (*link != slot) link = &slots_[*link].next_in_bucket;
  *link = s.next_in_bucket;
  s.full = false;
}

// A full slot was just used and is the newest; an empty one is the first to be taken.
void ExpertCache::AddIdle(int32_t slot) {
  Slot& s = slots_[slot];
  s.older = s.full ? newest_ : kNone;
  s.newer = s.full ? kNone : oldest_;
  (s.older == kNone ? oldest_ : slots_[s.older].newer) = slot;
  (s.newer == kNone ? newest_ : slots_[s.newer].older) = slot;
}

void ExpertCache::RemoveIdle(int32_t slot) {
  const Slot& s = slots_[slot];
  (s.older == kNone ? oldest_ : slots_[s.older].newer) = s.newer;
  (s.newer == kNone ? newest_ : slots_[s.newer].older) = s.older;
}

void ExpertCache::Retire(int32_t slot) {
  Empty(slot);
  slots_[slot].older = std::exchange(retired_, slot);
  --used_slots_;
  const int64_t slot_bytes = container_.record_bytes();
  DiscardPages(memory_.bytes().subspan(static_cast<size_t>(slot * slot_bytes),
                                       static_cast<size_t>(slot_bytes)));
}

}  // namespace waste
