// SPDX-License-Identifier: Apache-2.0
//
// A table that runs scalar code beside each SIMD kernel and holds the two to the tolerance that
// kernels.h gives: for builds with WASTE_CHECK_KERNELS, where KernelsFor hands it out, and for the
// tests of the comparison itself. No other build has it. It allocates, and takes several times as
// long. Any thread.

#ifndef WASTE_CORE_KERNELS_KERNELS_CHECKED_H_
#define WASTE_CORE_KERNELS_KERNELS_CHECKED_H_

#include <string>

#include "kernels/kernels.h"

namespace waste {

// Each runs the function of `fast`, leaves its result to the caller, and compares it with that of
// the scalar table. Returns an empty text, or what differs: "dot: 3.5, scalar 3.25". Sums whose
// terms overflow or are not numbers are not compared.
std::string CompareDot(const Kernels& fast, const float* a, const float* b, int64_t n,
                       float* result);
std::string CompareAxpy(const Kernels& fast, float a, const float* x, float* y, int64_t n);
std::string CompareMultiplyAdd(const Kernels& fast, const float* a, int64_t a_row, int64_t a_step,
                               const float* b, int64_t b_stride, int64_t m, int64_t k, int64_t n,
                               float* c, int64_t c_stride);
using ElementwiseKernel = void (*)(const float* x, int64_t n, float* y);
std::string CompareFunction(const Kernels& fast, ElementwiseKernel Kernels::*function,
                            const float* x, int64_t n, float* y);
std::string CompareTrunkRows(const Kernels& fast, const TrunkMatrix& w, int64_t row_begin,
                             int64_t row_end, const float* x, int64_t x_stride, int64_t batch,
                             float* y, int64_t y_stride, float* scratch);
std::string CompareTrunkTransposed(const Kernels& fast, const TrunkMatrix& w, int64_t row_begin,
                                   int64_t row_end, const float* x, int64_t x_stride, int64_t batch,
                                   float* y, int64_t y_stride, float* scratch);
std::string CompareExpertRows(const Kernels& fast, const ExpertMatrix& w, int64_t row_begin,
                              int64_t row_end, const float* x, int64_t x_stride, int64_t batch,
                              float* y, int64_t y_stride, float* scratch);
std::string CompareMultiply(const Kernels& fast, const float* x, const float* f, int64_t n,
                            float* y);
std::string CompareScaleRows(const Kernels& fast, const float* f, const float* x, int64_t rows,
                             int64_t n, float* y);
std::string CompareDeltaStep(const Kernels& fast, const float* state, float* next,
                             const float* decay, const float* k, const float* q, const float* v,
                             float beta, int64_t keys, int64_t values, float* out, float* scratch);
std::string CompareDecayedDots(const Kernels& fast, const float* decay, const float* a,
                               const float* b, int64_t stride, int64_t rows, int64_t n, float* x,
                               float* to_a, float* to_b, int64_t to_stride);

// The same for those that the scalar table lacks. What fills an input or tables is compared with x
// in double by the layout, what reads them with the exact sum of what is in them: "scalar" in the
// text is that. It therefore does not see an error of what filled them.
std::string CompareSplitInput(const Kernels& fast, const float* x, int64_t columns, uint8_t* out);
std::string CompareSplitRows(const Kernels& fast, const TrunkMatrix& w, int64_t row_begin,
                             int64_t row_end, const uint8_t* inputs, int64_t batch, float* y,
                             int64_t y_stride);
std::string CompareRoundTrunkInput(const Kernels& fast, const float* x, int64_t columns,
                                   int16_t* integers, float* scales);
std::string CompareTrunkWords(const Kernels& fast, const TrunkMatrix& w, int64_t row_begin,
                              int64_t row_end, const TrunkInputs& inputs, int64_t batch, float* y,
                              int64_t y_stride, float* scratch);
std::string CompareRoundExpertInput(const Kernels& fast, const float* x, int64_t columns,
                                    int16_t* integers, float* scales);
std::string CompareExpertWords(const Kernels& fast, const ExpertMatrix& w, int64_t row_begin,
                               int64_t row_end, const ExpertInputs& inputs, int64_t batch, float* y,
                               int64_t y_stride, float* scratch);
std::string CompareBuildTable(const Kernels& fast, const ExpertMatrix& w, const float* x,
                              int64_t group, const IndexChunks& next, uint8_t* table,
                              float* scratch);
std::string CompareTableRows(const Kernels& fast, const ExpertMatrix& w, int64_t row_begin,
                             int64_t row_end, int64_t group, const uint8_t* table,
                             const IndexChunks& next, bool is_first, float* sums);
// Compares sums of several parts with sums of each: that rows are where they belong is seen by
// what compares whole results.
std::string CompareFinishRows(const Kernels& fast, const ExpertMatrix& w, int64_t row_begin,
                              int64_t row_end, const float* sums, int64_t parts,
                              int64_t part_stride, float offset, float* y);

// The table whose functions do so for the functions of `fast`, one of tables.h, and fail a check
// with that text. The scalar table is its own.
const Kernels* CheckedKernels(const Kernels* fast);

}  // namespace waste

#endif  // WASTE_CORE_KERNELS_KERNELS_CHECKED_H_
