// SPDX-License-Identifier: Apache-2.0

#include "model/compute.h"

#include "base/check.h"
#include "kernels/split_input.h"

namespace waste {

TrunkMatrix RowsOf(const TrunkMatrix& matrix, int64_t begin, int64_t end) {
  TrunkMatrix part = matrix;
  part.rows = end - begin;
  part.payload = matrix.row(begin);
  part.scales = matrix.row_scales(begin);
  return part;
}

ExpertMatrix RowsOf(const ExpertMatrix& matrix, int64_t begin, int64_t end) {
  ExpertMatrix part = matrix;
  part.rows = end - begin;
  part.indices = matrix.indices + ExpertIndexBytes(matrix.codec, begin, matrix.columns);
  part.scales = matrix.scales + begin * 2;
  return part;
}

Compute::Compute(const Kernels& table, ThreadPool& pool, uint8_t* scratch, int64_t scratch_bytes,
                 uint8_t* integers)
    : kernels(table),
      pool_(pool),
      scratch_(scratch),
      scratch_bytes_(scratch_bytes),
      integers_(integers),
      flags_(new Flag[static_cast<size_t>(pool.threads())]) {}

Compute::Scratch::Scratch(Compute& compute) {
  while (taken_ == nullptr) {
    for (int32_t i = 0; i < compute.pool_.threads(); ++i) {
      std::atomic<bool>& taken = compute.flags_[i].taken;
      if (taken.load(std::memory_order_relaxed)) continue;
      if (taken.exchange(true, std::memory_order_acquire)) continue;
      taken_ = &taken;
      memory_ = compute.scratch_ + i * compute.scratch_bytes_;
      return;
    }
  }
}

int64_t Compute::IntegerBytes(int64_t columns, int64_t count) {
  const int64_t words = TrunkInputs::Floats(count, columns) * static_cast<int64_t>(sizeof(float));
  return std::max(count * SplitBytes(columns), words);
}

int64_t Compute::IntegerBytes(int64_t columns) {
  const int64_t words =
      TrunkInputs::Floats(kWordRows, columns) * static_cast<int64_t>(sizeof(float));
  return std::max(kSplitRows * SplitBytes(columns), words);
}

// Kernels take so many rows of a matrix at a time; with many inputs, tiles of them.
int64_t Compute::RowGrain(int64_t work, Rows x) const {
  constexpr int64_t kRowStep = 4, kManyInputs = 16, kManyRowStep = 16, kWordRowStep = 64;
  const int64_t least = TakesWords(x)           ? kWordRowStep
                        : x.count < kManyInputs ? kRowStep
                                                : kManyRowStep;
  return RoundUp(std::max<int64_t>(1, kPieceWork / std::max<int64_t>(work, 1)), least);
}

int64_t Compute::PieceRows(Rows x) const {
  if (TakesWords(x)) return std::min(x.prompts, kWordRows);
  return std::min(x.count, integers_ == nullptr ? kTileRows : kSplitRows);
}

bool Compute::TakesIntegers(const TrunkMatrix& w) {
  return w.format == TrunkFormat::kQ4G || w.format == TrunkFormat::kQ8G;
}

RowIntegers Compute::Integers(Rows x, int64_t columns) {
  WASTE_CHECK(x.count <= PieceRows(x));
  return IntegersIn(integers_, x, columns);
}

RowIntegers Compute::IntegersIn(uint8_t* memory, Rows x, int64_t columns) const {
  if (integers_ == nullptr) return {};
  if (!TakesWords(x)) {
    for (int64_t r = 0; r < x.count; ++r)
      kernels.split_input(x.row(r), columns, memory + r * SplitBytes(columns));
    return {.split = memory};
  }
  WASTE_CHECK(x.prompts == x.count);
  const TrunkInputs words = TrunkInputs::In(reinterpret_cast<float*>(memory), x.count, columns);
  for (int64_t r = 0; r < x.count; ++r)
    kernels.round_trunk_input(x.row(r), columns, words.At(r, 0).integers, words.At(r, 0).scales);
  return {.words = words};
}

void Compute::Multiply(const TrunkMatrix& w, int64_t begin, int64_t end, Rows x,
                       const RowIntegers& integers, float* y, int64_t y_stride,
                       float* scratch) const {
  if (TakesIntegers(w) && integers.words.integers != nullptr)
    return kernels.trunk_words(w, begin, end, integers.words, x.count, y, y_stride, scratch);
  if (TakesIntegers(w) && integers.split != nullptr)
    return kernels.split_rows(w, begin, end, integers.split, x.count, y, y_stride);
  kernels.trunk_rows(w, begin, end, x.data, x.stride, x.count, y, y_stride, scratch);
}

void Compute::Project(std::span<const Projection> projections, Rows x) {
  InPieces(x, [&](Rows piece, int64_t row) { ProjectSome(projections, piece, row); });
}

void Compute::ProjectSome(std::span<const Projection> projections, Rows x, int64_t y_row) {
  if (projections.empty()) return;
  const int64_t columns = projections.front().w->columns;
  int64_t rows = 0;
  bool takes_integers = false;
  for (const Projection& projection : projections) {
    WASTE_CHECK(projection.w->columns == columns);
    rows += projection.w->rows;
    takes_integers = takes_integers || TakesIntegers(*projection.w);
  }
  const int64_t grain = RowGrain(columns * x.count, x);
  const RowIntegers integers = takes_integers ? Integers(x, columns) : RowIntegers();
  Run(rows, grain, [&](int64_t begin, int64_t end) {
    const Scratch scratch(*this);
    int64_t first = 0;  // row of this projection in the sequence of all
    for (const Projection& projection : projections) {
      const TrunkMatrix& w = *projection.w;
      const int64_t from = std::max(begin - first, int64_t{0});
      const int64_t to = std::min(end - first, w.rows);
      if (from < to)
        Multiply(w, from, to, x, integers, projection.y + y_row * projection.y_stride,
                 projection.y_stride, scratch.floats());
      first += w.rows;
    }
  });
}

}  // namespace waste
