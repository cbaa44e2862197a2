// SPDX-License-Identifier: Apache-2.0
//
// The hot loops, as a table of functions that is chosen once for a model. The scalar file gives the
// meaning; kernels_<isa>.cc override entries. Every function computes each output element with the
// same operations in the same order whatever the number of rows, so a row's result does not depend
// on who shares its batch or its range of rows. Across ISAs results differ in the last bits (see
// each function). Nothing beyond what is described is read or written, and nothing need be aligned,
// though inputs and books are faster when they are, to 64 bytes. Pure functions; any thread.
// Nothing here allocates.

#ifndef WASTE_CORE_KERNELS_KERNELS_H_
#define WASTE_CORE_KERNELS_KERNELS_H_

#include <cstdint>

#include "base/checked.h"
#include "base/status.h"
#include "kernels/word_input.h"
#include "os/system.h"
#include "quant/expert_format.h"
#include "quant/trunk_format.h"

namespace waste {

// Floats of scratch that kernels over rows need for matrices of `columns`: one row, filled up to
// whole vectors, or a decoded tile and its sums.
inline constexpr int64_t kRowsScratch = 24 * 1024;
inline constexpr int64_t RowsScratch(int64_t columns) {
  const int64_t row = RoundUp(columns, 16);
  return row > kRowsScratch ? row : kRowsScratch;
}

struct IndexChunks;  // expert_tables.h

struct Kernels {
  Isa isa;

  // sum a[i] * b[i] over n. Relative to sum |a_i b_i|: within n * 2^-24 of the exact value.
  float (*dot)(const float* a, const float* b, int64_t n);

  // y[i] += a * x[i]. Bit-identical on every ISA that fuses (all but scalar, which rounds twice).
  void (*axpy)(float a, const float* x, float* y, int64_t n);

  // y[i] = x[i] * f[i], i below n; y may be x or f. Bit-identical on every ISA.
  void (*multiply)(const float* x, const float* f, int64_t n, float* y);

  // y[r, i] = f[r] * x[r, i], i below n; rows of x and of y, which may be x, are n floats apart.
  // Bit-identical on every ISA.
  void (*scale_rows)(const float* f, const float* x, int64_t rows, int64_t n, float* y);

  // c[i, j] += sum over t of a[i * a_row + t * a_step] * b[t * b_stride + j], i below m, t below k,
  // j below n; rows of c are c_stride apart. t ascends, each product is added by itself, so an
  // element depends on m and n in no way. Tolerance of dot, with c as one more term.
  void (*multiply_add)(const float* a, int64_t a_row, int64_t a_step, const float* b,
                       int64_t b_stride, int64_t m, int64_t k, int64_t n, float* c,
                       int64_t c_stride);

  // y[i] = f(x[i]), i below n; y may be x. Relative error at most 1e-6 (tanh and softplus where the
  // result is not below 1e-30). e^x is taken as e^-87 below -87 and as e^88 above 88; a NaN stays.
  void (*exp)(const float* x, int64_t n, float* y);
  void (*sigmoid)(const float* x, int64_t n, float* y);   // 1 / (1 + e^-x)
  void (*softplus)(const float* x, int64_t n, float* y);  // log(1 + e^x)
  void (*tanh)(const float* x, int64_t n, float* y);

  // Rows [row_begin, row_end) of y = W x for `batch` inputs: x is [batch, columns] with rows
  // x_stride floats apart, y is [batch, rows] with rows y_stride apart. `scratch` holds
  // RowsScratch(w.columns) floats. Weights of finite scales are decoded to the bits of
  // DecodeTrunkRow on every ISA; the sum has the tolerance of dot.
  void (*trunk_rows)(const TrunkMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
                     int64_t x_stride, int64_t batch, float* y, int64_t y_stride, float* scratch);

  // The other way round: y = x W of those rows, y[b, j] = sum over r of x[b, r - row_begin] W[r,
  // j]. x is [batch, row_end - row_begin] with rows x_stride apart, y is [batch, columns] with rows
  // y_stride apart. Weights and scratch as above; r ascends, each product is added by itself, with
  // the tolerance of dot.
  void (*trunk_transposed)(const TrunkMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
                           int64_t x_stride, int64_t batch, float* y, int64_t y_stride,
                           float* scratch);

