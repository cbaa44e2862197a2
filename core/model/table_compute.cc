// SPDX-License-Identifier: Apache-2.0

#include "model/table_compute.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/expert_tables.h"
#include "model/primitives.h"

namespace waste {
namespace {

constexpr int64_t kSegments = TableScratch::kSegments;

// Blocks of rows whose indices can be fetched while a table is built.
constexpr int64_t kBlocksOfBuild = 16;

// Of `parts` about equal parts of [0, count), where number `part` begins.
int64_t PartBegin(int64_t count, int64_t part, int64_t parts) { return count * part / parts; }

const ExpertMatrix& MatrixOf(const ExpertRecord& record, int64_t matrix) {
  return matrix == 0 ? record.gate : record.up;
}

// Pieces of the rows of a matrix, so that `items` segments are enough for all threads.
int64_t RowParts(int64_t rows, int64_t items, int64_t threads) {
  constexpr int64_t kItemsAThread = 2;
  return std::clamp<int64_t>(CeilDivide(kItemsAThread * threads, items), 1,
                             CeilDivide(rows, kIndexBlock));
}

}  // namespace

// Some groups of a matrix, and some of its rows.
struct TableCompute::Segment {
  int64_t number;
  int64_t group_begin, group_end;
  int64_t row_begin, row_end;

  static Segment Of(int64_t number, int64_t groups, int64_t part, int64_t parts, int64_t rows) {
    const int64_t blocks = CeilDivide(rows, kIndexBlock);
    return {number, PartBegin(groups, number, kSegments), PartBegin(groups, number + 1, kSegments),
            PartBegin(blocks, part, parts) * kIndexBlock,
            std::min(rows, PartBegin(blocks, part + 1, parts) * kIndexBlock)};
  }
  bool is_empty() const { return group_begin == group_end; }  // of a narrow matrix
  IndexChunks ChunksIn(const ExpertMatrix& w, int64_t group) const {
    return ChunksOf(w, row_begin, row_end, group);
  }
};

TableScratch TableScratch::Plan(Arena& arena, const ModelConfig& config, const ExpertCodec& codec) {
  const int64_t inner = config.moe.inner, outer = config.expert_outer();
  const int64_t groups = kRows * 2 * TableGroups(codec, outer);
  return {.tables = arena.Bytes(kRows * 2 * TableBytes(codec, outer)),
          .is_built = arena.Bytes(groups),
          .offsets = arena.Floats(groups),
          .inner = arena.Floats(kPairs * 2 * kSegments * SumRows(inner)),
          .down = arena.Floats(kPairs * kSegments * SumRows(outer)),
          .down_offsets = arena.Floats(kPairs * kSegments)};
}

int64_t TableScratch::ThreadBytes(const ModelConfig& config, const ExpertCodec& codec) {
  Arena arena;
  arena.Floats(kTableScratch);
  arena.Bytes(TableGroupBytes(codec));
  arena.Floats(config.moe.inner);
  arena.Floats(config.moe.inner);
  return arena.peak_bytes();
}

TableCompute::TableCompute(Compute& compute, const ModelConfig& config, const ExpertCodec& codec,
                           const TableScratch& scratch)
    : compute_(compute),
      config_(config),
      s_(scratch),
      input_groups_(TableGroups(codec, config.expert_outer())),
      inner_groups_(TableGroups(codec, config.moe.inner)),
      table_bytes_(TableGroupBytes(codec)),
      segment_columns_(TableVectors(codec) * kVectorSize) {}

void TableCompute::Forget() {
  books_ = {};
  std::fill_n(s_.is_built, TableScratch::kRows * 2 * input_groups_, uint8_t{0});
}

float* TableCompute::InnerSums(int64_t pair, int64_t matrix) const {
  return s_.inner + (2 * pair + matrix) * kSegments * SumRows(config_.moe.inner);
}

float* TableCompute::DownSums(int64_t pair) const {
  return s_.down + pair * kSegments * SumRows(config_.expert_outer());
}

void TableCompute::Run(std::span<const TablePair> pairs, Rows inputs) {
  WASTE_CHECK(inputs.count <= TableScratch::kRows && std::ssize(pairs) <= TableScratch::kPairs);
  const ExpertRecord& record = *pairs.front().record;
  const std::array<const float*, 2> books = {record.gate.books[0], record.up.books[0]};
  if (books != books_) Forget();
  books_ = books;
  GateAndUp(pairs, inputs);
  Down(pairs);
  Finish(pairs);
}

// An item being a segment of gate or of up for some rows, of all pairs.
void TableCompute::GateAndUp(std::span<const TablePair> pairs, Rows inputs) {
  const int64_t rows = config_.moe.inner, items = 2 * kSegments;
  const int64_t parts = RowParts(rows, items, compute_.threads());
  if (parts > 1) BuildAll(pairs, inputs);  // each is for several items
  compute_.Run(items * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t part = item % parts, number = item / parts % kSegments;
      GateOrUp(pairs, inputs, item / parts / kSegments,
               Segment::Of(number, input_groups_, part, parts, rows));
    }
  });
}

void TableCompute::BuildAll(std::span<const TablePair> pairs, Rows inputs) {
  const ExpertRecord& record = *pairs.front().record;
  compute_.Run(inputs.count * 2 * input_groups_, 1, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute_);
    for (int64_t at = begin; at < end; ++at) {
      if (s_.is_built[at]) continue;
      BuildInput(MatrixOf(record, at / input_groups_ % 2), inputs, at, IndexChunks(),
                 thread.floats());
    }
  });
}

