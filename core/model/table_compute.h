// SPDX-License-Identifier: Apache-2.0
//
// FFN_j(z) = W_down act(W_gate z, W_up z) of routed experts by look-up tables, for tokens that are
// being written (kernels/expert_tables.h). A table of a group of vectors is built when it is first
// needed and used at once for all experts, so that it stays in the nearest cache: the indices of
// the experts are all that comes from memory, and those that come next are fetched while a table is
// built. A matrix's groups are cut into kSegments, which are summed apart and then added, so that
// threads share a matrix without building a table twice. The segments depend on nothing but the
// matrix: a result depends neither on threads nor on company. One call at a time, on the step's
// threads; nothing here allocates.

#ifndef WASTE_CORE_MODEL_TABLE_COMPUTE_H_
#define WASTE_CORE_MODEL_TABLE_COMPUTE_H_

#include <array>
#include <cstdint>
#include <span>

#include "container/container.h"
#include "model/arena.h"
#include "model/compute.h"
#include "model/config.h"

namespace waste {

struct TableScratch {
  static constexpr int64_t kRows = 32;   // of a step that are looked up, at most
  static constexpr int64_t kPairs = 16;  // of a row and an expert at a time, at most
  static constexpr int64_t kSegments = 2;

  uint8_t* tables;      // [kRows, gate and up, TableBytes(outer)]: of inputs
  uint8_t* is_built;    // [kRows, gate and up, groups]
  float* offsets;       // [kRows, gate and up, groups]
  float* inner;         // [kPairs, gate and up, kSegments, SumRows(inner)]
  float* down;          // [kPairs, kSegments, SumRows(outer)]
  float* down_offsets;  // [kPairs, kSegments]

  static TableScratch Plan(Arena& arena, const ModelConfig& config, const ExpertCodec& codec);
  static int64_t ThreadBytes(const ModelConfig& config, const ExpertCodec& codec);
};

// A row and an expert that it chose.
struct TablePair {
  const ExpertRecord* record;
  int64_t row;  // among those that are looked up
  float* out;   // [outer]
};

class TableCompute {
 public:
  TableCompute(Compute& compute, const ModelConfig& config, const ExpertCodec& codec,
               const TableScratch& scratch);

  // At most kPairs pairs, whose records share their books; `inputs` are [kRows, outer] at most.
  void Run(std::span<const TablePair> pairs, Rows inputs);
  // The inputs are others from now on.
  void Forget();

 private:
  struct Segment;
  void BuildAll(std::span<const TablePair> pairs, Rows inputs);
  void BuildInput(const ExpertMatrix& w, Rows inputs, int64_t at, const IndexChunks& next,
                  float* scratch);
  void GateAndUp(std::span<const TablePair> pairs, Rows inputs);
  void GateOrUp(std::span<const TablePair> pairs, Rows inputs, int64_t matrix,
                const Segment& segment);
  void Down(std::span<const TablePair> pairs);
  void DownOf(const TablePair& pair, int64_t index, const Segment& segment);
  void Inner(const TablePair& pair, int64_t index, int64_t begin, int64_t end, float* inner,
             float* up) const;
  void Finish(std::span<const TablePair> pairs);

  int64_t TableAt(int64_t row, int64_t matrix, int64_t group) const {
    return (2 * row + matrix) * input_groups_ + group;
  }
  float* InnerSums(int64_t pair, int64_t matrix) const;
  float* DownSums(int64_t pair) const;

  Compute& compute_;
  const ModelConfig& config_;
  const TableScratch s_;
  const int64_t input_groups_, inner_groups_, table_bytes_;
  const int64_t segment_columns_;  // of the input of down, at most
  // Whose books, of gate and up, the input tables were built from. Experts of a layer share them,
  // but a record may name others.
  std::array<const float*, 2> books_ = {};
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_TABLE_COMPUTE_H_
