// SPDX-License-Identifier: Apache-2.0
//
// What a cache reads before it is asked: guesses at what the next layer needs, and, while nobody
// asks for anything, what its empty slots may hold.

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "os/system.h"
#include "stream/expert_cache.h"
#include "stream/lane_calibration.h"

namespace waste {
namespace {

// A fetch that ended less than this ago is followed by another soon.
constexpr int64_t kIdleUs = 50'000;

// What counts of an earlier run weigh against what is counted now.
constexpr double kLearnedShare = 0.5;
// A saved count is in hundredths, so that whole numbers keep their order.
constexpr double kSavedUnit = 100;

}  // namespace

// Within a Fetch, whose mutex is held. A guess that is here is kept while others find their slots.
void ExpertCache::Expect(int32_t layer, std::span<const int32_t> experts) {
  kept_.clear();
  for (const int32_t expert : experts) {
    const int32_t number = numbers_.Find(layer, expert);
    const int32_t slot = number == kNone ? kNone : table_.SlotOf(number);
    if (slot == kNone || kept_.size() == kept_.capacity()) continue;
    table_.Lease(slot);
    kept_.push_back(slot);
  }
  requests_.clear();
  for (const int32_t expert : experts) {
    if (std::ssize(guesses_) == options_.max_expected) break;
    const int32_t number = numbers_.Find(layer, expert);
    if (number == kNone || table_.SlotOf(number) != kNone || GuessedSlot(layer, expert) != kNone)
      continue;
    const int32_t slot = table_.Take();
    if (slot == kNone) break;
    is_guess_[slot] = 0;
    reads_[slot] = {layer, expert, kNone};
    guesses_.push_back(slot);
    requests_.push_back({slot, layer, expert, RecordOf(layer, slot)});
  }
  for (const int32_t slot : kept_) table_.Release(slot);
  reader_->Read(requests_, ReadPriority::kSpeculation);
}

int32_t ExpertCache::GuessedSlot(int32_t layer, int32_t expert) const {
  for (const int32_t slot : guesses_)
    if (reads_[slot].layer == layer && reads_[slot].expert == expert) return slot;
  return kNone;
}

// The guess's lease becomes the fetch's.
bool ExpertCache::LeaseGuessed(int32_t layer, int32_t expert, int64_t index) {
  const int32_t slot = GuessedSlot(layer, expert);
  if (slot == kNone) return false;
  std::erase(guesses_, slot);
  leased_[index] = slot;
  reads_[slot].index = index;
  ++awaited_;
  reader_->Promote(slot);
  return true;
}

// Before a Fetch: only guesses are under way.
void ExpertCache::TakeInGuesses() {
  if (guesses_.empty()) return;
  for (auto done = reader_->Wait(0); done.has_value(); done = reader_->Wait(0))
    SettleGuess(static_cast<int32_t>(done->id), done->status);
}

// A guess that could not be read, or is damaged, is forgotten: if it is needed, reading it again
// tells why.
void ExpertCache::SettleGuess(int32_t slot, const Status& status) {
  const auto [layer, expert, index] = reads_[slot];
  const int32_t number = numbers_.Of(layer, expert);
  const auto record = RecordOf(layer, slot);
  if (status.ok()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    counters_.bytes_read += static_cast<int64_t>(record.size());
    ++counters_.speculative_reads;
    counters_.speculative_bytes += static_cast<int64_t>(record.size());
  }
  const bool is_sound = status.ok() && container_.ParseRecord(layer, expert, record).ok();
  if (is_sound && table_.SlotOf(number) == kNone) {  // FillOne may have read it too
    table_.Fill(slot, number);
    is_guess_[slot] = 1;
  }
  EndGuess(slot);
}

void ExpertCache::EndGuess(int32_t slot) {
  std::erase(guesses_, slot);
  reads_[slot] = Read();
  table_.Release(slot);
}

// What the fetch that runs did not ask for. One that is being read completes, and is settled then.
void ExpertCache::DropStaleGuesses() {
  for (size_t i = guesses_.size(); i-- > 0;)
    if (reader_->Cancel(guesses_[i])) EndGuess(guesses_[i]);
}

void ExpertCache::CalibrateLanes() {
  const std::lock_guard<std::mutex> fetch(fetch_mutex_);
  const std::vector<LaneSpeed> speeds = MeasureLanes(container_, *reader_, memory_.bytes());
  reader_->LimitLanes(ChooseLanes(speeds));
}

ExpertCache::Filling ExpertCache::FillOne() {
  int32_t slot, number;
  {
    const std::unique_lock<std::mutex> fetch(fetch_mutex_, std::try_to_lock);
    if (!fetch.owns_lock() || MonotonicMicros() - last_fetch_us_ < kIdleUs) return Filling::kBusy;
    TakeInGuesses();
    number = NextToFill();
    if (number == kNone) return Filling::kDone;
    slot = table_.Take();
    is_guess_[slot] = 0;
    filling_ = true;
  }
  const auto [layer, expert] = numbers_.At(number);
  const auto record = RecordOf(layer, slot);
  Status status = container_.ReadRecord(layer, expert, record, options_.verify);
  if (status.ok()) status = container_.ParseRecord(layer, expert, record).status();
  const std::lock_guard<std::mutex> fetch(fetch_mutex_);
  // It may have been asked for, and read, meanwhile.
  const bool fill = status.ok() && table_.SlotOf(number) == kNone;
  if (fill) table_.Fill(slot, number);
  table_.Release(slot);
  filling_ = false;
  ApplyLimit();
  if (!status.ok()) {
    ++next_to_fill_;  // who asks for it will be told what is wrong with it
    return Filling::kBusy;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  counters_.bytes_read += static_cast<int64_t>(record.size());
  if (fill) ++counters_.filled;
  return Filling::kFilled;
}

// The first that is in no slot, if there is an empty one besides those that a fetch may need.
int32_t ExpertCache::NextToFill() {
  if (table_.idle() <= options_.max_experts + options_.max_expected || !table_.has_empty())
    return kNone;
  for (; next_to_fill_ < to_fill_.size(); ++next_to_fill_)
    if (table_.SlotOf(to_fill_[next_to_fill_]) == kNone) return to_fill_[next_to_fill_];
  return kNone;
}

void ExpertCache::Learn(const UsageLog& usage) {
  const std::lock_guard<std::mutex> fetch(fetch_mutex_);
  table_.SetSteps(static_cast<uint32_t>(std::min<uint64_t>(usage.tokens, UINT32_MAX / 2)));
  uint32_t most = 0;
  for (const UsageLog::Entry& entry : usage.entries) most = std::max(most, entry.hits);
  std::vector<std::pair<uint32_t, int32_t>> learned;  // hits, number
  for (const UsageLog::Entry& entry : usage.entries) {
    const int32_t number = numbers_.Find(entry.layer, entry.expert);
    if (number != kNone && entry.hits > 0) learned.emplace_back(entry.hits, number);
  }
  std::stable_sort(learned.begin(), learned.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  // Other engines count without decay: what matters is the share of the most used.
  std::vector<int32_t> first;
  for (const auto& [hits, number] : learned) {
    table_.SetCount(number, kLearnedShare * SlotTable::MaxCount() * hits / most);
    first.push_back(number);
  }
  // Those that all fit come behind; one that is named twice is skipped when it is in a slot.
  to_fill_.insert(to_fill_.begin(), first.begin(), first.end());
}

UsageLog ExpertCache::Usage() {
  const std::lock_guard<std::mutex> fetch(fetch_mutex_);
  UsageLog usage;
  usage.tokens = table_.steps();
  for (int32_t slot = 0; slot < table_.slot_count(); ++slot) {
    const int32_t number = table_.ExpertIn(slot);
    if (number == kNone) continue;
    const auto [layer, expert] = numbers_.At(number);
    const double count = std::ceil(table_.count_of(number) * kSavedUnit);
    usage.entries.push_back({static_cast<uint16_t>(layer), static_cast<uint16_t>(expert),
                             static_cast<uint32_t>(count), table_.last_step(number)});
  }
  return usage;
}

}  // namespace waste
