// SPDX-License-Identifier: Apache-2.0
//
// Comparisons of the kernels of the delta rule: its step, and what its chunks need beside products.

#include <cmath>
#include <vector>

#include "kernels/comparison.h"
#include "kernels/kernels_checked.h"
#include "kernels/tables.h"

namespace waste {
namespace {

struct Delta {
  const float *state, *decay, *k, *q, *v;
  float beta;
  int64_t keys, values;
};

// How far a step's results for value j may be from the exact ones, from what goes into them.
struct DeltaBounds {
  std::vector<double> state;  // of column j
  double out = 0;
  double magnitude = 0;  // of the largest term

  DeltaBounds(const Delta& in, int64_t j) : state(static_cast<size_t>(in.keys)) {
    const double sum_rounding = static_cast<double>(in.keys + 4) * kRounding;
    double u = 0;
    for (int64_t i = 0; i < in.keys; ++i) {
      u += std::fabs(double{in.k[i]} * in.decay[i] * in.state[i * in.values + j]);
    }
    const double beta = std::fabs(double{in.beta}), v = std::fabs(double{in.v[j]});
    const double delta = beta * (v + u);
    const double delta_bound = beta * (sum_rounding * u + 3 * kRounding * (v + u));
    magnitude = u + delta;
    for (int64_t i = 0; i < in.keys; ++i) {
      const double k = std::fabs(double{in.k[i]}), q = std::fabs(double{in.q[i]});
      const double kept = std::fabs(double{in.decay[i]} * in.state[i * in.values + j]);
      const double size = kept + k * delta;
      double& bound = state[static_cast<size_t>(i)];
      bound = k * delta_bound + 4 * kRounding * size;
      out += q * (bound + sum_rounding * size);
      magnitude += size + q * size;
    }
  }
};

// What is the same on every ISA, to the bit but for what is no number.
std::string CompareSame(const char* what, const std::vector<float>& expected, const float* got) {
  for (size_t i = 0; i < expected.size(); ++i) {
    std::string wrong = CompareValue(what, static_cast<int64_t>(i), got[i], expected[i], 0,
                                     std::fabs(double{expected[i]}));
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace

std::string CompareMultiply(const Kernels& fast, const float* x, const float* f, int64_t n,
                            float* y) {
  std::vector<float> expected(static_cast<size_t>(n));  // y may be x or f
  ScalarKernels()->multiply(x, f, n, expected.data());
  fast.multiply(x, f, n, y);
  return CompareSame("product", expected, y);
}

std::string CompareScaleRows(const Kernels& fast, const float* f, const float* x, int64_t rows,
                             int64_t n, float* y) {
  std::vector<float> expected(static_cast<size_t>(rows * n));
  ScalarKernels()->scale_rows(f, x, rows, n, expected.data());
  fast.scale_rows(f, x, rows, n, y);
  return CompareSame("scaled", expected, y);
}

std::string CompareDeltaStep(const Kernels& fast, const float* state, float* next,
                             const float* decay, const float* k, const float* q, const float* v,
                             float beta, int64_t keys, int64_t values, float* out, float* scratch) {
  const std::vector<float> before(state, state + keys * values);  // next may be state
  std::vector<float> expected(before.size()), expected_out(static_cast<size_t>(values));
  fast.delta_step(state, next, decay, k, q, v, beta, keys, values, out, scratch);
  ScalarKernels()->delta_step(before.data(), expected.data(), decay, k, q, v, beta, keys, values,
                              expected_out.data(), scratch);
  const Delta in = {before.data(), decay, k, q, v, beta, keys, values};
  for (int64_t j = 0; j < values; ++j) {
    const DeltaBounds bounds(in, j);
    for (int64_t i = 0; i < keys; ++i) {
      const int64_t at = i * values + j;
      std::string wrong = CompareValue("state", at, next[at], expected[static_cast<size_t>(at)],
                                       bounds.state[static_cast<size_t>(i)], bounds.magnitude);
      if (!wrong.empty()) return wrong;
    }
    std::string wrong =
        CompareValue("delta step's value", j, out[j], expected_out[static_cast<size_t>(j)],
                     bounds.out, bounds.magnitude);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

std::string CompareDecayedDots(const Kernels& fast, const float* decay, const float* a,
                               const float* b, int64_t stride, int64_t rows, int64_t n, float* x,
                               float* to_a, float* to_b, int64_t to_stride) {
  std::vector<float> decayed(x, x + n);
  fast.decayed_dots(decay, a, b, stride, rows, n, x, to_a, to_b, to_stride);
  for (int64_t t = 0; t < rows; ++t) {
    float expected[2];
    const float* const of[2] = {a + t * stride, b + t * stride};
    ScalarKernels()->decayed_dots(decay + t * stride, of[0], of[1], 0, 1, n, decayed.data(),
                                  expected, expected + 1, 0);
    const float got[2] = {to_a[t * to_stride], to_b[t * to_stride]};
    for (int i = 0; i < 2; ++i) {
      const double magnitude = Magnitude(of[i], decayed.data(), n);
      std::string wrong = CompareValue("dot of a decayed row with row", t, got[i], expected[i],
                                       static_cast<double>(n) * kRounding * magnitude, magnitude);
      if (!wrong.empty()) return wrong;
    }
  }
  return CompareSame("decayed", decayed, x);
}

}  // namespace waste
