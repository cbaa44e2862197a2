// SPDX-License-Identifier: Apache-2.0
//
// The meaning of every kernel: plain loops in the order of the formula, nothing fused, nothing
// reordered. The other tables are tested against this one. Pure functions; any thread.

#include <cmath>

#include "base/bytes.h"
#include "base/half.h"
#include "kernels/tables.h"

namespace waste {
namespace {

float Dot(const float* a, const float* b, int64_t n) {
  float sum = 0.0f;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void Axpy(float a, const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

void Multiply(const float* x, const float* f, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * f[i];
}

void ScaleRows(const float* f, const float* x, int64_t rows, int64_t n, float* y) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < n; ++i) y[r * n + i] = f[r] * x[r * n + i];
}

void MultiplyAdd(const float* a, int64_t a_row, int64_t a_step, const float* b, int64_t b_stride,
                 int64_t m, int64_t k, int64_t n, float* c, int64_t c_stride) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t t = 0; t < k; ++t)
      Axpy(a[i * a_row + t * a_step], b + t * b_stride, c + i * c_stride, n);
}

// Comparisons that no NaN passes, so that it stays.
float BoundedExp(float x) { return std::exp(x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x); }

void Exp(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = BoundedExp(x[i]);
}

void Sigmoids(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = 1.0f / (1.0f + BoundedExp(-x[i]));
}

// Above 20 the 1 is below f32's last place.
void Softpluses(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 20.0f ? x[i] : std::log1p(BoundedExp(x[i]));
}

void Tanhs(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

void TrunkRows(const TrunkMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
               int64_t x_stride, int64_t batch, float* y, int64_t y_stride, float* scratch) {
  for (int64_t r = row_begin; r < row_end; ++r) {
    DecodeTrunkRow(w, r, {scratch, static_cast<size_t>(w.columns)});
    for (int64_t b = 0; b < batch; ++b) {
      y[b * y_stride + r] = Dot(scratch, x + b * x_stride, w.columns);
    }
  }
}

void TrunkTransposed(const TrunkMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
                     int64_t x_stride, int64_t batch, float* y, int64_t y_stride, float* scratch) {
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < w.columns; ++c) y[b * y_stride + c] = 0.0f;
  for (int64_t r = row_begin; r < row_end; ++r) {
    DecodeTrunkRow(w, r, {scratch, static_cast<size_t>(w.columns)});
    for (int64_t b = 0; b < batch; ++b)
      Axpy(x[b * x_stride + r - row_begin], scratch, y + b * y_stride, w.columns);
  }
}

// Row r without its scale, which is applied to the finished sum.
void SumBooks(const ExpertMatrix& w, int64_t r, float* out) {
  for (int64_t v = 0; v < w.columns / kVectorSize; ++v) {
    const std::array<uint8_t, kMaxStages> indices = ExpertIndices(w, r, v);
    for (int64_t i = 0; i < kVectorSize; ++i) {
      float sum = w.books[0][indices[0] * kVectorSize + i];
      for (int32_t s = 1; s < w.codec.stages; ++s) {
        sum += w.books[s][indices[s] * kVectorSize + i];
      }
      out[v * kVectorSize + i] = sum;
    }
  }
}

void ExpertRows(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
                int64_t x_stride, int64_t batch, float* y, int64_t y_stride, float* scratch) {
  for (int64_t r = row_begin; r < row_end; ++r) {
    SumBooks(w, r, scratch);
    const float scale = HalfToFloat(LoadU16(w.scales + 2 * r));
    for (int64_t b = 0; b < batch; ++b) {
      y[b * y_stride + r] = scale * Dot(scratch, x + b * x_stride, w.columns);
    }
  }
}

void DecayedDots(const float* decay, const float* a, const float* b, int64_t stride, int64_t rows,
                 int64_t n, float* x, float* to_a, float* to_b, int64_t to_stride) {
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t i = 0; i < n; ++i) x[i] *= decay[t * stride + i];
    to_a[t * to_stride] = Dot(a + t * stride, x, n);
    to_b[t * to_stride] = Dot(b + t * stride, x, n);
  }
}

void DeltaStep(const float* state, float* next, const float* decay, const float* k, const float* q,
               const float* v, float beta, int64_t keys, int64_t values, float* out,
               float* scratch) {
  for (int64_t j = 0; j < values; ++j) scratch[j] = out[j] = 0.0f;
  for (int64_t i = 0; i < keys; ++i) {
    for (int64_t j = 0; j < values; ++j) {
      next[i * values + j] = state[i * values + j] * decay[i];
      scratch[j] += k[i] * next[i * values + j];  // u
    }
  }
  for (int64_t j = 0; j < values; ++j) scratch[j] = beta * (v[j] - scratch[j]);
  for (int64_t i = 0; i < keys; ++i) {
    for (int64_t j = 0; j < values; ++j) {
      next[i * values + j] += k[i] * scratch[j];
      out[j] += q[i] * next[i * values + j];
    }
  }
}

constexpr Kernels kTable = {.isa = Isa::kScalar,
                            .dot = Dot,
                            .axpy = Axpy,
                            .multiply = Multiply,
                            .scale_rows = ScaleRows,
                            .multiply_add = MultiplyAdd,
                            .exp = Exp,
                            .sigmoid = Sigmoids,
                            .softplus = Softpluses,
                            .tanh = Tanhs,
                            .trunk_rows = TrunkRows,
                            .trunk_transposed = TrunkTransposed,
                            .split_input = nullptr,
                            .split_rows = nullptr,
                            .round_trunk_input = nullptr,
                            .trunk_words = nullptr,
                            .expert_rows = ExpertRows,
                            .round_expert_input = nullptr,
                            .expert_words = nullptr,
                            .build_table = nullptr,
                            .table_rows = nullptr,
                            .finish_rows = nullptr,
                            .delta_step = DeltaStep,
                            .decayed_dots = DecayedDots};

}  // namespace

const Kernels* ScalarKernels() { return &kTable; }

}  // namespace waste
