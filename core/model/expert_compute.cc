// SPDX-License-Identifier: Apache-2.0

#include "model/expert_compute.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/primitives.h"

namespace waste {
namespace {

int64_t InputFloats(const ExpertPlan& plan, int64_t slots, int64_t columns) {
  return plan.words ? ExpertInputs::Floats(slots, columns) : slots * columns;
}

}  // namespace

ExpertScratch ExpertScratch::Plan(Arena& arena, const ModelConfig& config, const ExpertPlan& plan,
                                  int64_t slots) {
  const int64_t inner = config.moe.inner, outer = config.expert_outer();
  ExpertScratch scratch = {.slots = slots,
                           .gathered = arena.Floats(InputFloats(plan, slots, outer)),
                           .inner = arena.Floats(InputFloats(plan, slots, inner)),
                           .down = arena.Floats(slots * outer),
                           .tables = {}};
  if (plan.tables && config.moe.experts > 0)
    scratch.tables = TableScratch::Plan(arena, config, plan.codec);
  return scratch;
}

int64_t ExpertScratch::ThreadBytes(const ModelConfig& config, const ExpertPlan& plan,
                                   int64_t slots) {
  Arena arena;
  arena.Floats(RowsScratch(std::max(config.moe.inner, config.expert_outer())));
  for (int i = 0; i < 2; ++i) arena.Floats(slots * kIndexBlock);  // of gate and up
  return std::max(arena.peak_bytes(),
                  plan.tables ? TableScratch::ThreadBytes(config, plan.codec) : 0);
}

ExpertCompute::ExpertCompute(Compute& compute, const ModelConfig& config, const ExpertPlan& plan,
                             const ExpertScratch& scratch)
    : compute_(compute),
      config_(config),
      s_(scratch),
      has_tables_(plan.tables && config.moe.experts > 0),
      words_(plan.words),
      outer_(InputsIn(scratch.gathered, config.expert_outer())),
      inner_(InputsIn(scratch.inner, config.moe.inner)),
      tables_(compute, config, plan.codec, scratch.tables) {}

void ExpertCompute::Run(std::span<const ExpertTile> tiles, Rows tables_of,
                        int64_t first_table_row) {
  Multiply(tiles);
  LookUp(tiles, tables_of, first_table_row);
}

void ExpertCompute::Multiply(std::span<const ExpertTile> tiles) {
  int64_t rows_max = 0;
  for (const ExpertTile& tile : tiles) rows_max = std::max(rows_max, tile.rows - tile.table_rows);
  if (rows_max == 0) return;
  GateAndUp(tiles, rows_max);
  Down(tiles, rows_max);
}

void ExpertCompute::LookUp(std::span<const ExpertTile> tiles, Rows tables_of,
                           int64_t first_table_row) {
  std::array<TablePair, TableScratch::kPairs> pairs;
  size_t count = 0;
  const auto run = [&] {
    if (count > 0) tables_.Run(std::span(pairs).first(std::exchange(count, 0)), tables_of);
  };
  for (const ExpertTile& tile : tiles)
    for (int64_t i = 0; i < tile.table_rows; ++i) {
      const int64_t slot = tile.slot + tile.rows - tile.table_rows + i;
      const bool same_books =
          count == 0 || (pairs[0].record->gate.books[0] == tile.record->gate.books[0] &&
                         pairs[0].record->up.books[0] == tile.record->up.books[0]);
      if (count == pairs.size() || !same_books) run();
      pairs[count++] = {tile.record, tile.table_row[i] - first_table_row,
                        s_.down + slot * config_.expert_outer()};
    }
  run();
}

ExpertCompute::Inputs ExpertCompute::InputsIn(float* memory, int64_t columns) const {
  const auto words = words_ ? ExpertInputs::In(memory, s_.slots, columns) : ExpertInputs();
  return {memory, words, columns};
}

// `column` is a multiple of kIndexBlock, and so of blocks of words.
void ExpertCompute::Put(const Inputs& inputs, int64_t slot, int64_t column, const float* values,
                        int64_t count) {
  static_assert(kIndexBlock % ExpertInputs::kBlock == 0);
  if (!words_) {
    std::copy_n(values, count, inputs.floats + slot * inputs.columns + column);
    return;
  }
  const ExpertInputs to = inputs.words.At(slot, column / ExpertInputs::kBlock);
  compute_.kernels.round_expert_input(values, count, to.integers, to.scales);
}

void ExpertCompute::Apply(const ExpertMatrix& w, int64_t begin, int64_t end, const Inputs& inputs,
                          int64_t slot, int64_t rows, float* y, int64_t y_stride,
                          float* scratch) const {
  if (words_)
    compute_.kernels.expert_words(w, begin, end, inputs.words.At(slot, 0), rows, y, y_stride,
                                  scratch);
  else
    compute_.kernels.expert_rows(w, begin, end, inputs.floats + slot * inputs.columns,
                                 inputs.columns, rows, y, y_stride, scratch);
}

void ExpertCompute::Gather(Rows z, std::span<const int32_t> rows, int64_t first_table_row) {
  compute_.Parallel(std::ssize(rows), outer_.columns, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      const int64_t row = rows[static_cast<size_t>(slot)];
      if (row < first_table_row) Put(outer_, slot, 0, z.row(row), outer_.columns);
    }
  });
}

