// SPDX-License-Identifier: Apache-2.0

#include "stream/expert_cache.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "os/system.h"

namespace waste {
namespace {

constexpr std::chrono::milliseconds kStopPoll{10};  // while all slots are leased

// The experts of all layers are numbered through; the first number of each layer that has a bank.
std::vector<int32_t> FirstNumbers(const Manifest& manifest) {
  std::vector<int32_t> first;
  int32_t next = 0;
  for (const auto& [layer, entry] : manifest.layers) {
    first.resize(static_cast<size_t>(layer) + 1, SlotTable::kNone);
    first[layer] = next;
    next += static_cast<int32_t>(entry.experts);
  }
  return first;
}

int64_t ExpertCount(const Manifest& manifest) {
  int64_t count = 0;
  for (const auto& [layer, entry] : manifest.layers) count += entry.experts;
  return count;
}

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
      first_number_(FirstNumbers(container.manifest())),
      table_(ExpertCount(container.manifest()), slot_count),
      slot_limit_(slot_count) {
  leased_.reserve(static_cast<size_t>(max_leases));
  retired_.reserve(static_cast<size_t>(slot_count));
}

ExpertCache::~ExpertCache() = default;

ExpertCacheCounters ExpertCache::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

void ExpertCache::LimitSlots(int64_t slot_count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  slot_limit_ = std::clamp(slot_count, max_leases_, table_.slot_count());
  const auto used = [this] { return table_.slot_count() - static_cast<int64_t>(retired_.size()); };
  while (used() > slot_limit_ && table_.idle() > 0) Retire(table_.Take());
  while (used() < slot_limit_) {
    table_.Release(retired_.back());
    retired_.pop_back();
  }
  released_.notify_all();
}

Status ExpertCache::Acquire(int32_t layer, std::span<const int32_t> experts,
                            const std::function<bool()>& stop, std::vector<ExpertLease>& out) {
  WASTE_CHECK(out.empty());
  WASTE_CHECK(static_cast<int64_t>(experts.size()) <= max_leases_);
  for (const int32_t expert : experts) WASTE_TRY(container_.CheckExpert(layer, expert));
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
    BeginStepAt(layer);
    for (size_t i = 0; i < experts.size(); ++i) {
      const int32_t number = NumberOf(layer, experts[i]);
      const int32_t slot = table_.SlotOf(number);
      if (slot != kNone) {
        table_.Lease(slot);
        leased_[i] = slot;
        ++counters_.hits;
      }
      table_.Count(number);
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

// The slot that is given up next, emptied. Waits while other threads lease all of them.
Result<int32_t> ExpertCache::LeaseIdleSlot(const std::function<bool()>& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (table_.idle() == 0) {
    released_.wait_for(lock, kStopPoll);
    if (table_.idle() > 0) break;
    lock.unlock();
    if (stop && stop()) return Status(Code::kCancelled, "stopped while all slots were in use");
    lock.lock();
  }
  return table_.Take();
}

// Nobody else touches the slot meanwhile: it is leased and holds no expert.
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
  table_.Fill(slot, NumberOf(layer, expert));
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
      table_.Empty(slot);  // the next one to ask reads it again
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
  table_.Release(slot);
  const int64_t used = table_.slot_count() - static_cast<int64_t>(retired_.size());
  if (used > slot_limit_ && !table_.leased(slot)) Retire(table_.Take());
  released_.notify_one();
}

int32_t ExpertCache::NumberOf(int32_t layer, int32_t expert) const {
  return first_number_[layer] + expert;
}

// A step goes through the layers in order: an earlier one, or the same again, begins the next step.
void ExpertCache::BeginStepAt(int32_t layer) {
  if (layer <= last_layer_) table_.BeginStep();
  last_layer_ = layer;
}

void ExpertCache::Retire(int32_t slot) {
  retired_.push_back(slot);
  const int64_t slot_bytes = container_.record_bytes();
  DiscardPages(memory_.bytes().subspan(static_cast<size_t>(slot * slot_bytes),
                                       static_cast<size_t>(slot_bytes)));
}

}  // namespace waste
