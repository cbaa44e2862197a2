// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of routed experts: FFN_j(z) = W_down act(W_gate z, W_up z) for pairs of a row and
// an expert that is in memory, each pair in a slot. Rows of a prompt, and in exact mode all rows,
// are multiplied with decoded weights: in integers (kernels/word_input.h) where that is allowed and
// the kernels can, else in f32. A token that is being written looks its products up in tables
// (model/table_compute.h) where the kernels have them. The kind depends on what a row is and never
// on how many there are, so a row's result does not depend on its company.
// One call at a time, on the step's threads; nothing here allocates.

#ifndef WASTE_CORE_MODEL_EXPERT_COMPUTE_H_
#define WASTE_CORE_MODEL_EXPERT_COMPUTE_H_

#include <cstdint>
#include <span>

#include "container/container.h"
#include "kernels/word_input.h"
#include "model/arena.h"
#include "model/compute.h"
#include "model/config.h"
#include "model/table_compute.h"

namespace waste {

struct ExpertPlan {
  ExpertCodec codec;
  bool tables = false;  // look-ups for rows that are no prompt's
  bool words = false;   // integers for those that are
};

// Some rows of one expert, in consecutive slots; those that are looked up come last.
struct ExpertTile {
  const ExpertRecord* record;
  int64_t slot;
  int64_t rows;
  int64_t table_rows;
  const int32_t* table_row;  // [table_rows]: which rows of the step they are
};

struct ExpertScratch {
  int64_t slots;
  float* gathered;  // [slots, outer]: inputs, as floats or ExpertInputs
  float* inner;     // [slots, inner], likewise
  float* down;      // [slots, outer]: outputs
  TableScratch tables;

  static ExpertScratch Plan(Arena& arena, const ModelConfig& config, const ExpertPlan& plan,
                            int64_t slots);
  static int64_t ThreadBytes(const ModelConfig& config, const ExpertPlan& plan, int64_t slots);
};

class ExpertCompute {
 public:
  ExpertCompute(Compute& compute, const ModelConfig& config, const ExpertPlan& plan,
                const ExpertScratch& scratch);

  // Inputs of the slots from the first on: rows of z, but for those that are looked up.
  void Gather(Rows z, std::span<const int32_t> rows, int64_t first_table_row);
  // From inputs, gathered, to outputs, down. `tables_of` are the rows of the step that are looked
  // up, [rows, outer], the first being row `first_table_row` of the step.
  void Run(std::span<const ExpertTile> tiles, Rows tables_of, int64_t first_table_row);
  // What is looked up from now on are other rows.
  void ForgetTables() {
    if (has_tables_) tables_.Forget();
  }

 private:
  // Inputs of a matrix, a row a slot.
  struct Inputs {
    float* floats;
    ExpertInputs words;
    int64_t columns;
  };
  Inputs InputsIn(float* memory, int64_t columns) const;
  void Put(const Inputs& inputs, int64_t slot, int64_t column, const float* values, int64_t count);
  // Rows [begin, end) of w times `rows` inputs from `slot` on.
  void Apply(const ExpertMatrix& w, int64_t begin, int64_t end, const Inputs& inputs, int64_t slot,
             int64_t rows, float* y, int64_t y_stride, float* scratch) const;
  void Multiply(std::span<const ExpertTile> tiles);
  void LookUp(std::span<const ExpertTile> tiles, Rows tables_of, int64_t first_table_row);
  void GateAndUp(std::span<const ExpertTile> tiles, int64_t rows_max);
  void Down(std::span<const ExpertTile> tiles, int64_t rows_max);

  Compute& compute_;
  const ModelConfig& config_;
  const ExpertScratch s_;
  const bool has_tables_, words_;
  const Inputs outer_, inner_;
  TableCompute tables_;
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_EXPERT_COMPUTE_H_
