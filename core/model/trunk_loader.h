// SPDX-License-Identifier: Apache-2.0
//
// Brings trunk tensors into one buffer, each checked against the shape that the model needs of it.
// Used twice with the same calls: without a buffer it checks and counts, with one it reads. What is
// kept packed is only given its place at first, and read in the end by many threads at once. The
// first error stays, and everything after it does nothing. One thread calls; Weights is its only
// user.

#ifndef WASTE_CORE_MODEL_TRUNK_LOADER_H_
#define WASTE_CORE_MODEL_TRUNK_LOADER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "container/container.h"
#include "model/arena.h"
#include "parallel/thread_pool.h"

namespace waste {

class TrunkLoader {
 public:
  // Checks and counts.
  explicit TrunkLoader(const Container& container) : container_(container) {}
  // Reads into `memory`, of which the first `staging_bytes` are for tensors on their way.
  TrunkLoader(const Container& container, uint8_t* memory, int64_t staging_bytes,
              Progress& progress);

  const Status& status() const { return status_; }
  int64_t held_bytes() const { return arena_.peak_bytes(); }  // of all tensors, as they are kept
  int64_t staging_bytes() const { return staging_bytes_; }    // of the largest one not kept packed
  int64_t file_bytes() const { return file_bytes_; }          // that are read

  bool Has(const std::string& name) const {
    return container_.manifest().FindTrunk(name) != nullptr;
  }
  // The tensor's entry if it is there and [rows, columns], else null and an error.
  const TrunkEntry* Entry(const std::string& name, int64_t rows, int64_t columns);
  // Kept packed, as it lies on disk. Holds what it should after ReadMatrices.
  TrunkMatrix Matrix(const std::string& name, int64_t rows, int64_t columns);
  // Only passing through, until the next call: for what is derived from it.
  TrunkMatrix Staged(const std::string& name, int64_t rows, int64_t columns);
  // As f32 values that are all finite; any shape of `count` values.
  float* Vector(const std::string& name, int64_t count);
  // The first `count` values, all finite, of a tensor that may be padded.
  float* PaddedVector(const std::string& name, int64_t count);
  // Of a matrix that passes through, `rows` rows out of every `step`, from row `first` on, kept
  // packed.
  TrunkMatrix RowsOfEach(const TrunkMatrix& staged, int64_t first, int64_t rows, int64_t step);
  // f32 memory for what is derived.
  float* Floats(int64_t count) { return arena_.Floats(count); }

  // Reads all matrices asked for, in pieces, with the threads of `pool` (null: this one).
  void ReadMatrices(ThreadPool* pool);

  // Whether memory is there to be filled.
  bool reading() const { return progress_ != nullptr && status_.ok(); }
  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

 private:
  const TrunkEntry* Find(const std::string& name);
  // A part of a tensor and where it goes.
  struct Piece {
    const TrunkEntry* entry;
    int64_t from;
    std::span<uint8_t> to;
  };

  // The entry's bytes at `to`, null while counting; `pieces` get what is to be read for that.
  TrunkMatrix Place(const TrunkEntry& entry, uint8_t* to, std::vector<Piece>& pieces);
  Status ReadPiece(const Piece& piece);
  TrunkMatrix Stage(const TrunkEntry& entry);
  float* Values(const TrunkEntry& entry, int64_t checked);

  const Container& container_;
  Arena arena_;
  uint8_t* staging_ = nullptr;
  int64_t staging_bytes_ = 0;
  int64_t file_bytes_ = 0;
  std::vector<Piece> matrices_;
  Progress* progress_ = nullptr;  // null while counting
  Status status_;
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_TRUNK_LOADER_H_
