// SPDX-License-Identifier: Apache-2.0

#include "model/expert_compute.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/expert_tables.h"
#include "model/primitives.h"

namespace waste {
namespace {

// Rows of a matrix that one thread looks up at a time, at least: long enough to pay for loading the
// tables, which are as large as the indices of 512 rows; and at most.
constexpr int64_t kLeastPiece = 512, kMostPiece = 4096;

// As long as leaves two pieces or so for each thread.
int64_t PieceOf(int64_t rows, int64_t pairs, int64_t threads) {
  const int64_t parts = CeilDivide(2 * threads, pairs);
  return std::clamp(RoundUp(CeilDivide(rows, parts), kIndexBlock), kLeastPiece, kMostPiece);
}

}  // namespace

struct ExpertCompute::Pair {
  const ExpertRecord* record;
  int64_t row;  // among those that are looked up
  int64_t slot;
};

ExpertScratch ExpertScratch::Plan(Arena& arena, const ModelConfig& config, const ExpertPlan& plan,
                                  int64_t slots) {
  const int64_t inner = config.moe.inner, outer = config.expert_outer();
  const int64_t tables = plan.tables && config.moe.experts > 0 ? 1 : 0;
  return {.gathered = arena.Floats(slots * outer),
          .inner = arena.Floats(slots * inner),
          .down = arena.Floats(slots * outer),
          .input_tables = arena.Bytes(tables * kTableRows * 2 * TableBytes(plan.codec, outer)),
          .inner_tables = arena.Bytes(tables * kTablePairs * TableBytes(plan.codec, inner))};
}

int64_t ExpertScratch::ThreadBytes(const ModelConfig& config, int64_t slots) {
  Arena arena;
  arena.Floats(RowsScratch(std::max(config.moe.inner, config.expert_outer())));
  arena.Floats(slots * kIndexBlock);  // of up
  const int64_t multiplied = arena.peak_bytes();
  Arena tables;
  tables.Floats(std::max(kTableScratch, kMostPiece));
  return std::max(multiplied, tables.peak_bytes());
}

ExpertCompute::ExpertCompute(Compute& compute, const ModelConfig& config, const ExpertPlan& plan,
                             const ExpertScratch& scratch)
    : compute_(compute),
      config_(config),
      plan_(plan),
      s_(scratch),
      input_table_bytes_(TableBytes(plan.codec, config.expert_outer())),
      inner_table_bytes_(TableBytes(plan.codec, config.moe.inner)) {}

void ExpertCompute::Run(std::span<const ExpertTile> tiles, Rows tables_of,
                        int64_t first_table_row) {
  int64_t rows_max = 0;
  for (const ExpertTile& tile : tiles) rows_max = std::max(rows_max, tile.rows - tile.table_rows);
  if (rows_max > 0) {
    GateAndUp(tiles, rows_max);
    Down(tiles, rows_max);
  }
  std::array<Pair, ExpertScratch::kTablePairs> pairs;
  size_t count = 0;
  for (const ExpertTile& tile : tiles)
    for (int64_t i = 0; i < tile.table_rows; ++i) {
      const Pair pair{tile.record, tile.table_row[i] - first_table_row,
                      tile.slot + tile.rows - tile.table_rows + i};
      const bool same_books =
          count == 0 || (pairs[0].record->gate.books[0] == pair.record->gate.books[0] &&
                         pairs[0].record->up.books[0] == pair.record->up.books[0]);
      if (count == pairs.size() || !same_books) {
        RunTables(std::span(pairs).first(count), tables_of);
        count = 0;
      }
      pairs[count++] = pair;
    }
  if (count > 0) RunTables(std::span(pairs).first(count), tables_of);
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

// At most kTablePairs pairs, whose records share their books.
void ExpertCompute::RunTables(std::span<const Pair> pairs, Rows tables_of) {
  const ExpertRecord& record = *pairs.front().record;
  if (table_books_[0] != record.gate.books[0] || table_books_[1] != record.up.books[0])
    BuildInputTables(record, tables_of);
  GateAndUpByTables(pairs);
  BuildInnerTables(pairs);
  DownByTables(pairs);
}

uint8_t* ExpertCompute::InputTables(int64_t row, int64_t matrix) const {
  return s_.input_tables + (2 * row + matrix) * input_table_bytes_;
}

void ExpertCompute::BuildInputTables(const ExpertRecord& record, Rows tables_of) {
  WASTE_CHECK(tables_of.count <= ExpertScratch::kTableRows);
  const int64_t outer = config_.expert_outer();
  const int64_t groups = TableGroups(plan_.codec, outer);
  const int64_t work = TableVectors(plan_.codec) * kVectorSize * plan_.codec.entries;
  compute_.Parallel(tables_of.count * 2 * groups, work, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute_);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t g = item % groups, matrix = item / groups % 2, row = item / groups / 2;
      compute_.kernels.build_tables(matrix == 0 ? record.gate : record.up, tables_of.row(row), g,
                                    g + 1, InputTables(row, matrix), thread.floats());
    }
  });
  table_books_ = {record.gate.books[0], record.up.books[0]};
}

void ExpertCompute::GateAndUpByTables(std::span<const Pair> pairs) {
  const int64_t inner = config_.moe.inner;
  const int64_t piece = PieceOf(inner, std::ssize(pairs), compute_.threads());
  const int64_t pieces = CeilDivide(inner, piece);
  compute_.Run(std::ssize(pairs) * pieces, 1, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute_);
    float* const up = thread.floats();  // [piece]
    for (int64_t item = begin; item < end; ++item) {
      const Pair& pair = pairs[static_cast<size_t>(item / pieces)];
      const int64_t r = item % pieces * piece, n = std::min(inner - r, piece);
      float* const gate = s_.inner + pair.slot * inner;
      compute_.kernels.table_rows(pair.record->gate, r, r + n, InputTables(pair.row, 0), gate);
      compute_.kernels.table_rows(RowsOf(pair.record->up, r, r + n), 0, n, InputTables(pair.row, 1),
                                  up);
      Activate(compute_.kernels, config_, gate + r, up, n);
    }
  });
}

void ExpertCompute::BuildInnerTables(std::span<const Pair> pairs) {
  const int64_t inner = config_.moe.inner;
  const int64_t groups = TableGroups(plan_.codec, inner);
  const int64_t work = TableVectors(plan_.codec) * kVectorSize * plan_.codec.entries;
  compute_.Parallel(std::ssize(pairs) * groups, work, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute_);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t g = item % groups, index = item / groups;
      const Pair& pair = pairs[static_cast<size_t>(index)];
      compute_.kernels.build_tables(pair.record->down, s_.inner + pair.slot * inner, g, g + 1,
                                    s_.inner_tables + index * inner_table_bytes_, thread.floats());
    }
  });
}

void ExpertCompute::DownByTables(std::span<const Pair> pairs) {
  const int64_t outer = config_.expert_outer();
  const int64_t piece = PieceOf(outer, std::ssize(pairs), compute_.threads());
  const int64_t pieces = CeilDivide(outer, piece);
  compute_.Run(std::ssize(pairs) * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t index = item / pieces;
      const Pair& pair = pairs[static_cast<size_t>(index)];
      const int64_t r = item % pieces * piece, n = std::min(outer - r, piece);
      compute_.kernels.table_rows(pair.record->down, r, r + n,
                                  s_.inner_tables + index * inner_table_bytes_,
                                  s_.down + pair.slot * outer);
    }
  });
}

}  // namespace waste
