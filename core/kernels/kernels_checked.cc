// SPDX-License-Identifier: Apache-2.0

#include "kernels/kernels_checked.h"

#include <cmath>
#include <span>
#include <vector>

#include "base/check.h"
#include "kernels/comparison.h"
#include "kernels/tables.h"

namespace waste {
namespace {

// Rows of y = W x. `roundings` are those of a sum; `row(r)` decodes W.
struct Rows {
  const char* what;
  int64_t row_begin, row_end, columns;
  const float* x;
  int64_t x_stride, batch;
  const float* y;
  int64_t y_stride;
  int64_t roundings;

  template <typename Row>
  std::string Compare(const std::vector<float>& expected, const Row& row) const {
    std::vector<float> weights(static_cast<size_t>(columns));
    for (int64_t r = row_begin; r < row_end; ++r) {
      row(r, weights);
      for (int64_t b = 0; b < batch; ++b) {
        const double magnitude = Magnitude(weights.data(), x + b * x_stride, columns);
        const float scalar = expected[static_cast<size_t>(b * y_stride + r)];
        std::string wrong =
            CompareValue(what, r, y[b * y_stride + r], scalar,
                         static_cast<double>(roundings) * kRounding * magnitude, magnitude);
        if (!wrong.empty()) return wrong + " (input " + std::to_string(b) + ")";
      }
    }
    return {};
  }
};

const char* NameOf(ElementwiseKernel Kernels::*function) {
  if (function == &Kernels::exp) return "exp";
  if (function == &Kernels::sigmoid) return "sigmoid";
  return function == &Kernels::softplus ? "softplus" : "tanh";
}

void Require(Isa isa, const std::string& wrong) {
  if (wrong.empty()) return;
  FailCheck((IsaName(isa) + std::string(" kernel, ") + wrong).c_str(), __FILE__, __LINE__);
}

// Tables hold plain functions, so which table is checked is part of the type.
template <const Kernels* (*kFast)()>
struct Checked {
  static float Dot(const float* a, const float* b, int64_t n) {
    float result;
    Require(kFast()->isa, CompareDot(*kFast(), a, b, n, &result));
    return result;
  }
  static void Axpy(float a, const float* x, float* y, int64_t n) {
    Require(kFast()->isa, CompareAxpy(*kFast(), a, x, y, n));
  }
  static void Multiply(const float* x, const float* f, int64_t n, float* y) {
    Require(kFast()->isa, CompareMultiply(*kFast(), x, f, n, y));
  }
  static void ScaleRows(const float* f, const float* x, int64_t rows, int64_t n, float* y) {
    Require(kFast()->isa, CompareScaleRows(*kFast(), f, x, rows, n, y));
  }
  static void MultiplyAdd(const float* a, int64_t a_row, int64_t a_step, const float* b,
                          int64_t b_stride, int64_t m, int64_t k, int64_t n, float* c,
                          int64_t c_stride) {
    Require(kFast()->isa,
            CompareMultiplyAdd(*kFast(), a, a_row, a_step, b, b_stride, m, k, n, c, c_stride));
  }
  template <ElementwiseKernel Kernels::*kFunction>
  static void Elementwise(const float* x, int64_t n, float* y) {
    Require(kFast()->isa, CompareFunction(*kFast(), kFunction, x, n, y));
  }
  static void TrunkRows(const TrunkMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
                        int64_t x_stride, int64_t batch, float* y, int64_t y_stride,
                        float* scratch) {
    Require(kFast()->isa, CompareTrunkRows(*kFast(), w, row_begin, row_end, x, x_stride, batch, y,
                                           y_stride, scratch));
  }
  static void TrunkTransposed(const TrunkMatrix& w, int64_t row_begin, int64_t row_end,
                              const float* x, int64_t x_stride, int64_t batch, float* y,
                              int64_t y_stride, float* scratch) {
    Require(kFast()->isa, CompareTrunkTransposed(*kFast(), w, row_begin, row_end, x, x_stride,
                                                 batch, y, y_stride, scratch));
  }
  static void SplitInput(const float* x, int64_t columns, uint8_t* out) {
    Require(kFast()->isa, CompareSplitInput(*kFast(), x, columns, out));
  }
  static void SplitRows(const TrunkMatrix& w, int64_t row_begin, int64_t row_end,
                        const uint8_t* inputs, int64_t batch, float* y, int64_t y_stride) {
    Require(kFast()->isa,
            CompareSplitRows(*kFast(), w, row_begin, row_end, inputs, batch, y, y_stride));
  }
  static void RoundTrunkInput(const float* x, int64_t columns, int16_t* integers, float* scales) {
    Require(kFast()->isa, CompareRoundTrunkInput(*kFast(), x, columns, integers, scales));
  }
  static void TrunkWords(const TrunkMatrix& w, int64_t row_begin, int64_t row_end,
                         const TrunkInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                         float* scratch) {
    Require(kFast()->isa, CompareTrunkWords(*kFast(), w, row_begin, row_end, inputs, batch, y,
                                            y_stride, scratch));
  }
  static void RoundExpertInput(const float* x, int64_t columns, int16_t* integers, float* scales) {
    Require(kFast()->isa, CompareRoundExpertInput(*kFast(), x, columns, integers, scales));
  }
  static void ExpertWords(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                          const ExpertInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                          float* scratch) {
    Require(kFast()->isa, CompareExpertWords(*kFast(), w, row_begin, row_end, inputs, batch, y,
                                             y_stride, scratch));
  }
  static void ExpertRows(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
                         int64_t x_stride, int64_t batch, float* y, int64_t y_stride,
                         float* scratch) {
    Require(kFast()->isa, CompareExpertRows(*kFast(), w, row_begin, row_end, x, x_stride, batch, y,
                                            y_stride, scratch));
  }
  static void BuildTable(const ExpertMatrix& w, const float* x, int64_t group,
                         const IndexChunks& next, uint8_t* table, float* scratch) {
    Require(kFast()->isa, CompareBuildTable(*kFast(), w, x, group, next, table, scratch));
  }
  static void TableRows(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, int64_t group,
                        const uint8_t* table, const IndexChunks& next, bool is_first, float* sums) {
    Require(kFast()->isa,
            CompareTableRows(*kFast(), w, row_begin, row_end, group, table, next, is_first, sums));
  }
  static void FinishRows(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                         const float* sums, int64_t parts, int64_t part_stride, float offset,
                         float* y) {
    Require(kFast()->isa, CompareFinishRows(*kFast(), w, row_begin, row_end, sums, parts,
                                            part_stride, offset, y));
  }
  static void DeltaStep(const float* state, float* next, const float* decay, const float* k,
                        const float* q, const float* v, float beta, int64_t keys, int64_t values,
                        float* out, float* scratch) {
    Require(kFast()->isa, CompareDeltaStep(*kFast(), state, next, decay, k, q, v, beta, keys,
                                           values, out, scratch));
  }
  static void DecayedDots(const float* decay, const float* a, const float* b, int64_t stride,
                          int64_t rows, int64_t n, float* x, float* to_a, float* to_b,
                          int64_t to_stride) {
    Require(kFast()->isa,
            CompareDecayedDots(*kFast(), decay, a, b, stride, rows, n, x, to_a, to_b, to_stride));
  }

