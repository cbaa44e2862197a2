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

constexpr int64_t kPollMs = 10;  // of `stop` and of the limit, while reads are waited for

}  // namespace

Result<std::unique_ptr<ExpertCache>> ExpertCache::Create(const Container& container,
                                                         const ExpertCacheOptions& options) {
  const int64_t most = std::numeric_limits<int32_t>::max() / 4;
  if (options.max_experts < 1 || options.max_expected < 0 || options.slot_count > most ||
      options.max_experts > options.slot_count ||
      options.max_expected > options.slot_count - options.max_experts)
    return Failure(Code::kArgument, "an expert cache of ", options.slot_count,
                   " slots cannot hand out ", options.max_experts, " experts at once and read ",
                   options.max_expected, " ahead");
  const auto bytes = CheckedMultiply(options.slot_count, container.record_bytes());
  if (!bytes.has_value())
    return Failure(Code::kNoMemory, options.slot_count, " expert slots of ",
                   container.record_bytes(), " bytes are more than can be addressed");
  WASTE_ASSIGN(AlignedBuffer memory, AlignedBuffer::AllocateHuge(*bytes));
  WASTE_ASSIGN(auto reader,
               ExpertReader::Create(container, options.lanes,
                                    options.max_experts + options.max_expected, options.verify));
  return std::unique_ptr<ExpertCache>(
      new ExpertCache(container, options, std::move(memory), std::move(reader)));
}

ExpertCache::ExpertCache(const Container& container, const ExpertCacheOptions& options,
                         AlignedBuffer memory, std::unique_ptr<ExpertReader> reader)
    : container_(container),
      options_(options),
      numbers_(container.manifest()),
      slot_bytes_(container.record_bytes()),
      memory_(std::move(memory)),
      table_(numbers_.count(), options.slot_count),
      reads_(static_cast<size_t>(options.slot_count)),
      is_guess_(static_cast<size_t>(options.slot_count)),
      reader_(std::move(reader)),
      slot_limit_(options.slot_count) {
  counters_.slots = options.slot_count;
  const auto most = static_cast<size_t>(options.max_experts + options.max_expected);
  leased_.reserve(most);
  guesses_.reserve(most);
  kept_.reserve(most);
  requests_.reserve(most);
  arrived_.reserve(most);
  retired_.reserve(static_cast<size_t>(options.slot_count));
  if (options.slot_count < numbers_.count()) return;
  for (int32_t number = 0; number < numbers_.count(); ++number) to_fill_.push_back(number);
}

ExpertCache::~ExpertCache() = default;

ExpertCacheCounters ExpertCache::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

void ExpertCache::LimitSlots(int64_t slot_count) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    slot_limit_ =
        std::clamp(slot_count, options_.max_experts + options_.max_expected, options_.slot_count);
  }
  // A fetch that runs applies it itself, between the experts it uses.
  const std::unique_lock<std::mutex> fetch(fetch_mutex_, std::try_to_lock);
  if (fetch.owns_lock()) ApplyLimit();
}

Status ExpertCache::Fetch(int32_t layer, std::span<const int32_t> experts,
                          const std::function<bool()>& stop, const Use& use) {
  WASTE_CHECK(static_cast<int64_t>(experts.size()) <= options_.max_experts);
  for (const int32_t expert : experts) WASTE_TRY(container_.CheckExpert(layer, expert));
  const std::lock_guard<std::mutex> fetch(fetch_mutex_);
  // Whatever ends the fetch, an exception of `use` too, the slots are released.
  struct Ending {
    ~Ending() { cache.ReleaseAll(); }
    ExpertCache& cache;
  } const ending{*this};
  LeaseAll(layer, experts);
  Status status = UseResident(layer, experts, use);
  if (status.ok()) status = UseArriving(stop, use);
  return status;
}

// A slot for each expert. What is here, or on its way, is leased first, so that no read takes its
// place.
void ExpertCache::LeaseAll(int32_t layer, std::span<const int32_t> experts) {
  BeginStepIfNext(layer, experts);
  TakeInGuesses();
  leased_.assign(experts.size(), kNone);
  awaited_ = 0;
  int64_t missing = 0;
  int64_t foreseen = 0;
  for (size_t i = 0; i < experts.size(); ++i) {
    const int32_t number = numbers_.Of(layer, experts[i]);
    const auto index = static_cast<int64_t>(i);
    if (LeaseHere(number, index))
      foreseen += std::exchange(is_guess_[leased_[i]], 0);
    else if (LeaseGuessed(layer, experts[i], index))
      ++foreseen;
    else
      ++missing;
    table_.Count(number);
  }
  DropStaleGuesses();
  RequestMissing(layer, experts);
  fetches_without_miss_ = missing + foreseen == 0 ? fetches_without_miss_ + 1 : 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  counters_.hits += static_cast<int64_t>(experts.size()) - missing - foreseen;
  counters_.foreseen += foreseen;
  counters_.misses += missing + foreseen;
}

// A step goes through the layers in order, and through what it wants of one in the experts' order,
// in as many fetches as it takes: one that is not behind the last begins the next step.
void ExpertCache::BeginStepIfNext(int32_t layer, std::span<const int32_t> experts) {
  if (experts.empty()) return;
  if (layer < last_layer_ || (layer == last_layer_ && experts.front() <= last_expert_))
    table_.BeginStep();
  last_layer_ = layer;
  last_expert_ = experts.back();
}

