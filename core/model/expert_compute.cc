// SPDX-License-Identifier: Apache-2.0

#include "model/expert_compute.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/primitives.h"

namespace waste {
ExpertScratch ExpertScratch::Plan(Arena& arena, const ModelConfig& config, const ExpertPlan& plan,
                                  int64_t slots) {
  const int64_t inner = config.moe.inner, outer = config.expert_outer();
  ExpertScratch scratch = {.gathered = arena.Floats(slots * outer),
                           .inner = arena.Floats(slots * inner),
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
  arena.Floats(slots * kIndexBlock);  // of up
  return std::max(arena.peak_bytes(),
                  plan.tables ? TableScratch::ThreadBytes(config, plan.codec) : 0);
}

ExpertCompute::ExpertCompute(Compute& compute, const ModelConfig& config, const ExpertPlan& plan,
                             const ExpertScratch& scratch)
    : compute_(compute),
      config_(config),
      s_(scratch),
      has_tables_(plan.tables && config.moe.experts > 0),
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

// inner = act(W_gate z, W_up z), a piece being 64 rows of one expert's matrices.
void ExpertCompute::GateAndUp(std::span<const ExpertTile> tiles, int64_t rows_max) {
  const int64_t inner = config_.moe.inner, outer = config_.expert_outer();
  const int64_t blocks = CeilDivide(inner, kIndexBlock);
  const int64_t work = 2 * kIndexBlock * outer * rows_max;
  compute_.Parallel(std::ssize(tiles) * blocks, work, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute_);
    Arena arena(thread.memory());
    float* kernel_scratch = arena.Floats(RowsScratch(outer));
    float* up = arena.Floats(rows_max * kIndexBlock);  // [rows, 64]
    for (int64_t item = begin; item < end; ++item) {
      const ExpertTile& tile = tiles[static_cast<size_t>(item / blocks)];
      const int64_t rows = tile.rows - tile.table_rows;
      if (rows == 0) continue;
      const int64_t r = item % blocks * kIndexBlock, n = std::min(inner - r, kIndexBlock);
      const float* input = s_.gathered + tile.slot * outer;
      float* gate = s_.inner + tile.slot * inner;
      compute_.kernels.expert_rows(tile.record->gate, r, r + n, input, outer, rows, gate, inner,
                                   kernel_scratch);
      compute_.kernels.expert_rows(RowsOf(tile.record->up, r, r + n), 0, n, input, outer, rows, up,
                                   kIndexBlock, kernel_scratch);
      for (int64_t i = 0; i < rows; ++i)
        Activate(compute_.kernels, config_, gate + i * inner + r, up + i * kIndexBlock, n);
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
      compute_.kernels.expert_rows(tile.record->down, r, r + n, s_.inner + tile.slot * inner, inner,
                                   rows, s_.down + tile.slot * outer, outer, thread.floats());
    }
  });
}

}  // namespace waste
