// SPDX-License-Identifier: Apache-2.0
//
// The comparison of WASTE_CHECK_KERNELS: it is silent about kernels that are right, and tells a
// wrong element. Every other test of such a build runs through it.

#include "kernels/kernels_checked.h"

#include <algorithm>
#include <cstring>

#include "support/kernel_case.h"

namespace waste {
namespace {

constexpr int64_t kRows = 70, kColumns = 136, kKeys = 20, kValues = 30;

// Inputs for every function, and what each says of a table.
struct Inputs {
  std::vector<float> x = RandomFloats(1, kColumns), y = RandomFloats(2, kColumns);
  std::vector<uint8_t> payload = RandomBytes(3, kRows* TrunkRowBytes(TrunkFormat::kQ8G, kColumns));
  std::vector<uint8_t> scales = std::vector<uint8_t>(4 * kRows, 0x2C);
  ExpertCodec codec = {IndexKind::kByte, 3, 256};
  std::vector<uint8_t> indices = RandomBytes(4, ExpertIndexBytes(codec, kRows, kColumns));
  std::vector<float> book = RandomFloats(5, 256 * kVectorSize);
  std::vector<float> state = RandomFloats(6, kKeys* kValues);

  std::string Dot(const Kernels& kernels) {
    float result;
    return CompareDot(kernels, x.data(), y.data(), kColumns, &result);
  }
  std::string Axpy(const Kernels& kernels) {
    return CompareAxpy(kernels, 0.7f, x.data(), y.data(), kColumns);
  }
  std::string TrunkRows(const Kernels& kernels) {
    const TrunkMatrix w = {TrunkFormat::kQ8G, kRows, kColumns, payload.data(), scales.data()};
    std::vector<float> out(kRows), scratch(RowsScratch(kColumns));
    return CompareTrunkRows(kernels, w, 3, kRows, x.data(), kColumns, 1, out.data(), kRows,
                            scratch.data());
  }
  std::string ExpertRows(const Kernels& kernels) {
    const ExpertMatrix w = {codec,          kRows,         kColumns,
                            indices.data(), scales.data(), {book.data(), book.data(), book.data()}};
    std::vector<float> out(kRows), scratch(RowsScratch(kColumns));
    return CompareExpertRows(kernels, w, 0, kRows, x.data(), kColumns, 1, out.data(), kRows,
                             scratch.data());
  }
  std::string DeltaStep(const Kernels& kernels) {
    std::vector<float> out(kValues), scratch(kValues);
    return CompareDeltaStep(kernels, state.data(), state.data(), x.data(), x.data() + kKeys,
                            x.data() + 2 * kKeys, y.data(), 0.5f, kKeys, kValues, out.data(),
                            scratch.data());
  }
};

// Scalar functions with one element a thousandth off.
Kernels Broken() {
  Kernels broken = RequireKernels(Isa::kScalar);
  static const Kernels right = broken;
  broken.dot = [](const float* a, const float* b, int64_t n) { return right.dot(a, b, n - 1); };
  broken.axpy = [](float a, const float* x, float* y, int64_t n) {
    right.axpy(a, x, y, n);
    y[n - 1] *= 1.001f;
  };
  broken.trunk_rows = [](const TrunkMatrix& w, int64_t begin, int64_t end, const float* x,
                         int64_t x_stride, int64_t batch, float* y, int64_t y_stride,
                         float* scratch) {
    right.trunk_rows(w, begin, end, x, x_stride, batch, y, y_stride, scratch);
    y[69] *= 1.001f;
  };
  broken.expert_rows = [](const ExpertMatrix& w, int64_t begin, int64_t end, const float* x,
                          int64_t x_stride, int64_t batch, float* y, int64_t y_stride,
                          float* scratch) {
    right.expert_rows(w, begin, end, x, x_stride, batch, y, y_stride, scratch);
    y[69] *= 1.001f;
  };
  broken.delta_step = [](const float* state, float* next, const float* decay, const float* k,
                         const float* q, const float* v, float beta, int64_t keys, int64_t values,
                         float* out, float* scratch) {
    right.delta_step(state, next, decay, k, q, v, beta, keys, values, out, scratch);
    next[5] *= 1.001f;
  };
  return broken;
}

BOOST_AUTO_TEST_SUITE(checked)

WASTE_KERNEL_CASE(nothing_is_said_about_right_kernels) {
  Inputs inputs;
  BOOST_TEST(inputs.Dot(kernels) == "");
  BOOST_TEST(inputs.Axpy(kernels) == "");
  BOOST_TEST(inputs.TrunkRows(kernels) == "");
  BOOST_TEST(inputs.ExpertRows(kernels) == "");
  BOOST_TEST(inputs.DeltaStep(kernels) == "");
}

void RequireToldElement(const std::string& wrong, const std::string& element) {
  BOOST_TEST(wrong.starts_with(element), wrong);
  BOOST_TEST(wrong.find("scalar") != std::string::npos, wrong);
}

BOOST_AUTO_TEST_CASE(a_wrong_element_is_told) {
  Inputs inputs;
  const Kernels broken = Broken();
  RequireToldElement(inputs.Dot(broken), "dot of 136:");
  RequireToldElement(inputs.Axpy(broken), "axpy 135:");
  RequireToldElement(inputs.TrunkRows(broken), "trunk row 69:");
  RequireToldElement(inputs.ExpertRows(broken), "expert row 69:");
  RequireToldElement(inputs.DeltaStep(broken), "state 5:");
}

BOOST_AUTO_TEST_CASE(what_is_no_number_is_told_where_the_sum_is_one) {
  Inputs inputs;
  Kernels broken = RequireKernels(Isa::kScalar);
  broken.dot = [](const float*, const float*, int64_t) { return std::nanf(""); };
  RequireToldElement(inputs.Dot(broken), "dot of 136: nan");
  inputs.x[0] = std::nanf("");  // now the sum is none either
  BOOST_TEST(inputs.Dot(broken) == "");
}

WASTE_KERNEL_CASE(a_checked_table_gives_what_the_table_gives) {
  const Kernels* const checked = CheckedKernels(&kernels);
  BOOST_TEST((checked->isa == kernels.isa));
  const std::vector<float> a = RandomFloats(7, 300), b = RandomFloats(8, 300);
  BOOST_TEST(checked->dot(a.data(), b.data(), 300) == kernels.dot(a.data(), b.data(), 300));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