bool ExpertCache::LeaseHere(int32_t number, int64_t index) {
  const int32_t slot = table_.SlotOf(number);
  if (slot == kNone) return false;
  table_.Lease(slot);
  leased_[index] = slot;
  __builtin_prefetch(memory_.data() + slot * slot_bytes_);  // its header is parsed
  return true;
}

void ExpertCache::RequestMissing(int32_t layer, std::span<const int32_t> experts) {
  requests_.clear();
  for (size_t i = 0; i < experts.size(); ++i) {
    if (leased_[i] != kNone) continue;
    const int32_t slot = table_.Take();
    WASTE_CHECK(slot != kNone);  // there are slots for all of a fetch and all guesses
    leased_[i] = slot;
    is_guess_[slot] = 0;
    reads_[slot] = {layer, experts[i], static_cast<int64_t>(i)};
    requests_.push_back({slot, layer, experts[i], RecordOf(layer, slot)});
  }
  awaited_ += std::ssize(requests_);
  reader_->Read(requests_, ReadPriority::kDemand);
}

Status ExpertCache::UseResident(int32_t layer, std::span<const int32_t> experts, const Use& use) {
  arrived_.clear();
  for (size_t i = 0; i < experts.size(); ++i)
    if (reads_[leased_[i]].expert == kNone)
      WASTE_TRY(AddArrived(layer, experts[i], static_cast<int64_t>(i)));
  use(arrived_);
  return Status();
}

// Several that have arrived meanwhile are used together.
Status ExpertCache::UseArriving(const std::function<bool()>& stop, const Use& use) {
  while (awaited_ > 0) {
    arrived_.clear();
    WASTE_ASSIGN(const ExpertReader::Completion first, NextRead(stop));
    WASTE_TRY(TakeIn(first));
    for (auto more = reader_->Wait(0); more.has_value(); more = reader_->Wait(0))
      WASTE_TRY(TakeIn(*more));
    if (!arrived_.empty()) use(arrived_);
    ApplyLimit();
  }
  return Status();
}

Result<ExpertReader::Completion> ExpertCache::NextRead(const std::function<bool()>& stop) {
  std::optional<ExpertReader::Completion> read = reader_->Wait(0);
  if (read.has_value()) return *std::move(read);
  const int64_t start = MonotonicMicros();
  while (!read.has_value() && !(stop && stop())) {
    ApplyLimit();
    read = reader_->Wait(kPollMs);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counters_.stalls;
    counters_.wait_us += MonotonicMicros() - start;
  }
  if (!read.has_value()) return Status(Code::kCancelled, "stopped while experts were read");
  return *std::move(read);
}

// The table learns of a record before it is parsed: one that is damaged is emptied again.
Status ExpertCache::TakeIn(const ExpertReader::Completion& completion) {
  const auto slot = static_cast<int32_t>(completion.id);
  if (reads_[slot].index == kNone) {
    SettleGuess(slot, completion.status);
    return Status();
  }
  const Read read = std::exchange(reads_[slot], Read());
  --awaited_;
  if (!completion.status.ok()) return completion.status;
  table_.Fill(slot, numbers_.Of(read.layer, read.expert));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    counters_.bytes_read += static_cast<int64_t>(RecordOf(read.layer, slot).size());
  }
  return AddArrived(read.layer, read.expert, read.index);
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

// A fetch that ends early takes all reads with it, guesses too: none may be left that writes into a
// slot that is released.
void ExpertCache::ReleaseAll() {
  if (awaited_ > 0) {
    reader_->CancelAll();
    while (!guesses_.empty()) EndGuess(guesses_.back());
    awaited_ = 0;
  }
  for (int32_t& slot : leased_) {
    if (slot == kNone) continue;
    reads_[slot] = Read();
    table_.Release(std::exchange(slot, kNone));
  }
  ApplyLimit();
  last_fetch_us_ = MonotonicMicros();
}

std::span<uint8_t> ExpertCache::RecordOf(int32_t layer, int32_t slot) {
  const int64_t size = container_.manifest().layers.at(layer).record_bytes();
  WASTE_CHECK(size <= slot_bytes_);
  return memory_.bytes().subspan(static_cast<size_t>(slot * slot_bytes_),
                                 static_cast<size_t>(size));
}

// Slots that are leased, by the fetch that runs, for guesses and by FillOne, are kept; there are
// never more of them than the limit.
void ExpertCache::ApplyLimit() {
  int64_t limit;
  const auto used = [this] { return table_.slot_count() - static_cast<int64_t>(retired_.size()); };
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // FillOne holds none that a fetch may need.
    const int64_t least = options_.max_experts + options_.max_expected + (filling_ ? 1 : 0);
    limit = std::max(slot_limit_, std::min(least, table_.slot_count()));
    counters_.slots = limit;
  }
  while (used() > limit) {
    const int32_t slot = table_.Take();
    WASTE_CHECK(slot != kNone);
    retired_.push_back(slot);
    DiscardPages(memory_.bytes().subspan(static_cast<size_t>(slot * slot_bytes_),
                                         static_cast<size_t>(slot_bytes_)));
  }
  if (used() < limit) next_to_fill_ = 0;
  while (used() < limit) {
    table_.Release(retired_.back());
    retired_.pop_back();
  }
}

}  // namespace waste
