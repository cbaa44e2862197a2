// SPDX-License-Identifier: Apache-2.0
//
// The chunked delta rule and the recurrence, both against the recurrence in double.

#include "model/delta_rule.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "support/tiny_container.h"

namespace waste {
namespace {

// Inputs of one head inside rows that are wider than it, and a state that is not empty.
struct Inputs {
  int64_t count, dim, stride, beta_stride = 3;
  std::vector<float> q, k, v, decay, beta, state;

  Inputs(int64_t rows, int64_t size, uint32_t seed) : count(rows), dim(size), stride(size + 5) {
    std::mt19937 random(seed);
    q = RandomWeights(count * stride, random);
    k = RandomWeights(count * stride, random);
    v = RandomWeights(count * stride, random);
    decay.assign(q.size(), 1.0f);
    beta = RandomWeights(count * beta_stride, random);
    state = RandomWeights(dim * dim, random);
    for (float& b : beta) b = 0.5f + 0.5f * b;
    for (int64_t t = 0; t < count; ++t) {
      Unit(&q[t * stride]);
      Unit(&k[t * stride]);
    }
  }

  void Unit(float* x) const {
    double squares = 1e-6;
    for (int64_t i = 0; i < dim; ++i) squares += x[i] * x[i];
    for (int64_t i = 0; i < dim; ++i) x[i] = static_cast<float>(x[i] / std::sqrt(squares));
  }

  DeltaRows Rows(std::vector<float>& out) const {
    return {.q = q.data(),
            .k = k.data(),
            .v = v.data(),
            .decay = decay.data(),
            .stride = stride,
            .beta = beta.data(),
            .beta_stride = beta_stride,
            .count = count,
            .position = 3,
            .out = out.data()};
  }
};

struct Outcome {
  std::vector<double> out, state;
};

Outcome Naive(const Inputs& in) {
  const int64_t n = in.dim;
  Outcome result{std::vector<double>(in.count * n), {in.state.begin(), in.state.end()}};
  std::vector<double>& s = result.state;
  for (int64_t t = 0; t < in.count; ++t) {
    const float *q = &in.q[t * in.stride], *k = &in.k[t * in.stride], *v = &in.v[t * in.stride];
    std::vector<double> u(n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        s[i * n + j] *= in.decay[t * in.stride + i];
        u[j] += s[i * n + j] * k[i];
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        s[i * n + j] += k[i] * double{in.beta[t * in.beta_stride]} * (v[j] - u[j]);
        result.out[t * n + j] += s[i * n + j] * q[i];
      }
    }
  }
  return result;
}

using Rule = void (*)(const Kernels&, const DeltaRows&, int64_t, const float*, float*, uint8_t*);

Outcome Run(Rule rule, const Inputs& in, Isa isa, bool in_place) {
  std::vector<float> separate(in.q.size()), state = in.state;
  Inputs copy = in;
  std::vector<float>& out = in_place ? copy.q : separate;
  AlignedBuffer scratch = Require(AlignedBuffer::Allocate(DeltaScratchBytes(in.dim)));
  rule(*Require(KernelsFor(isa)), copy.Rows(out), in.dim, in.state.data(), state.data(),
       scratch.data());
  Outcome result;
  result.state.assign(state.begin(), state.end());
  for (int64_t t = 0; t < in.count; ++t)
    result.out.insert(result.out.end(), out.begin() + t * in.stride,
                      out.begin() + t * in.stride + in.dim);
  return result;
}

double Difference(const std::vector<double>& got, const std::vector<double>& expected) {
  double largest = 0, difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    largest = std::max(largest, std::fabs(expected[i]));
    difference = std::max(difference, std::fabs(got[i] - expected[i]));
  }
  return difference / largest;
}

void CheckAgreement(const Inputs& in, double tolerance = 2e-6) {
  const Outcome expected = Naive(in);
  for (const Isa isa : {Isa::kScalar, Isa::kBest}) {
    for (const Rule rule : {DeltaRecurrent, DeltaChunked}) {
      const Outcome got = Run(rule, in, isa, false);
      BOOST_TEST(Difference(got.out, expected.out) < tolerance);
      BOOST_TEST(Difference(got.state, expected.state) < tolerance);
      const Outcome in_place = Run(rule, in, isa, true);
      BOOST_TEST((in_place.out == got.out && in_place.state == got.state));
    }
  }
}

// Log-decays by row and key.
using LogDecay = double (*)(int64_t t, int64_t i);

void SetDecay(Inputs& in, LogDecay log_decay) {
  for (int64_t t = 0; t < in.count; ++t)
    for (int64_t i = 0; i < in.dim; ++i)
      in.decay[t * in.stride + i] = static_cast<float>(std::exp(log_decay(t, i)));
}

BOOST_AUTO_TEST_SUITE(delta_rule)

BOOST_AUTO_TEST_CASE(both_forms_agree_with_the_definition_for_every_length) {
  for (int64_t count = 1; count <= 64; ++count) {
    Inputs in(count, 24, static_cast<uint32_t>(count));
    SetDecay(in,
             [](int64_t t, int64_t i) { return -0.01 * static_cast<double>((t * 7 + i) % 50); });
    BOOST_TEST_CONTEXT(count << " rows") CheckAgreement(in);
  }
}

BOOST_AUTO_TEST_CASE(every_dimension_agrees) {
  for (const int64_t dim : {1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 64, 100, 128}) {
    Inputs in(37, dim, static_cast<uint32_t>(dim));
    SetDecay(in, [](int64_t t, int64_t i) { return -0.1 * static_cast<double>((t + i) % 9); });
    BOOST_TEST_CONTEXT("dimension " << dim) CheckAgreement(in);
  }
}

BOOST_AUTO_TEST_CASE(strong_mixed_and_total_decay_agree) {
  struct {
    const char* name;
    LogDecay log_decay;
  } const kCases[] = {
      {"none", [](int64_t, int64_t) { return 0.0; }},
      {"-20 a step", [](int64_t, int64_t) { return -20.0; }},
      {"-20, then none", [](int64_t t, int64_t) { return t % 16 < 8 ? -20.0 : 0.0; }},
      {"none, then -20", [](int64_t t, int64_t) { return t % 16 < 8 ? 0.0 : -20.0; }},
      {"by key", [](int64_t, int64_t i) { return i % 2 == 0 ? -20.0 : -1e-4; }},
      {"underflow", [](int64_t t, int64_t) { return t == 20 ? -200.0 : -0.1; }},
      {"always zero", [](int64_t, int64_t) { return -1e9; }},
      {"-5, the bound of K3", [](int64_t, int64_t) { return -5.0; }},
  };
  for (const auto& c : kCases) {
    Inputs in(64, 32, 3);
    SetDecay(in, c.log_decay);
    BOOST_TEST_CONTEXT(c.name) CheckAgreement(in);
  }
}

BOOST_AUTO_TEST_CASE(repeated_keys_and_full_beta_agree) {
  Inputs in(48, 16, 5);
  std::fill(in.beta.begin(), in.beta.end(), 1.0f);
  for (int64_t t = 1; t < in.count; ++t)
    std::copy_n(in.k.begin(), in.dim, in.k.begin() + t * in.stride);
  CheckAgreement(in, 1e-5);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
