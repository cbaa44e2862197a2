// SPDX-License-Identifier: Apache-2.0
//
// One timeline: for each KDA layer the recurrent state S [heads, keys, values] and the last inputs
// of the convolutions, for each MLA layer the latent cache [context, kv_lora + rope]. KDA state
// exists twice, `current` and `next`: a step reads current and writes next, and Commit swaps them,
// so a step that fails or is cancelled in the middle has changed nothing. The latent cache is
// appended behind position and counts only once committed. A whole context is reserved when
// created; its pages are touched as they are used. One thread at a time.

#ifndef WASTE_CORE_MODEL_STATE_H_
#define WASTE_CORE_MODEL_STATE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "model/config.h"

namespace waste {

class SessionState {
 public:
  // Positions between snapshots that rewind can start from.
  static constexpr int64_t kSnapshotEvery = 256;

  // Bytes that Create will reserve, snapshots included.
  static int64_t Bytes(const ModelConfig& config, int64_t context);
  // How many snapshots a session keeps: as many as fit 256 MiB, at least one, and no more than the
  // context has room for.
  static int64_t SnapshotCount(const ModelConfig& config, int64_t context);
  static Result<std::unique_ptr<SessionState>> Create(const ModelConfig& config, int64_t context);

  int64_t position() const { return position_; }
  int64_t context() const { return context_; }

  struct Kda {
    float* state;  // [heads, head_dim, head_dim]
    float* conv;   // q, k, v: each [width, conv_size - 1], oldest first
  };
  Kda current(int64_t layer);    // of a KDA layer; what the step reads
  Kda next(int64_t layer);       // what it writes
  float* latent(int64_t layer);  // of an MLA layer: [context, cache_width]

  // The step is done: `rows` more positions are held. Takes a snapshot when one is due.
  void Commit(int64_t rows);
  void Reset();
  // Goes back to the newest snapshot (or the empty state) at or before `position` and returns where
  // that is; the caller runs the tokens between again.
  int64_t RewindTo(int64_t position);
  // Becomes a copy of `other`, which has the same config and a position that fits.
  void CopyFrom(const SessionState& other);

  // Everything committed, for a saved session: size, then bytes (little-endian f32). Load leaves
  // snapshots empty and refuses another size with kCorrupt.
  int64_t SavedBytes() const;
  void SaveTo(std::span<uint8_t> out) const;
  Status LoadFrom(std::span<const uint8_t> bytes, int64_t position);

 private:
  struct Snapshot {
    int64_t position = -1;    // none yet
    float* floats = nullptr;  // all KDA layers: state, then conv
  };

  SessionState(const ModelConfig& config, int64_t context);

  float* half(int32_t side);
  const float* half(int32_t side) const;
  const float* latent(int64_t layer) const;
  Kda KdaOf(int32_t side, int64_t layer);
  int64_t SavedBytesAt(int64_t position) const;
  void TakeSnapshotIfDue();
  void DropSnapshotsBehind(int64_t position);
  void CopySnapshotsFrom(const SessionState& other);

  ModelConfig config_;
  int64_t context_ = 0;
  int64_t position_ = 0;
  int32_t side_ = 0;                   // which half is current
  int64_t recurrent_floats_ = 0;       // of one half
  std::vector<int64_t> layer_offset_;  // of a layer inside a half, or inside the latent caches
  std::vector<Snapshot> snapshots_;
  AlignedBuffer memory_;
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_STATE_H_
