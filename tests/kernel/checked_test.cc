// SPDX-License-Identifier: Apache-2.0
//
// The comparison of WASTE_CHECK_KERNELS: it is silent about kernels that are right, and tells a
// wrong element. Every other test of such a build runs through it.

#include "kernels/kernels_checked.h"

#include <algorithm>
#include <cstring>

#include "kernels/expert_tables.h"
#include "kernels/split_input.h"
#include "support/expert_case.h"

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
  std::vector<float> words_memory = {};

  std::string Dot(const Kernels& kernels) {
    float result;
    return CompareDot(kernels, x.data(), y.data(), kColumns, &result);
  }
  std::string Axpy(const Kernels& kernels) {
    return CompareAxpy(kernels, 0.7f, x.data(), y.data(), kColumns);
  }
  std::string MultiplyAdd(const Kernels& kernels) {
    std::vector<float> c = state;
    return CompareMultiplyAdd(kernels, x.data(), 12, 1, y.data(), 10, 9, 12, 10, c.data(), 30);
  }
  std::string Function(const Kernels& kernels, ElementwiseKernel Kernels::*function) {
    std::vector<float> in_place = x;
    return CompareFunction(kernels, function, in_place.data(), kColumns, in_place.data());
  }
  TrunkMatrix Trunk(TrunkFormat format) const {
    return {format, kRows, kColumns, payload.data(), scales.data()};
  }
  std::string TrunkRows(const Kernels& kernels) {
    const TrunkMatrix w = Trunk(TrunkFormat::kQ8G);
    std::vector<float> out(kRows), scratch(RowsScratch(kColumns));
    return CompareTrunkRows(kernels, w, 3, kRows, x.data(), kColumns, 1, out.data(), kRows,
                            scratch.data());
  }
  std::string TrunkTransposed(const Kernels& kernels) {
    const TrunkMatrix w = Trunk(TrunkFormat::kQ8G);
    std::vector<float> out(kColumns), scratch(RowsScratch(kColumns));
    return CompareTrunkTransposed(kernels, w, 3, kRows, x.data(), kColumns, 1, out.data(), kColumns,
                                  scratch.data());
  }
  std::string ExpertRows(const Kernels& kernels) {
    const ExpertMatrix w = {codec,          kRows,         kColumns,
                            indices.data(), scales.data(), {book.data(), book.data(), book.data()}};
    std::vector<float> out(kRows), scratch(RowsScratch(kColumns));
    return CompareExpertRows(kernels, w, 0, kRows, x.data(), kColumns, 1, out.data(), kRows,
                             scratch.data());
  }
  // What fills, and what reads what the right kernels filled.
  std::string SplitInput(const Kernels& kernels) {
    std::vector<uint8_t> split(SplitBytes(kColumns));
    return CompareSplitInput(kernels, x.data(), kColumns, split.data());
  }
  std::string SplitRows(const Kernels& kernels, const Kernels& right, TrunkFormat format) {
    std::vector<uint8_t> split(SplitBytes(kColumns));
    right.split_input(x.data(), kColumns, split.data());
    std::vector<float> out(kRows);
    return CompareSplitRows(kernels, Trunk(format), 3, kRows, split.data(), 1, out.data(), kRows);
  }
  std::string RoundTrunkInput(const Kernels& kernels) {
    const TrunkInputs words = Words<TrunkInputs>();
    return CompareRoundTrunkInput(kernels, x.data(), kColumns, words.integers, words.scales);
  }
  std::string RoundExpertInput(const Kernels& kernels) {
    const ExpertInputs words = Words<ExpertInputs>();
    return CompareRoundExpertInput(kernels, x.data(), kColumns, words.integers, words.scales);
  }
  std::string TrunkWords(const Kernels& kernels, const Kernels& right, TrunkFormat format) {
    const TrunkInputs words = Words<TrunkInputs>();
    right.round_trunk_input(x.data(), kColumns, words.integers, words.scales);
    std::vector<float> out(kRows), scratch(RowsScratch(kColumns));
    return CompareTrunkWords(kernels, Trunk(format), 3, kRows, words, 1, out.data(), kRows,
                             scratch.data());
  }
  std::string ExpertWords(const Kernels& kernels, const Kernels& right,
                          const RandomExpert& expert) {
    const ExpertInputs words = Words<ExpertInputs>();
    right.round_expert_input(x.data(), kColumns, words.integers, words.scales);
    std::vector<float> out(kRows), scratch(RowsScratch(kColumns));
    return CompareExpertWords(kernels, expert.w, 0, kRows, words, 1, out.data(), kRows,
                              scratch.data());
  }
  template <typename Kind>
  Kind Words() {
    words_memory.assign(static_cast<size_t>(Kind::Floats(1, kColumns)), 0.0f);
    return Kind::In(words_memory.data(), 1, kColumns);
  }
  std::string BuildTable(const Kernels& kernels, const RandomExpert& expert) {
    std::vector<uint8_t> table(TableGroupBytes(expert.w.codec));
    std::vector<float> scratch(kTableScratch);
    return CompareBuildTable(kernels, expert.w, x.data(), 0, IndexChunks(), table.data(),
                             scratch.data());
  }
  std::string TableRows(const Kernels& kernels, const Kernels& right, const RandomExpert& expert) {
    std::vector<uint8_t> table(TableGroupBytes(expert.w.codec));
    std::vector<float> sums(SumRows(kRows)), scratch(kTableScratch);
    right.build_table(expert.w, x.data(), 0, IndexChunks(), table.data(), scratch.data());
    return CompareTableRows(kernels, expert.w, 0, kRows, 0, table.data(), IndexChunks(), false,
                            sums.data());
  }
  std::string FinishRows(const Kernels& kernels, const RandomExpert& expert) {
    std::vector<float> sums(3 * SumRows(kRows)), out(kRows);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = 1.0f + static_cast<float>(i % 17);
    return CompareFinishRows(kernels, expert.w, 0, kRows, sums.data(), 3, SumRows(kRows), -0.5f,
                             out.data());
  }
  std::string DeltaStep(const Kernels& kernels) {
    std::vector<float> out(kValues), scratch(kValues);
    return CompareDeltaStep(kernels, state.data(), state.data(), x.data(), x.data() + kKeys,
                            x.data() + 2 * kKeys, y.data(), 0.5f, kKeys, kValues, out.data(),
                            scratch.data());
  }
  std::string Multiply(const Kernels& kernels) {
    return CompareMultiply(kernels, x.data(), y.data(), kKeys, y.data());
  }
  std::string ScaleRows(const Kernels& kernels) {
    return CompareScaleRows(kernels, x.data(), x.data(), 2, kKeys / 2, y.data());
  }
  std::string DecayedDots(const Kernels& kernels) {
    float of_a[3], of_b[3];
    return CompareDecayedDots(kernels, x.data(), x.data() + 3, x.data() + 5, 7, 3, kKeys, y.data(),
                              of_a, of_b, 1);
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
  broken.multiply_add = [](const float* a, int64_t a_row, int64_t a_step, const float* b,
                           int64_t b_stride, int64_t m, int64_t k, int64_t n, float* c,
                           int64_t c_stride) {
    right.multiply_add(a, a_row, a_step, b, b_stride, m, k, n, c, c_stride);
    c[(m - 1) * c_stride + n - 1] += 0.001f;
  };
  broken.exp = [](const float* x, int64_t n, float* y) {
    right.exp(x, n, y);
    y[n - 1] *= 1.001f;
  };
  broken.tanh = [](const float* x, int64_t n, float* y) {
    right.tanh(x, n, y);
    y[7] = -y[7];
  };
  broken.trunk_rows = [](const TrunkMatrix& w, int64_t begin, int64_t end, const float* x,
                         int64_t x_stride, int64_t batch, float* y, int64_t y_stride,
                         float* scratch) {
    right.trunk_rows(w, begin, end, x, x_stride, batch, y, y_stride, scratch);
    y[69] *= 1.001f;
  };
  broken.trunk_transposed = [](const TrunkMatrix& w, int64_t begin, int64_t end, const float* x,
                               int64_t x_stride, int64_t batch, float* y, int64_t y_stride,
                               float* scratch) {
    right.trunk_transposed(w, begin, end, x, x_stride, batch, y, y_stride, scratch);
    y[w.columns - 1] *= 1.001f;
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
  broken.multiply = [](const float* x, const float* f, int64_t n, float* y) {
    right.multiply(x, f, n, y);
    y[4] += 0.1f;
  };
  broken.scale_rows = [](const float* f, const float* x, int64_t rows, int64_t n, float* y) {
    right.scale_rows(f, x, rows, n, y);
    y[n] += 0.1f;
  };
  broken.decayed_dots = [](const float* decay, const float* a, const float* b, int64_t stride,
                           int64_t rows, int64_t n, float* x, float* to_a, float* to_b,
                           int64_t to_stride) {
    right.decayed_dots(decay, a, b, stride, rows, n, x, to_a, to_b, to_stride);
    to_b[2 * to_stride] += 0.1f;
  };
  return broken;
}

// Functions of `right` with one byte or element off.
Kernels BrokenBytes(const Kernels& whole) {
  static Kernels right;
  right = whole;
  Kernels broken = whole;
  if (right.split_input != nullptr) {
    broken.split_input = [](const float* x, int64_t columns, uint8_t* out) {
      right.split_input(x, columns, out);
      out[kSplitNatural + kTrunkGroup + 9] += 2;  // a low byte of column 9
    };
    broken.split_rows = [](const TrunkMatrix& w, int64_t begin, int64_t end, const uint8_t* inputs,
                           int64_t batch, float* y, int64_t y_stride) {
      right.split_rows(w, begin, end, inputs, batch, y, y_stride);
      y[69] *= 1.01f;
    };
  }
  if (right.trunk_words != nullptr) {
    broken.round_trunk_input = [](const float* x, int64_t columns, int16_t* integers,
                                  float* scales) {
      right.round_trunk_input(x, columns, integers, scales);
      integers[9] = static_cast<int16_t>(integers[9] + 2);
    };
    broken.trunk_words = [](const TrunkMatrix& w, int64_t begin, int64_t end,
                            const TrunkInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                            float* scratch) {
      right.trunk_words(w, begin, end, inputs, batch, y, y_stride, scratch);
      y[69] *= 1.01f;
    };
  }
  if (right.expert_words != nullptr) {
    broken.round_expert_input = [](const float* x, int64_t columns, int16_t* integers,
                                   float* scales) {
      right.round_expert_input(x, columns, integers, scales);
      integers[9] = static_cast<int16_t>(integers[9] + 2);
    };
    broken.expert_words = [](const ExpertMatrix& w, int64_t begin, int64_t end,
                             const ExpertInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                             float* scratch) {
      right.expert_words(w, begin, end, inputs, batch, y, y_stride, scratch);
      y[69] *= 1.1f;
    };
  }
  broken.build_table = [](const ExpertMatrix& w, const float* x, int64_t group,
                          const IndexChunks& next, uint8_t* table, float* scratch) {
    right.build_table(w, x, group, next, table, scratch);
    uint8_t& low = table[kTableHeaderBytes + 9];
    low = static_cast<uint8_t>(low < 8 ? low + 4 : low - 4);
  };
  broken.table_rows = [](const ExpertMatrix& w, int64_t begin, int64_t end, int64_t group,
                         const uint8_t* table, const IndexChunks& next, bool is_first,
                         float* sums) {
    right.table_rows(w, begin, end, group, table, next, is_first, sums);
    for (int64_t i = 64; i < 2 * kIndexBlock; ++i) sums[i] *= 1.01f;  // where row 64 is
  };
  broken.finish_rows = [](const ExpertMatrix& w, int64_t begin, int64_t end, const float* sums,
                          int64_t parts, int64_t part_stride, float offset, float* y) {
    right.finish_rows(w, begin, end, sums, parts, part_stride, offset, y);
    if (parts > 1) y[69] *= 1.001f;
  };
  return broken;
}

constexpr ElementwiseKernel Kernels::*kFunctions[] = {&Kernels::exp, &Kernels::sigmoid,
                                                      &Kernels::softplus, &Kernels::tanh};

BOOST_AUTO_TEST_SUITE(checked)

WASTE_KERNEL_CASE(nothing_is_said_about_right_kernels) {
  Inputs inputs;
  BOOST_TEST(inputs.Dot(kernels) == "");
  BOOST_TEST(inputs.Axpy(kernels) == "");
  BOOST_TEST(inputs.MultiplyAdd(kernels) == "");
  for (const auto function : kFunctions) BOOST_TEST(inputs.Function(kernels, function) == "");
  BOOST_TEST(inputs.TrunkRows(kernels) == "");
  BOOST_TEST(inputs.TrunkTransposed(kernels) == "");
  BOOST_TEST(inputs.ExpertRows(kernels) == "");
  BOOST_TEST(inputs.DeltaStep(kernels) == "");
  BOOST_TEST(inputs.Multiply(kernels) == "");
  BOOST_TEST(inputs.ScaleRows(kernels) == "");
  BOOST_TEST(inputs.DecayedDots(kernels) == "");
  if (kernels.split_input != nullptr) {
    BOOST_TEST(inputs.SplitInput(kernels) == "");
    for (const TrunkFormat format : {TrunkFormat::kQ8G, TrunkFormat::kQ4G})
      BOOST_TEST(inputs.SplitRows(kernels, kernels, format) == "");
  }
  if (kernels.trunk_words != nullptr) {
    BOOST_TEST(inputs.RoundTrunkInput(kernels) == "");
    for (const TrunkFormat format : {TrunkFormat::kQ8G, TrunkFormat::kQ4G})
      BOOST_TEST(inputs.TrunkWords(kernels, kernels, format) == "");
  }
  if (kernels.expert_words != nullptr) {
    BOOST_TEST(inputs.RoundExpertInput(kernels) == "");
    for (const ExpertCodec& codec : kExpertCodecs) {
      const RandomExpert expert(codec, kRows, kColumns);
      BOOST_TEST(inputs.ExpertWords(kernels, kernels, expert) == "");
    }
  }
  if (kernels.build_table == nullptr) return;
  for (const ExpertCodec& codec : kExpertCodecs) {
    const RandomExpert expert(codec, kRows, kColumns);
    BOOST_TEST(inputs.BuildTable(kernels, expert) == "");
    BOOST_TEST(inputs.TableRows(kernels, kernels, expert) == "");
    BOOST_TEST(inputs.FinishRows(kernels, expert) == "");
  }
}

void RequireToldElement(const std::string& wrong, const std::string& element) {
  BOOST_TEST(wrong.starts_with(element), element << " is not told by \"" << wrong << '"');
  BOOST_TEST(wrong.find("scalar") != std::string::npos, element << " in \"" << wrong << '"');
}

BOOST_AUTO_TEST_CASE(a_wrong_element_is_told) {
  Inputs inputs;
  const Kernels broken = Broken();
  RequireToldElement(inputs.Dot(broken), "dot of 136:");
  RequireToldElement(inputs.Axpy(broken), "axpy 135:");
  RequireToldElement(inputs.MultiplyAdd(broken), "product of row 8:");
  RequireToldElement(inputs.Function(broken, &Kernels::exp), "exp 135:");
  RequireToldElement(inputs.Function(broken, &Kernels::tanh), "tanh 7:");
  RequireToldElement(inputs.TrunkRows(broken), "trunk row 69:");
  RequireToldElement(inputs.TrunkTransposed(broken), "transposed column 135:");
  RequireToldElement(inputs.ExpertRows(broken), "expert row 69:");
  RequireToldElement(inputs.DeltaStep(broken), "state 5:");
  RequireToldElement(inputs.Multiply(broken), "product 4:");
  RequireToldElement(inputs.ScaleRows(broken), "scaled " + std::to_string(kKeys / 2) + ":");
  RequireToldElement(inputs.DecayedDots(broken), "dot of a decayed row with row 2:");
}

WASTE_KERNEL_CASE(a_wrong_byte_is_told) {
  Inputs inputs;
  const Kernels broken = BrokenBytes(kernels);
  if (kernels.split_input != nullptr) {
    RequireToldElement(inputs.SplitInput(broken), "split input, integer of column 9:");
    for (const TrunkFormat format : {TrunkFormat::kQ8G, TrunkFormat::kQ4G})
      RequireToldElement(inputs.SplitRows(broken, kernels, format), "split row 69:");
  }
  if (kernels.trunk_words != nullptr) {
    RequireToldElement(inputs.RoundTrunkInput(broken), "input in words, integer of column 9:");
    for (const TrunkFormat format : {TrunkFormat::kQ8G, TrunkFormat::kQ4G})
      RequireToldElement(inputs.TrunkWords(broken, kernels, format), "words, trunk row 69:");
  }
  if (kernels.expert_words != nullptr) {
    RequireToldElement(inputs.RoundExpertInput(broken), "input in words, integer of column 9:");
    for (const ExpertCodec& codec : kExpertCodecs) {
      const RandomExpert expert(codec, kRows, kColumns);
      RequireToldElement(inputs.ExpertWords(broken, kernels, expert), "words, expert row 69:");
    }
  }
  if (kernels.build_table == nullptr) return;
  for (const ExpertCodec& codec : kExpertCodecs) {
    const RandomExpert expert(codec, kRows, kColumns);
    RequireToldElement(inputs.BuildTable(broken, expert), "table entry 9:");
    RequireToldElement(inputs.TableRows(broken, kernels, expert), "table row 64:");
    RequireToldElement(inputs.FinishRows(broken, expert), "finished row 69:");
  }
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