// Number `at` of the tables of inputs.
void TableCompute::BuildInput(const ExpertMatrix& w, Rows inputs, int64_t at,
                              const IndexChunks& next, float* scratch) {
  uint8_t* const table = s_.tables + at * table_bytes_;
  compute_.kernels.build_table(w, inputs.row(at / input_groups_ / 2), at % input_groups_, next,
                               table, scratch);
  s_.offsets[at] = HeaderOf(table).offset;
  s_.is_built[at] = 1;
}

void TableCompute::GateOrUp(std::span<const TablePair> pairs, Rows inputs, int64_t matrix,
                            const Segment& segment) {
  const Compute::Scratch thread(compute_);
  const auto matrix_of = [&](size_t pair) -> const ExpertMatrix& {
    return MatrixOf(*pairs[pair].record, matrix);
  };
  const auto sums = [&](size_t pair) {
    return InnerSums(static_cast<int64_t>(pair), matrix) +
           segment.number * SumRows(config_.moe.inner) + segment.row_begin;
  };
  for (size_t i = 0; segment.is_empty() && i < pairs.size(); ++i)
    std::fill_n(sums(i), SumRows(segment.row_end - segment.row_begin), 0.0f);
  for (int64_t g = segment.group_begin; g < segment.group_end; ++g) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      const int64_t at = TableAt(pairs[i].row, matrix, g);
      if (!s_.is_built[at])
        BuildInput(matrix_of(i), inputs, at, segment.ChunksIn(matrix_of(i), g), thread.floats());
      const bool is_last = i + 1 == pairs.size();
      const IndexChunks next = segment.ChunksIn(matrix_of(is_last ? 0 : i + 1),
                                                is_last && g + 1 < segment.group_end ? g + 1 : g);
      compute_.kernels.table_rows(matrix_of(i), segment.row_begin, segment.row_end, g,
                                  s_.tables + at * table_bytes_, next, g == segment.group_begin,
                                  sums(i));
    }
  }
}

// An item being a segment of one pair's matrix for some rows.
void TableCompute::Down(std::span<const TablePair> pairs) {
  const int64_t rows = config_.expert_outer(), items = std::ssize(pairs) * kSegments;
  const int64_t parts = RowParts(rows, items, compute_.threads());
  compute_.Run(items * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t part = item % parts, number = item / parts % kSegments;
      const int64_t index = item / parts / kSegments;
      DownOf(pairs[static_cast<size_t>(index)], index,
             Segment::Of(number, inner_groups_, part, parts, rows));
    }
  });
}

void TableCompute::DownOf(const TablePair& pair, int64_t index, const Segment& segment) {
  const Compute::Scratch thread(compute_);
  Arena arena(thread.memory());
  float* const scratch = arena.Floats(kTableScratch);
  uint8_t* const table = arena.Bytes(table_bytes_);
  float* const inner = arena.Floats(config_.moe.inner);
  float* const up = arena.Floats(config_.moe.inner);
  Inner(pair, index, segment.group_begin * segment_columns_,
        std::min(segment.group_end * segment_columns_, config_.moe.inner), inner, up);

  const ExpertMatrix& w = pair.record->down;
  float* const sums =
      DownSums(index) + segment.number * SumRows(config_.expert_outer()) + segment.row_begin;
  if (segment.is_empty()) std::fill_n(sums, SumRows(segment.row_end - segment.row_begin), 0.0f);
  float offset = 0.0f;
  for (int64_t g = segment.group_begin; g < segment.group_end; ++g) {
    const IndexChunks here = segment.ChunksIn(w, g);
    IndexChunks first = here;
    first.count = std::min(first.count, kBlocksOfBuild);
    compute_.kernels.build_table(w, inner, g, first, table, scratch);
    offset += HeaderOf(table).offset;
    compute_.kernels.table_rows(w, segment.row_begin, segment.row_end, g, table,
                                g + 1 < segment.group_end ? segment.ChunksIn(w, g + 1) : here,
                                g == segment.group_begin, sums);
  }
  if (segment.row_begin == 0) s_.down_offsets[index * kSegments + segment.number] = offset;
}

// Columns [begin, end) of the input of down, a pair's own.
void TableCompute::Inner(const TablePair& pair, int64_t index, int64_t begin, int64_t end,
                         float* inner, float* up) const {
  if (begin >= end) return;
  float* const to[] = {inner + begin, up + begin};
  for (int64_t matrix = 0; matrix < 2; ++matrix) {
    const float* const offsets = s_.offsets + TableAt(pair.row, matrix, 0);
    float offset = 0.0f;
    for (int64_t g = 0; g < input_groups_; ++g) offset += offsets[g];
    compute_.kernels.finish_rows(MatrixOf(*pair.record, matrix), begin, end,
                                 InnerSums(index, matrix) + begin, kSegments,
                                 SumRows(config_.moe.inner), offset, to[matrix]);
  }
  Activate(compute_.kernels, config_, inner + begin, up + begin, end - begin);
}

void TableCompute::Finish(std::span<const TablePair> pairs) {
  const int64_t outer = config_.expert_outer();
  compute_.Parallel(std::ssize(pairs), kSegments * outer, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* const offsets = s_.down_offsets + i * kSegments;
      float offset = 0.0f;
      for (int64_t segment = 0; segment < kSegments; ++segment) offset += offsets[segment];
      const TablePair& pair = pairs[static_cast<size_t>(i)];
      compute_.kernels.finish_rows(pair.record->down, 0, outer, DownSums(i), kSegments,
                                   SumRows(outer), offset, pair.out);
    }
  });
}

}  // namespace waste
