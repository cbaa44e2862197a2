// SPDX-License-Identifier: Apache-2.0
//
// What every block of a step computes with: the kernels, the threads, and scratch memory for each
// thread. Work is cut into pieces by its size in multiply-adds; what is too small to share runs on
// the caller. Which piece runs where changes nothing in the result. One step at a time; nothing
// here allocates once it is made.

#ifndef WASTE_CORE_MODEL_COMPUTE_H_
#define WASTE_CORE_MODEL_COMPUTE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/checked.h"
#include "kernels/kernels.h"
#include "parallel/thread_pool.h"

namespace waste {

// Most rows of a step that a block other than the experts works on at a time: enough for the
// kernels to be as fast as they get. A multiple of kDeltaChunk.
inline constexpr int64_t kTileRows = 256;

// Rows of f32 vectors, `stride` floats apart.
struct Rows {
  const float* data;
  int64_t stride;
  int64_t count;

  const float* row(int64_t r) const { return data + r * stride; }
  Rows Part(int64_t begin, int64_t part_count) const { return {row(begin), stride, part_count}; }
};

// y = W x for the rows of x that it is run with: y is [x.count, w->rows], y_stride floats apart.
struct Projection {
  const TrunkMatrix* w;
  float* y;
  int64_t y_stride;
};

// Rows [begin, end) of a matrix as a matrix of its own; `begin` of an expert's is a multiple of 64.
TrunkMatrix RowsOf(const TrunkMatrix& matrix, int64_t begin, int64_t end);
ExpertMatrix RowsOf(const ExpertMatrix& matrix, int64_t begin, int64_t end);

class Compute {
 public:
  // Most rows of a matrix that a body with an intermediate result takes at a time.
  static constexpr int64_t kBlock = 64;
  // Multiply-adds of a piece of work: some microseconds.
  static constexpr int64_t kPieceWork = int64_t{1} << 16;

  // Rows whose inputs are integers at a time: they stay in the second cache.
  static constexpr int64_t kSplitRows = 64;

  // Kernels take so many rows of a matrix at a time; with many inputs, tiles of them.
  static constexpr int64_t kRowStep = 4;
  static constexpr int64_t kManyInputs = 16, kManyRowStep = 16;
  // Rows of a piece when one takes `work`.
  static int64_t RowGrain(int64_t work, int64_t inputs);

  int32_t threads() const { return pool_.threads(); }
  // Most rows that a body which calls Split may have.
  int64_t most_rows() const { return split_ == nullptr ? kTileRows : kSplitRows; }

  // `scratch` is [pool.threads()] pieces of `scratch_bytes` each. `split` has room for the integers
  // of kSplitRows inputs of any projection; null, and all is multiplied in f32.
  Compute(const Kernels& table, ThreadPool& pool, uint8_t* scratch, int64_t scratch_bytes,
          uint8_t* split);

  const Kernels& kernels;

  // One thread's scratch, held as long as this lives. There are as many as threads: always one
  // free.
  class Scratch {
   public:
    explicit Scratch(Compute& compute);
    ~Scratch() { taken_->store(false, std::memory_order_release); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    uint8_t* memory() const { return memory_; }
    float* floats() const { return reinterpret_cast<float*>(memory_); }

   private:
    std::atomic<bool>* taken_ = nullptr;
    uint8_t* memory_ = nullptr;
  };

  // Calls body(begin, end) on pieces of [0, count); `work` is what one item takes.
  template <typename Body>
  void Parallel(int64_t count, int64_t work, const Body& body) {
    const int64_t grain = std::max<int64_t>(1, kPieceWork / std::max<int64_t>(work, 1));
    Run(count, grain, body);
  }
  // The same with pieces of `grain` items.
  template <typename Body>
  void Run(int64_t count, int64_t grain, const Body& body) {
    if (count <= grain) {
      if (count > 0) body(int64_t{0}, count);
    } else {
      pool_.Run(count, grain, std::cref(body));  // a reference: a closure might be allocated
    }
  }

  // All projections of the same input, in one parallel region.
  void Project(std::span<const Projection> projections, Rows x);

  // For bodies that multiply by themselves: x, at most most_rows(), in integers where that is
  // faster and allowed, else null; until the next call of this or Project.
  const uint8_t* Split(Rows x, int64_t columns);
  // The same in memory of the caller's, which has room for SplitBytes(columns) a row.
  const uint8_t* SplitInto(Rows x, int64_t columns, uint8_t* memory) const;
  // Rows [begin, end) of y = W x, with what Split gave for x. `scratch` holds RowsScratch floats.
  void Multiply(const TrunkMatrix& w, int64_t begin, int64_t end, Rows x, const uint8_t* split,
                float* y, int64_t y_stride, float* scratch) const;

 private:
  static bool TakesIntegers(const TrunkMatrix& w);
  // At most most_rows() rows; `y_row` is where the first one's results are.
  void ProjectSome(std::span<const Projection> projections, Rows x, int64_t y_row);
  struct alignas(64) Flag {
    std::atomic<bool> taken{false};
  };

  ThreadPool& pool_;
  uint8_t* scratch_;
  int64_t scratch_bytes_;
  uint8_t* split_;
  std::unique_ptr<Flag[]> flags_;  // [threads]
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_COMPUTE_H_