  static const Kernels* Table() {
    static const Kernels table = [] {
      Kernels checked = *kFast();  // with its ISA
      checked.dot = Dot;
      checked.axpy = Axpy;
      checked.multiply = Multiply;
      checked.scale_rows = ScaleRows;
      checked.multiply_add = MultiplyAdd;
      checked.exp = Elementwise<&Kernels::exp>;
      checked.sigmoid = Elementwise<&Kernels::sigmoid>;
      checked.softplus = Elementwise<&Kernels::softplus>;
      checked.tanh = Elementwise<&Kernels::tanh>;
      checked.trunk_rows = TrunkRows;
      checked.trunk_transposed = TrunkTransposed;
      if (checked.split_input != nullptr) checked.split_input = SplitInput;
      if (checked.split_rows != nullptr) checked.split_rows = SplitRows;
      if (checked.round_trunk_input != nullptr) checked.round_trunk_input = RoundTrunkInput;
      if (checked.trunk_words != nullptr) checked.trunk_words = TrunkWords;
      checked.expert_rows = ExpertRows;
      if (checked.round_expert_input != nullptr) checked.round_expert_input = RoundExpertInput;
      if (checked.expert_words != nullptr) checked.expert_words = ExpertWords;
      if (checked.build_table != nullptr) checked.build_table = BuildTable;
      if (checked.table_rows != nullptr) checked.table_rows = TableRows;
      if (checked.finish_rows != nullptr) checked.finish_rows = FinishRows;
      checked.delta_step = DeltaStep;
      checked.decayed_dots = DecayedDots;
      return checked;
    }();
    return &table;
  }
  // Also of a table that is checked already.
  static bool IsFor(const Kernels* table) {
    return kFast() != nullptr && (table == kFast() || table == Table());
  }
};

}  // namespace

std::string CompareDot(const Kernels& fast, const float* a, const float* b, int64_t n,
                       float* result) {
  *result = fast.dot(a, b, n);
  const double magnitude = Magnitude(a, b, n);
  return CompareValue("dot of", n, *result, ScalarKernels()->dot(a, b, n),
                      static_cast<double>(n) * kRounding * magnitude, magnitude);
}

std::string CompareAxpy(const Kernels& fast, float a, const float* x, float* y, int64_t n) {
  const std::vector<float> before(y, y + n);
  std::vector<float> expected = before;
  fast.axpy(a, x, y, n);
  ScalarKernels()->axpy(a, x, expected.data(), n);
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    const double magnitude = std::fabs(double{a} * x[i]) + std::fabs(double{before[at]});
    std::string wrong =
        CompareValue("axpy", i, y[i], expected[at], 2 * kRounding * magnitude, magnitude);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

std::string CompareMultiplyAdd(const Kernels& fast, const float* a, int64_t a_row, int64_t a_step,
                               const float* b, int64_t b_stride, int64_t m, int64_t k, int64_t n,
                               float* c, int64_t c_stride) {
  std::vector<float> expected(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) expected[static_cast<size_t>(i * n + j)] = c[i * c_stride + j];
  const std::vector<float> before = expected;
  fast.multiply_add(a, a_row, a_step, b, b_stride, m, k, n, c, c_stride);
  ScalarKernels()->multiply_add(a, a_row, a_step, b, b_stride, m, k, n, expected.data(), n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<size_t>(i * n + j);
      double magnitude = std::fabs(double{before[at]});
      for (int64_t t = 0; t < k; ++t)
        magnitude += std::fabs(double{a[i * a_row + t * a_step]} * b[t * b_stride + j]);
      std::string wrong =
          CompareValue("product of row", i, c[i * c_stride + j], expected[at],
                       static_cast<double>(k + 1) * kRounding * magnitude, magnitude);
      if (!wrong.empty()) return wrong + " (column " + std::to_string(j) + ")";
    }
  }
  return {};
}

std::string CompareFunction(const Kernels& fast, ElementwiseKernel Kernels::*function,
                            const float* x, int64_t n, float* y) {
  const std::vector<float> in(x, x + n);  // y may be x
  std::vector<float> expected(in.size());
  (fast.*function)(x, n, y);
  (ScalarKernels()->*function)(in.data(), n, expected.data());
  const bool may_vanish = function == &Kernels::softplus || function == &Kernels::tanh;
  for (int64_t i = 0; i < n; ++i) {
    const float scalar = expected[static_cast<size_t>(i)];
    const double magnitude = std::fabs(double{scalar});
    std::string wrong = CompareValue(NameOf(function), i, y[i], scalar,
                                     1e-6 * magnitude + (may_vanish ? 1e-30 : 0.0), magnitude);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

std::string CompareTrunkRows(const Kernels& fast, const TrunkMatrix& w, int64_t row_begin,
                             int64_t row_end, const float* x, int64_t x_stride, int64_t batch,
                             float* y, int64_t y_stride, float* scratch) {
  fast.trunk_rows(w, row_begin, row_end, x, x_stride, batch, y, y_stride, scratch);
  std::vector<float> expected(static_cast<size_t>(batch * y_stride));
  ScalarKernels()->trunk_rows(w, row_begin, row_end, x, x_stride, batch, expected.data(), y_stride,
                              scratch);
  const Rows rows = {"trunk row", row_begin, row_end, w.columns, x,
                     x_stride,    batch,     y,       y_stride,  w.columns};
  return rows.Compare(expected,
                      [&](int64_t r, std::span<float> out) { DecodeTrunkRow(w, r, out); });
}

std::string CompareTrunkTransposed(const Kernels& fast, const TrunkMatrix& w, int64_t row_begin,
                                   int64_t row_end, const float* x, int64_t x_stride, int64_t batch,
                                   float* y, int64_t y_stride, float* scratch) {
  fast.trunk_transposed(w, row_begin, row_end, x, x_stride, batch, y, y_stride, scratch);
  std::vector<float> expected(static_cast<size_t>(w.columns)), row(expected.size());
  const auto roundings = static_cast<double>(row_end - row_begin) * kRounding;
  for (int64_t b = 0; b < batch; ++b) {
    const float* const input = x + b * x_stride;
    ScalarKernels()->trunk_transposed(w, row_begin, row_end, input, x_stride, 1, expected.data(),
                                      w.columns, scratch);
    std::vector<double> magnitude(expected.size());
    for (int64_t r = row_begin; r < row_end; ++r) {
      DecodeTrunkRow(w, r, row);
      for (size_t c = 0; c < row.size(); ++c)
        magnitude[c] += std::fabs(double{input[r - row_begin]} * row[c]);
    }
    for (size_t c = 0; c < row.size(); ++c) {
      const auto column = static_cast<int64_t>(c);
      std::string wrong = CompareValue("transposed column", column, y[b * y_stride + column],
                                       expected[c], roundings * magnitude[c], magnitude[c]);
      if (!wrong.empty()) return wrong + " (input " + std::to_string(b) + ")";
    }
  }
  return {};
}

std::string CompareExpertRows(const Kernels& fast, const ExpertMatrix& w, int64_t row_begin,
                              int64_t row_end, const float* x, int64_t x_stride, int64_t batch,
                              float* y, int64_t y_stride, float* scratch) {
  fast.expert_rows(w, row_begin, row_end, x, x_stride, batch, y, y_stride, scratch);
  std::vector<float> expected(static_cast<size_t>(batch * y_stride));
  ScalarKernels()->expert_rows(w, row_begin, row_end, x, x_stride, batch, expected.data(), y_stride,
                               scratch);
  // A sum, its scale, and that the magnitude is of weights that were rounded when they were scaled.
  const Rows rows = {"expert row", row_begin, row_end, w.columns, x,
                     x_stride,     batch,     y,       y_stride,  w.columns + 3};
  return rows.Compare(expected,
                      [&](int64_t r, std::span<float> out) { DecodeExpertRow(w, r, out); });
}

const Kernels* CheckedKernels(const Kernels* fast) {
  if (Checked<Avx2Kernels>::IsFor(fast)) return Checked<Avx2Kernels>::Table();
  if (Checked<Avx512Kernels>::IsFor(fast)) return Checked<Avx512Kernels>::Table();
  if (Checked<Avx512VbmiKernels>::IsFor(fast)) return Checked<Avx512VbmiKernels>::Table();
  if (Checked<NeonKernels>::IsFor(fast)) return Checked<NeonKernels>::Table();
  WASTE_CHECK(fast == ScalarKernels());
  return fast;
}

}  // namespace waste
