// SPDX-License-Identifier: Apache-2.0

#include "stream/expert_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "os/system.h"

namespace waste {
namespace {

constexpr int64_t kStopPollMs = 10;  // while reads are waited for

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
                                                         const ExpertCacheOptions& options) {
  if (options.max_experts < 1 || options.slot_count < options.max_experts || options.lanes < 1 ||
      options.slot_count > std::numeric_limits<int32_t>::max() / 4)
    return Failure(Code::kArgument, "an expert cache of ", options.slot_count, " slots and ",
                   options.lanes, " lanes cannot hand out ", options.max_experts,
                   " experts at once");
  const auto bytes = CheckedMultiply(options.slot_count, container.record_bytes());
  if (!bytes.has_value())
    return Failure(Code::kNoMemory, options.slot_count, " expert slots of ",
                   container.record_bytes(), " bytes are more than can be addressed");
  WASTE_ASSIGN(AlignedBuffer memory, AlignedBuffer::Allocate(*bytes));
  WASTE_ASSIGN(auto reader,
               ExpertReader::Create(container, options.lanes, options.max_experts, options.verify));
  return std::unique_ptr<ExpertCache>(
      new ExpertCache(container, options, std::move(memory), std::move(reader)));
}

ExpertCache::ExpertCache(const Container& container, const ExpertCacheOptions& options,
                         AlignedBuffer memory, std::unique_ptr<ExpertReader> reader)
    : container_(container),
      options_(options),
      memory_(std::move(memory)),
      first_number_(FirstNumbers(container.manifest())),
      table_(ExpertCount(container.manifest()), options.slot_count),
      reader_(std::move(reader)),
      slot_limit_(options.slot_count) {
  const auto most = static_cast<size_t>(options.max_experts);
  leased_.reserve(most);
  missing_.reserve(most);
  requests_.reserve(most);
  arrived_.reserve(most);
  retired_.reserve(static_cast<size_t>(options.slot_count));
}

ExpertCache::~ExpertCache() = default;

ExpertCacheCounters ExpertCache::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

void ExpertCache::LimitSlots(int64_t slot_count) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    slot_limit_ = std::clamp(slot_count, options_.max_experts, options_.slot_count);
  }
  // A fetch that runs applies it when it ends.
  const std::unique_lock<std::mutex> fetch(fetch_mutex_, std::try_to_lock);
  if (fetch.owns_lock()) ApplyLimit();
}

Status ExpertCache::Fetch(int32_t layer, std::span<const int32_t> experts,
                          const std::function<bool()>& stop, const Use& use) {
  WASTE_CHECK(static_cast<int64_t>(experts.size()) <= options_.max_experts);
  for (const int32_t expert : experts) WASTE_TRY(container_.CheckExpert(layer, expert));
  const std::lock_guard<std::mutex> fetch(fetch_mutex_);
  // Whatever ends the fetch, an exception of `use` too, the reads stop and the slots are released.
  struct Ending {
    ~Ending() { cache.ReleaseAll(); }
    ExpertCache& cache;
  } const ending{*this};
  LeaseAll(layer, experts);
  reader_->Read(requests_);
  Status status = UseResident(layer, experts, use);
  if (status.ok()) status = UseArriving(layer, experts, stop, use);
  return status;
}