// inner = act(W_gate z, W_up z), a piece being 64 rows of one expert's matrices.
void ExpertCompute::GateAndUp(std::span<const ExpertTile> tiles, int64_t rows_max) {
  const int64_t inner = config_.moe.inner, outer = config_.expert_outer();
  const int64_t blocks = CeilDivide(inner, kIndexBlock);
  const int64_t work = 2 * kIndexBlock * outer * rows_max;
  compute_.Parallel(std::ssize(tiles) * blocks, work, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute_);
    Arena arena(thread.memory());
    float* const kernel_scratch = arena.Floats(RowsScratch(outer));
    float* const gate = arena.Floats(rows_max * kIndexBlock);  // [rows, 64]
    float* const up = arena.Floats(rows_max * kIndexBlock);    // [rows, 64]
    for (int64_t item = begin; item < end; ++item) {
      const ExpertTile& tile = tiles[static_cast<size_t>(item / blocks)];
      const int64_t rows = tile.rows - tile.table_rows;
      if (rows == 0) continue;
      const int64_t r = item % blocks * kIndexBlock, n = std::min(inner - r, kIndexBlock);
      Apply(RowsOf(tile.record->gate, r, r + n), 0, n, outer_, tile.slot, rows, gate, kIndexBlock,
            kernel_scratch);
      Apply(RowsOf(tile.record->up, r, r + n), 0, n, outer_, tile.slot, rows, up, kIndexBlock,
            kernel_scratch);
      for (int64_t i = 0; i < rows; ++i) {
        float* const values = gate + i * kIndexBlock;
        Activate(compute_.kernels, config_, values, up + i * kIndexBlock, n);
        Put(inner_, tile.slot + i, r, values, n);
      }
    }
  });
}

// down = W_down inner, a piece being 64 rows of one expert's matrix.
void ExpertCompute::Down(std::span<const ExpertTile> tiles, int64_t rows_max) {
  const int64_t inner = config_.moe.inner, outer = config_.expert_outer();
  const int64_t blocks = CeilDivide(outer, kIndexBlock);
  const int64_t work = kIndexBlock * inner * rows_max;
  compute_.Parallel(std::ssize(tiles) * blocks, work, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute_);
    for (int64_t item = begin; item < end; ++item) {
      const ExpertTile& tile = tiles[static_cast<size_t>(item / blocks)];
      const int64_t rows = tile.rows - tile.table_rows;
      if (rows == 0) continue;
      const int64_t r = item % blocks * kIndexBlock, n = std::min(outer - r, kIndexBlock);
      Apply(tile.record->down, r, r + n, inner_, tile.slot, rows, s_.down + tile.slot * outer,
            outer, thread.floats());
    }
  });
}

}  // namespace waste