  // trunk_rows with inputs in integers (split_input.h), for Q4G and Q8G, where the ISA has
  // instructions for them; elsewhere both are null. split_input fills SplitBytes(columns) of `out`.
  // `inputs` are [batch] of those, one after the other. Within 0.01 % of the rms of trunk_rows.
  void (*split_input)(const float* x, int64_t columns, uint8_t* out);
  void (*split_rows)(const TrunkMatrix& w, int64_t row_begin, int64_t row_end,
                     const uint8_t* inputs, int64_t batch, float* y, int64_t y_stride);

  // The same for many inputs, 64 rows at a time, with others' integers (word_input.h).
  // round_trunk_input fills a row of TrunkInputs. `scratch` is that of trunk_rows.
  void (*round_trunk_input)(const float* x, int64_t columns, int16_t* integers, float* scales);
  void (*trunk_words)(const TrunkMatrix& w, int64_t row_begin, int64_t row_end,
                      const TrunkInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                      float* scratch);

  // trunk_rows for an expert's matrix; row_begin is a multiple of 64. The row's scale is applied to
  // the finished sum: one rounding more.
  void (*expert_rows)(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
                      int64_t x_stride, int64_t batch, float* y, int64_t y_stride, float* scratch);

  // expert_rows with inputs in integers (word_input.h), for many of them, where the ISA has
  // instructions for them; elsewhere both are null. round_expert_input fills a row of ExpertInputs.
  // `scratch` is that of expert_rows. Within 0.1 % of the rms of expert_rows.
  void (*round_expert_input)(const float* x, int64_t columns, int16_t* integers, float* scales);
  void (*expert_words)(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                       const ExpertInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                       float* scratch);

  // expert_rows for one input by look-up tables (expert_tables.h), one group of vectors after the
  // other, where the ISA has instructions for them; elsewhere all three are null. `next` are
  // indices that will be read soon and may be fetched meanwhile; they need not exist.
  // build_table fills `table`, TableGroupBytes(w.codec) long, for a group of x [columns] and w's
  // books; it serves every matrix with these books. `scratch` holds kTableScratch floats.
  void (*build_table)(const ExpertMatrix& w, const float* x, int64_t group, const IndexChunks& next,
                      uint8_t* table, float* scratch);
  // Adds the group's part of rows [row_begin, row_end) to `sums` [SumRows(row_end - row_begin)],
  // or, for the first group, writes it there; without scales and offset and in an order of the
  // ISA's own. row_begin is a multiple of 64.
  void (*table_rows)(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, int64_t group,
                     const uint8_t* table, const IndexChunks& next, bool is_first, float* sums);
  // y [row_end - row_begin] = those rows' scales times (the sums of `parts` times some groups,
  // part_stride floats apart, in that order, plus `offset`, that of all groups). With the sums of
  // all groups within 0.1 % of the rms of expert_rows.
  void (*finish_rows)(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, const float* sums,
                      int64_t parts, int64_t part_stride, float offset, float* y);

  // One step of the gated delta rule for one head: S is [keys, values], row-major.
  //   S <- diag(decay) S;  u = S^T k;  S <- S + k (beta (v - u))^T;  out = S^T q
  // S is read from `state` and written to `next`, which may be the same. decay, k, q are [keys]; v,
  // out are [values]. `scratch` holds `values` floats. A value's column does not depend on the
  // others. Each sum over keys is within (keys + 4) * 2^-24 of its terms.
  void (*delta_step)(const float* state, float* next, const float* decay, const float* k,
                     const float* q, const float* v, float beta, int64_t keys, int64_t values,
                     float* out, float* scratch);

  // x decays row after row and is multiplied with the rows of two matrices: for t ascending,
  //   x[i] *= decay[t, i];  to_a[t * to_stride] = a[t] . x;  to_b[t * to_stride] = b[t] . x
  // decay, a and b are [rows, n], `stride` floats apart. x is the same on every ISA, to the bit;
  // sums have the tolerance of dot.
  void (*decayed_dots)(const float* decay, const float* a, const float* b, int64_t stride,
                       int64_t rows, int64_t n, float* x, float* to_a, float* to_b,
                       int64_t to_stride);
};

// The table for `isa`. Errors: kUnsupported if this machine lacks it or this build has no kernels
// for it.
Result<const Kernels*> KernelsFor(Isa isa);

}  // namespace waste

#endif  // WASTE_CORE_KERNELS_KERNELS_H_
