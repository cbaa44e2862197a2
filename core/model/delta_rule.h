// SPDX-License-Identifier: Apache-2.0
//
// The gated delta rule of one KDA head over consecutive rows t (Kimi Linear, arXiv 2510.26692):
//
//   S_t = diag(a_t) S_{t-1} + k_t d_t^T,  d_t = beta_t (v_t - (diag(a_t) S_{t-1})^T k_t)
//   o_t = S_t^T q_t
//
// with decays a_t in [0, 1] a key dimension. The recurrence is the definition; the chunked form
// gives the same with one sweep over S for kDeltaChunk rows. Pure functions; any thread.

#ifndef WASTE_CORE_MODEL_DELTA_RULE_H_
#define WASTE_CORE_MODEL_DELTA_RULE_H_

#include <cstdint>

#include "kernels/kernels.h"
#include "model/arena.h"

namespace waste {

inline constexpr int64_t kDeltaChunk = 16;

// Rows of one head: q, k, v and decay are [count, dim], `stride` floats apart; beta is one number a
// row, `beta_stride` apart. `out` has the strides of q and may be q. `position` is that of the
// first row in its text.
struct DeltaRows {
  const float* q;
  const float* k;
  const float* v;
  const float* decay;
  int64_t stride;
  const float* beta;
  int64_t beta_stride;
  int64_t count;
  int64_t position;
  float* out;
};

int64_t DeltaScratchBytes(int64_t dim);

// Row by row. S is read from `state` and left in `next`, both [dim, dim], keys by values; they may
// be the same.
void DeltaRecurrent(const Kernels& kernels, const DeltaRows& rows, int64_t dim, const float* state,
                    float* next, uint8_t* scratch);
// Chunk by chunk; agrees with the recurrence to f32's rounding. Chunks begin at multiples of
// kDeltaChunk of the position, so that it does not matter in how many calls rows come as long as
// those begin there too.
void DeltaChunked(const Kernels& kernels, const DeltaRows& rows, int64_t dim, const float* state,
                  float* next, uint8_t* scratch);

}  // namespace waste

#endif  // WASTE_CORE_MODEL_DELTA_RULE_H_
