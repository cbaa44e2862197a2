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
#include "kernels/word_input.h"
#include "parallel/thread_pool.h"

namespace waste {

// Most rows of a step that a block other than the experts works on at a time: enough for the
// kernels to be as fast as they get. A multiple of kDeltaChunk.
inline constexpr int64_t kTileRows = 256;

// Rows of f32 vectors, `stride` floats apart. Those of prompts, which come first, and those of
// tokens that are being written are multiplied by different kernels, whose results agree to the
// tolerance of fast arithmetic: so a row's bits do not depend on how many there are.
struct Rows {
  const float* data;
  int64_t stride;
  int64_t count;
  int64_t prompts;  // of them

  const float* row(int64_t r) const { return data + r * stride; }
  Rows Part(int64_t begin, int64_t part_count) const {
    return {row(begin), stride, part_count, std::clamp(prompts - begin, int64_t{0}, part_count)};
  }
  // Others of the same tokens.
  Rows At(const float* others, int64_t others_stride) const {
    return {others, others_stride, count, prompts};
  }
};

// The same in integers, where those are faster and allowed; else both are null.
struct RowIntegers {
  const uint8_t* split = nullptr;  // kernels/split_input.h
  TrunkInputs words = {};          // kernels/word_input.h
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
  static constexpr int64_t kSplitRows = 64, kWordRows = 128;
  // Memory that the integers of `count` rows take, or of as many as are made at a time.
  static int64_t IntegerBytes(int64_t columns, int64_t count);
  static int64_t IntegerBytes(int64_t columns);

  // Rows of a matrix in a piece for these inputs when one takes `work`.
  int64_t RowGrain(int64_t work, Rows x) const;

  int32_t threads() const { return pool_.threads(); }
  // How many rows of x, from the first on, a body may give to Integers: all of one kind.
  int64_t PieceRows(Rows x) const;

  // `scratch` is [pool.threads()] pieces of `scratch_bytes` each. `integers` is IntegerBytes of the
  // widest projection; null, and all is multiplied in f32.
  Compute(const Kernels& table, ThreadPool& pool, uint8_t* scratch, int64_t scratch_bytes,
          uint8_t* integers);

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

  // Calls body(begin, end) on parts of [0, count), in pieces that are worth sharing; `work` is what
  // one item takes.
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

  // Calls body(rows of x, number of the first) on pieces of x that may be given to Integers.
  template <typename Body>
  void InPieces(Rows x, const Body& body) const {
    for (int64_t row = 0; row < x.count;) {
      const Rows rest = x.Part(row, x.count - row);
      const Rows piece = rest.Part(0, PieceRows(rest));
      body(piece, row);
      row += piece.count;
    }
  }

  // All projections of the same input, in one parallel region for each piece of it.
  void Project(std::span<const Projection> projections, Rows x);

  // For bodies that multiply by themselves: x, at most PieceRows(x), in integers, until the next
  // call of this or Project.
  RowIntegers Integers(Rows x, int64_t columns);
  // The same in memory of the caller's, IntegerBytes(columns, x.count) of it.
  RowIntegers IntegersIn(uint8_t* memory, Rows x, int64_t columns) const;
  // Rows [begin, end) of y = W x, with x's integers. `scratch` holds RowsScratch floats.
  void Multiply(const TrunkMatrix& w, int64_t begin, int64_t end, Rows x,
                const RowIntegers& integers, float* y, int64_t y_stride, float* scratch) const;

 private:
  static bool TakesIntegers(const TrunkMatrix& w);
  bool TakesWords(Rows x) const { return integers_ != nullptr && x.prompts > 0; }
  // At most PieceRows(x); `y_row` is where the first one's results are.
  void ProjectSome(std::span<const Projection> projections, Rows x, int64_t y_row);
  struct alignas(64) Flag {
    std::atomic<bool> taken{false};
  };

  ThreadPool& pool_;
  uint8_t* scratch_;
  int64_t scratch_bytes_;
  uint8_t* integers_;
  std::unique_ptr<Flag[]> flags_;  // [threads]
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_COMPUTE_H_