// A slot for each expert. What is here is leased first, so that no read takes its place.
void ExpertCache::LeaseAll(int32_t layer, std::span<const int32_t> experts) {
  // A step goes through the layers in order: an earlier one, or the same, begins the next step.
  if (layer <= last_layer_) table_.BeginStep();
  last_layer_ = layer;
  leased_.assign(experts.size(), kNone);
  missing_.clear();
  requests_.clear();
  for (size_t i = 0; i < experts.size(); ++i) {
    const int32_t number = NumberOf(layer, experts[i]);
    leased_[i] = table_.SlotOf(number);
    if (leased_[i] != kNone)
      table_.Lease(leased_[i]);
    else
      missing_.push_back(static_cast<int64_t>(i));
    table_.Count(number);
  }
  for (const int64_t i : missing_) {
    leased_[i] = table_.Take();
    WASTE_CHECK(leased_[i] != kNone);  // there are at least max_experts slots, and one fetch
    requests_.push_back({i, layer, experts[i], RecordOf(layer, leased_[i])});
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  counters_.hits += static_cast<int64_t>(experts.size() - missing_.size());
  counters_.misses += static_cast<int64_t>(missing_.size());
}

Status ExpertCache::UseResident(int32_t layer, std::span<const int32_t> experts, const Use& use) {
  arrived_.clear();
  size_t next_missing = 0;
  for (size_t i = 0; i < experts.size(); ++i) {
    if (next_missing < missing_.size() && missing_[next_missing] == static_cast<int64_t>(i))
      ++next_missing;
    else
      WASTE_TRY(AddArrived(layer, experts[i], static_cast<int64_t>(i)));
  }
  use(arrived_);
  return Status();
}

// Several that have arrived meanwhile are used together.
Status ExpertCache::UseArriving(int32_t layer, std::span<const int32_t> experts,
                                const std::function<bool()>& stop, const Use& use) {
  for (size_t left = missing_.size(); left > 0;) {
    arrived_.clear();
    WASTE_ASSIGN(ExpertReader::Completion first, NextRead(stop));
    WASTE_TRY(TakeIn(layer, experts[first.id], first));
    for (auto more = reader_->Wait(0); more.has_value(); more = reader_->Wait(0))
      WASTE_TRY(TakeIn(layer, experts[more->id], *more));
    left -= arrived_.size();
    use(arrived_);
  }
  return Status();
}

Result<ExpertReader::Completion> ExpertCache::NextRead(const std::function<bool()>& stop) {
  const int64_t start = MonotonicMicros();
  std::optional<ExpertReader::Completion> read = reader_->Wait(0);
  while (!read.has_value()) {
    if (stop && stop()) break;
    read = reader_->Wait(kStopPollMs);
  }
  const int64_t waited = MonotonicMicros() - start;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    counters_.wait_us += waited;
  }
  if (!read.has_value()) return Status(Code::kCancelled, "stopped while experts were read");
  return *std::move(read);
}

// The table learns of a record before it is parsed: one that is damaged is emptied again.
Status ExpertCache::TakeIn(int32_t layer, int32_t expert, const ExpertReader::Completion& read) {
  if (!read.status.ok()) return read.status;
  table_.Fill(leased_[read.id], NumberOf(layer, expert));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    counters_.bytes_read += static_cast<int64_t>(RecordOf(layer, leased_[read.id]).size());
  }
  return AddArrived(layer, expert, read.id);
}

Status ExpertCache::AddArrived(int32_t layer, int32_t expert, int64_t index) {
  const auto record = container_.ParseRecord(layer, expert, RecordOf(layer, leased_[index]));
  if (!record.ok()) {
    table_.Empty(leased_[index]);  // the next one to ask reads it again
    return record.status();
  }
  arrived_.push_back({index, *record});
  return Status();
}

void ExpertCache::ReleaseAll() {
  reader_->CancelAll();
  for (int32_t& slot : leased_)
    if (slot != kNone) table_.Release(std::exchange(slot, kNone));
  ApplyLimit();
}

std::span<uint8_t> ExpertCache::RecordOf(int32_t layer, int32_t slot) {
  const int64_t size = container_.manifest().layers.at(layer).record_bytes();
  const int64_t slot_bytes = container_.record_bytes();
  WASTE_CHECK(size <= slot_bytes);
  return memory_.bytes().subspan(static_cast<size_t>(slot * slot_bytes), static_cast<size_t>(size));
}

// While no slot is leased.
void ExpertCache::ApplyLimit() {
  int64_t limit;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    limit = slot_limit_;
  }
  const auto used = [this] { return table_.slot_count() - static_cast<int64_t>(retired_.size()); };
  while (used() > limit) {
    const int32_t slot = table_.Take();
    retired_.push_back(slot);
    const int64_t slot_bytes = container_.record_bytes();
    DiscardPages(memory_.bytes().subspan(static_cast<size_t>(slot * slot_bytes),
                                         static_cast<size_t>(slot_bytes)));
  }
  while (used() < limit) {
    table_.Release(retired_.back());
    retired_.pop_back();
  }
}

}  // namespace waste
