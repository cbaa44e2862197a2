// SPDX-License-Identifier: Apache-2.0
//
// One buffer holds it all: [half 0 | half 1 | latent caches | snapshots]. A half is the recurrent
// state of every KDA layer in order, each its S and then its convolutions; a snapshot is a copy of
// a half. Layout computes the offsets once, for Bytes and for Create alike.

#include "model/state.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "base/checked.h"

namespace waste {
namespace {

constexpr int64_t kSnapshotBudget = int64_t{256} << 20;  // bytes
constexpr int64_t kLine = 16;                            // floats of a cache line

int64_t StateFloats(const KdaConfig& kda) { return kda.width() * kda.head_dim; }
int64_t ConvFloats(const KdaConfig& kda) { return 3 * kda.width() * (kda.conv_size - 1); }

// Floats of one half, and of all latent caches.
struct Totals {
  int64_t recurrent = 0;
  int64_t latent = 0;
};

Totals CountFloats(const ModelConfig& config, int64_t context) {
  Totals totals;
  for (const AttentionKind kind : config.attention) {
    if (kind == AttentionKind::kKda)
      totals.recurrent += RoundUp(StateFloats(config.kda) + ConvFloats(config.kda), kLine);
    else
      totals.latent += RoundUp(context * config.mla.cache_width(), kLine);
  }
  return totals;
}

void StoreFloats(std::span<const float> from, uint8_t*& to) {
  for (const float value : from) {
    StoreLittle(to, std::bit_cast<uint32_t>(value), 4);
    to += 4;
  }
}

void LoadFloats(const uint8_t*& from, std::span<float> to) {
  for (float& value : to) {
    value = std::bit_cast<float>(static_cast<uint32_t>(LoadLittle(from, 4)));
    from += 4;
  }
}

}  // namespace

int64_t SessionState::SnapshotCount(const ModelConfig& config, int64_t context) {
  const int64_t bytes = CountFloats(config, context).recurrent * 4;
  if (bytes == 0) return 0;  // a latent cache is cut anywhere
  const int64_t affordable = std::max<int64_t>(1, kSnapshotBudget / bytes);
  return std::min(affordable, context / kSnapshotEvery);
}

int64_t SessionState::Bytes(const ModelConfig& config, int64_t context) {
  const Totals totals = CountFloats(config, context);
  const int64_t copies = 2 + SnapshotCount(config, context);
  return (copies * totals.recurrent + totals.latent) * 4;
}

Result<std::unique_ptr<SessionState>> SessionState::Create(const ModelConfig& config,
                                                           int64_t context) {
  if (context < 1 || context > INT32_MAX)
    return Failure(Code::kArgument, "a session of ", context, " tokens; 1 to ", INT32_MAX,
                   " are possible");
  std::unique_ptr<SessionState> state(new SessionState(config, context));
  WASTE_ASSIGN(state->memory_, AlignedBuffer::AllocateHuge(Bytes(config, context)));
  const Totals totals = CountFloats(config, context);
  float* snapshots = state->memory_.floats() + 2 * totals.recurrent + totals.latent;
  for (Snapshot& snapshot : state->snapshots_) {
    snapshot.floats = snapshots;
    snapshots += totals.recurrent;
  }
  return state;
}

SessionState::SessionState(const ModelConfig& config, int64_t context)
    : config_(config), context_(context) {
  int64_t latent = 0;
  for (const AttentionKind kind : config.attention) {
    const bool is_kda = kind == AttentionKind::kKda;
    layer_offset_.push_back(is_kda ? recurrent_floats_ : latent);
    if (is_kda)
      recurrent_floats_ += RoundUp(StateFloats(config.kda) + ConvFloats(config.kda), kLine);
    else
      latent += RoundUp(context * config.mla.cache_width(), kLine);
  }
  snapshots_.resize(static_cast<size_t>(SnapshotCount(config, context)));
}

float* SessionState::half(int32_t side) { return memory_.floats() + side * recurrent_floats_; }

const float* SessionState::half(int32_t side) const {
  return memory_.floats() + side * recurrent_floats_;
}

SessionState::Kda SessionState::KdaOf(int32_t side, int64_t layer) {
  WASTE_CHECK(config_.attention[layer] == AttentionKind::kKda);
  float* state = half(side) + layer_offset_[layer];
  return {state, state + StateFloats(config_.kda)};
}

SessionState::Kda SessionState::current(int64_t layer) { return KdaOf(side_, layer); }

SessionState::Kda SessionState::next(int64_t layer) { return KdaOf(1 - side_, layer); }

float* SessionState::latent(int64_t layer) {
  WASTE_CHECK(config_.attention[layer] == AttentionKind::kMla);
  return memory_.floats() + 2 * recurrent_floats_ + layer_offset_[layer];
}

const float* SessionState::latent(int64_t layer) const {
  return memory_.floats() + 2 * recurrent_floats_ + layer_offset_[layer];
}

void SessionState::Commit(int64_t rows) {
  WASTE_CHECK(rows >= 0 && position_ + rows <= context_);
  side_ = 1 - side_;
  position_ += rows;
  TakeSnapshotIfDue();
}

// Due once kSnapshotEvery positions lie behind the newest one. The oldest makes room: a
// conversation is taken back near its end.
void SessionState::TakeSnapshotIfDue() {
  if (snapshots_.empty()) return;
  int64_t newest = 0;
  Snapshot* oldest = &snapshots_.front();
  for (Snapshot& snapshot : snapshots_) {
    newest = std::max(newest, snapshot.position);
    if (snapshot.position < oldest->position) oldest = &snapshot;
  }
  if (position_ < newest + kSnapshotEvery) return;
  std::copy_n(half(side_), recurrent_floats_, oldest->floats);
  oldest->position = position_;
}

void SessionState::Reset() {
  std::fill_n(half(side_), recurrent_floats_, 0.0f);
  DropSnapshotsBehind(0);
  position_ = 0;
}

void SessionState::DropSnapshotsBehind(int64_t position) {
  for (Snapshot& snapshot : snapshots_)
    if (snapshot.position > position) snapshot.position = -1;
}

int64_t SessionState::RewindTo(int64_t position) {
  WASTE_CHECK(position >= 0);
  if (position >= position_) return position_;
  if (recurrent_floats_ == 0) return position_ = position;
  DropSnapshotsBehind(position);
  const Snapshot* newest = nullptr;
  for (const Snapshot& snapshot : snapshots_) {
    if (snapshot.position < 0) continue;
    if (newest == nullptr || snapshot.position > newest->position) newest = &snapshot;
  }
  if (newest == nullptr) {
    Reset();
  } else {
    std::copy_n(newest->floats, recurrent_floats_, half(side_));
    position_ = newest->position;
  }
  return position_;
}

void SessionState::CopyFrom(const SessionState& other) {
  WASTE_CHECK(other.recurrent_floats_ == recurrent_floats_ && other.position_ <= context_);
  if (&other == this) return;
  std::copy_n(other.half(other.side_), recurrent_floats_, half(side_));
  const int64_t floats = other.position_ * config_.mla.cache_width();
  for (int64_t layer = 0; layer < config_.layers; ++layer)
    if (config_.attention[layer] == AttentionKind::kMla)
      std::copy_n(other.latent(layer), floats, latent(layer));
  position_ = other.position_;
  CopySnapshotsFrom(other);
}

// As many of the newest as there is room for: contexts may differ, and with them the counts.
void SessionState::CopySnapshotsFrom(const SessionState& other) {
  DropSnapshotsBehind(-1);
  std::vector<const Snapshot*> newest_first;
  for (const Snapshot& snapshot : other.snapshots_)
    if (snapshot.position >= 0) newest_first.push_back(&snapshot);
  std::sort(newest_first.begin(), newest_first.end(),
            [](const Snapshot* a, const Snapshot* b) { return a->position > b->position; });
  const size_t count = std::min(newest_first.size(), snapshots_.size());
  for (size_t i = 0; i < count; ++i) {
    std::copy_n(newest_first[i]->floats, recurrent_floats_, snapshots_[i].floats);
    snapshots_[i].position = newest_first[i]->position;
  }
}

int64_t SessionState::SavedBytesAt(int64_t position) const {
  int64_t floats = 0;
  for (const AttentionKind kind : config_.attention) {
    floats += kind == AttentionKind::kKda ? StateFloats(config_.kda) + ConvFloats(config_.kda)
                                          : position * config_.mla.cache_width();
  }
  return floats * 4;
}

int64_t SessionState::SavedBytes() const { return SavedBytesAt(position_); }

void SessionState::SaveTo(std::span<uint8_t> out) const {
  WASTE_CHECK(static_cast<int64_t>(out.size()) == SavedBytes());
  uint8_t* to = out.data();
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    if (config_.attention[layer] == AttentionKind::kKda) {
      const int64_t floats = StateFloats(config_.kda) + ConvFloats(config_.kda);
      StoreFloats({half(side_) + layer_offset_[layer], static_cast<size_t>(floats)}, to);
    } else {
      const int64_t floats = position_ * config_.mla.cache_width();
      StoreFloats({latent(layer), static_cast<size_t>(floats)}, to);
    }
  }
}

Status SessionState::LoadFrom(std::span<const uint8_t> bytes, int64_t position) {
  if (position < 0 || position > context_)
    return Failure(Code::kCorrupt, "saved session at position ", position,
                   "; this session holds 0 to ", context_);
  if (static_cast<int64_t>(bytes.size()) != SavedBytesAt(position))
    return Failure(Code::kCorrupt, "saved session of ", bytes.size(), " bytes; position ", position,
                   " of this model takes ", SavedBytesAt(position));
  const uint8_t* from = bytes.data();
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    if (config_.attention[layer] == AttentionKind::kKda) {
      const int64_t floats = StateFloats(config_.kda) + ConvFloats(config_.kda);
      LoadFloats(from, {half(side_) + layer_offset_[layer], static_cast<size_t>(floats)});
    } else {
      const int64_t floats = position * config_.mla.cache_width();
      LoadFloats(from, {latent(layer), static_cast<size_t>(floats)});
    }
  }
  DropSnapshotsBehind(-1);
  position_ = position;
  return Status();
}

}  // namespace waste
