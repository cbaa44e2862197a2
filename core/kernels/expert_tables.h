// SPDX-License-Identifier: Apache-2.0
//
// Look-up tables for one input of an expert matrix, in bytes. With T[v][s][e] = x_v . C_s[e], eight
// products summed, a row of y = W x is scale * (the sum over v and s of T[v][s][index]). Vectors
// are taken in groups; inside a group every T is stored as
//   T = low(v, s) + delta * (base * high byte + low byte),   rounded,
// with one delta for the group, so that a row is summed in integers: the bytes of a vector's stages
// first, which never exceed 255 (low bytes are below `base` = 255 / stages + 1, high bytes share
// the 255 by the widths of the stages; six stages are two such sums), then those of the group in 16
// bits. The sum of all low(v, s) is the header's offset. Error: at most 0.1 % of the result's rms
// against f32 (tests/kernel/expert_tables_test.cc). This header is the layout; kernels fill and
// read it.

#ifndef WASTE_CORE_KERNELS_EXPERT_TABLES_H_
#define WASTE_CORE_KERNELS_EXPERT_TABLES_H_

#include <cstdint>

#include "quant/expert_format.h"

namespace waste {

// A group: this, filled up to kTableHeaderBytes; then for each vector and stage the entries' low
// bytes and their high bytes.
struct TableHeader {
  float delta;
  float offset;
};
inline constexpr int64_t kTableHeaderBytes = 64;

// Vectors of a group: its tables fit the nearest cache beside the indices.
inline constexpr int64_t TableVectors(const ExpertCodec& codec) {
  return codec.kind == IndexKind::kByte ? 8 : 16;
}

// Most pairs of a vector and a stage in a group; and what filling one needs beside, in floats.
inline constexpr int64_t kMostTableBooks = 64;
inline constexpr int64_t kMostTableVectors = 16;
inline constexpr int64_t kTableScratch = 48 * 256;

// Stages whose bytes are summed as bytes; six are summed in two halves.
inline constexpr int64_t TableSumStages(int64_t stages) { return stages == 6 ? 3 : stages; }
inline constexpr int64_t TableBase(int64_t stages) { return 255 / TableSumStages(stages) + 1; }

inline constexpr int64_t TableGroupBytes(const ExpertCodec& codec) {
  return kTableHeaderBytes + TableVectors(codec) * codec.stages * 2 * codec.entries;
}

inline constexpr int64_t TableGroups(const ExpertCodec& codec, int64_t columns) {
  const int64_t vectors = columns / kVectorSize;
  return (vectors + TableVectors(codec) - 1) / TableVectors(codec);
}

inline constexpr int64_t TableBytes(const ExpertCodec& codec, int64_t columns) {
  return TableGroups(codec, columns) * TableGroupBytes(codec);
}

inline TableHeader HeaderOf(const uint8_t* table) {
  TableHeader header;
  __builtin_memcpy(&header, table, sizeof header);
  return header;
}

// Vectors of a matrix that belong to `group`: the last may have fewer.
inline int64_t GroupVectors(const ExpertMatrix& w, int64_t group) {
  const int64_t most = TableVectors(w.codec);
  const int64_t left = w.columns / kVectorSize - group * most;
  return left < most ? left : most;
}

// Floats of the sums of `rows` rows: those of whole blocks.
inline constexpr int64_t SumRows(int64_t rows) {
  return (rows + kIndexBlock - 1) / kIndexBlock * kIndexBlock;
}

// Indices of one group: `count` blocks of rows, `bytes` of each, `stride` apart.
struct IndexChunks {
  const uint8_t* first;
  int64_t stride;
  int64_t bytes;
  int64_t count;
};

// Those of rows [row_begin, row_end).
inline IndexChunks ChunksOf(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                            int64_t group) {
  const int64_t vector_bytes = kIndexBlock * w.codec.bytes_per_vector();
  const int64_t stride = w.columns / kVectorSize * vector_bytes;
  const int64_t at =
      row_begin / kIndexBlock * stride + group * TableVectors(w.codec) * vector_bytes;
  return {w.indices + at, stride, GroupVectors(w, group) * vector_bytes,
          SumRows(row_end - row_begin) / kIndexBlock};
}

// `widest[s]` is the largest T minus the smallest of one vector and stage s. A high byte is at most
// width / (delta * base) + 1, hence the stages that are taken off the 255.
inline TableHeader MakeTableHeader(const ExpertCodec& codec, const float* widest, float offset) {
  const int64_t together = TableSumStages(codec.stages);
  float sum = 0.0f;
  for (int64_t s = 0; s < codec.stages; s += together) {
    float width = 0.0f;
    for (int64_t i = 0; i < together; ++i) width += widest[s + i];
    if (width > sum || width != width) sum = width;  // a NaN stays
  }
  const float delta = sum / static_cast<float>((255 - together) * TableBase(codec.stages));
  constexpr float kSmallest = 1e-37f;  // below it 1 / delta may be infinite, and nothing is lost
  return {delta < kSmallest ? 0.0f : delta, offset};
}

}  // namespace waste

#endif  // WASTE_CORE_KERNELS_EXPERT_TABLES_H_
