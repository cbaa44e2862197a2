// SPDX-License-Identifier: Apache-2.0
//
// Inputs in integers, split into bytes or as words, and products of trunk rows with them.

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/split_input.h"
#include "kernels/word_input.h"
#include "support/guarded_memory.h"
#include "support/trunk_case.h"

namespace waste {
namespace {

// They are for some ISAs only.
#define WASTE_INTEGERS_CASE(name)                         \
  static void name(const Kernels& kernels);               \
  WASTE_KERNEL_CASE_ON(name, _on_avx512vbmi, kAvx512Vbmi) \
  static void name(const Kernels& kernels)

// The two kinds of such inputs: each kernel that makes them, and the one that multiplies with them.
enum class Kind { kSplit, kWords };

int64_t InputBytes(Kind kind, int64_t columns, int64_t batch) {
  return kind == Kind::kSplit ? batch * SplitBytes(columns)
                              : TrunkInputs::Floats(batch, columns) * 4;
}

TrunkInputs WordsIn(uint8_t* memory, int64_t columns, int64_t batch) {
  return TrunkInputs::In(reinterpret_cast<float*>(memory), batch, columns);
}

// The last input first, so that what is written too much is overwritten by none.
void MakeInputs(const Kernels& kernels, Kind kind, const float* x, int64_t columns, int64_t batch,
                uint8_t* memory) {
  for (int64_t b = batch - 1; b >= 0; --b) {
    if (kind == Kind::kSplit) {
      kernels.split_input(x + b * columns, columns, memory + b * SplitBytes(columns));
    } else {
      const TrunkInputs one = WordsIn(memory, columns, batch).At(b, 0);
      kernels.round_trunk_input(x + b * columns, columns, one.integers, one.scales);
    }
  }
}

void Multiply(const Kernels& kernels, Kind kind, const TrunkMatrix& w, int64_t begin, int64_t end,
              uint8_t* inputs, int64_t batch, float* y) {
  std::vector<float> scratch(RowsScratch(w.columns));
  if (kind == Kind::kSplit)
    kernels.split_rows(w, begin, end, inputs, batch, y, w.rows);
  else
    kernels.trunk_words(w, begin, end, WordsIn(inputs, w.columns, batch), batch, y, w.rows,
                        scratch.data());
}

// y [batch, rows], rows asked for in ranges of `step`.
std::vector<float> Apply(const Kernels& kernels, Kind kind, const TrunkMatrix& w, const float* x,
                         int64_t batch, int64_t step) {
  std::vector<uint8_t> inputs(InputBytes(kind, w.columns, batch), 0x55);
  MakeInputs(kernels, kind, x, w.columns, batch, inputs.data());
  std::vector<float> y(batch * w.rows, -77.0f);
  for (int64_t r = 0; r < w.rows; r += step)
    Multiply(kernels, kind, w, r, std::min(w.rows, r + step), inputs.data(), batch, y.data());
  return y;
}

std::vector<float> Exact(const TrunkMatrix& w, const float* x, int64_t batch) {
  std::vector<float> y(batch * w.rows), scratch(RowsScratch(w.columns));
  RequireKernels(Isa::kScalar)
      .trunk_rows(w, 0, w.rows, x, w.columns, batch, y.data(), w.rows, scratch.data());
  return y;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

constexpr std::pair<Kind, TrunkFormat> kKindsAndFormats[] = {{Kind::kSplit, TrunkFormat::kQ8G},
                                                             {Kind::kSplit, TrunkFormat::kQ4G},
                                                             {Kind::kWords, TrunkFormat::kQ8G},
                                                             {Kind::kWords, TrunkFormat::kQ4G}};

BOOST_AUTO_TEST_SUITE(trunk_integers)

WASTE_INTEGERS_CASE(the_error_is_at_most_a_ten_thousandth_for_both_formats_and_every_shape) {
  for (const auto& [kind, format] : kKindsAndFormats) {
    for (const int64_t columns : kTrunkColumns) {
      const RandomTrunk matrix(format, 67, columns);
      for (const int64_t batch : {1, 2, 3, 4, 5}) {
        const std::vector<float> x = RandomFloats(77, batch * columns);
        const std::vector<float> y = Apply(kernels, kind, matrix.w, x.data(), batch, 67);
        const std::vector<float> exact = Exact(matrix.w, x.data(), batch);
        double difference = 0, size = 0;
        for (size_t i = 0; i < y.size(); ++i) {
          difference += std::pow(double{y[i]} - exact[i], 2);
          size += std::pow(double{exact[i]}, 2);
        }
        const double error = std::sqrt(difference / size);
        BOOST_TEST_REQUIRE(error <= 1e-4, TrunkFormatName(format) << ", " << columns << " columns, "
                                                                  << batch << " inputs: " << error);
      }
    }
  }
}

WASTE_INTEGERS_CASE(a_result_does_not_depend_on_the_batch_nor_on_how_rows_are_split) {
  for (const auto& [kind, format] : kKindsAndFormats) {
    for (const int64_t columns : {17, 300, 2200}) {
      const int64_t rows = 71;
      const RandomTrunk matrix(format, rows, columns);
      const std::vector<float> x = RandomFloats(78, 5 * columns);
      const std::vector<float> whole = Apply(kernels, kind, matrix.w, x.data(), 5, rows);
      for (const int64_t step : {1, 2, 3, 5, 32, 33, 70})
        BOOST_TEST(SameBits(Apply(kernels, kind, matrix.w, x.data(), 5, step), whole));
      for (const int64_t batch : {1, 2, 3, 4}) {
        for (int64_t first = 0; first + batch <= 5; ++first) {
          const std::vector<float> expected(whole.begin() + first * rows,
                                            whole.begin() + (first + batch) * rows);
          BOOST_TEST(
              SameBits(Apply(kernels, kind, matrix.w, &x[first * columns], batch, rows), expected));
        }
      }
    }
  }
}

// All weights and inputs as large as their integers get, of one sign: the largest sum there is.
WASTE_INTEGERS_CASE(the_largest_integers_do_not_overflow) {
  for (const auto& [kind, format] : kKindsAndFormats) {
    RandomTrunk matrix(format, 3, 256);
    const uint8_t most = format == TrunkFormat::kQ8G ? 0x81 : 0x00;  // -127 and -8
    std::fill(matrix.payload.begin(), matrix.payload.end(), most);
    for (const float value : {1.7f, -1.7f}) {
      const std::vector<float> x(256, value);
      const std::vector<float> y = Apply(kernels, kind, matrix.w, x.data(), 1, 3);
      const std::vector<float> exact = Exact(matrix.w, x.data(), 1);
      for (size_t i = 0; i < y.size(); ++i)
        BOOST_TEST(std::abs(y[i] - exact[i]) <= 1e-4 * std::abs(exact[i]));
    }
  }
}

WASTE_INTEGERS_CASE(zeros_give_zeros) {
  for (const auto& [kind, format] : kKindsAndFormats) {
    const RandomTrunk matrix(format, 9, 300);
    for (const float small : {0.0f, -0.0f, 1e-42f}) {
      const std::vector<float> x(2 * 300, small);
      for (const float value : Apply(kernels, kind, matrix.w, x.data(), 2, 9))
        BOOST_TEST(value == 0.0f);
    }
  }
}

// Wherever it stands in its group: it must not become a 0.
WASTE_INTEGERS_CASE(what_is_not_finite_makes_the_result_no_number) {
  for (const auto& [kind, format] : kKindsAndFormats) {
    const RandomTrunk matrix(format, 5, 300);
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
      for (int64_t c = 0; c < 300; ++c) {
        std::vector<float> x = RandomFloats(79, 300);
        x[c] = bad;
        for (const float value : Apply(kernels, kind, matrix.w, x.data(), 1, 5))
          BOOST_TEST_REQUIRE(!std::isfinite(value), bad << " at " << c);
      }
    }
  }
}

// The largest floats: the integers are right, and sums stay finite where the exact one is.
WASTE_INTEGERS_CASE(values_of_all_sizes_are_split) {
  for (const auto& [kind, format] : kKindsAndFormats) {
    const RandomTrunk matrix(format, 64, 256);
    for (const float size : {1e-29f, 1e-20f, 1e20f, 1e34f}) {
      std::vector<float> x = RandomFloats(80, 256);
      for (float& value : x) value *= size;
      const std::vector<float> y = Apply(kernels, kind, matrix.w, x.data(), 1, 64);
      const std::vector<float> exact = Exact(matrix.w, x.data(), 1);
      double difference = 0, sum = 0;
      for (size_t i = 0; i < y.size(); ++i) {
        difference += std::pow(double{y[i]} - exact[i], 2);
        sum += std::pow(double{exact[i]}, 2);
      }
      BOOST_TEST(std::sqrt(difference / sum) <= 1e-4, TrunkFormatName(format) << ", " << size);
    }
  }
}

WASTE_INTEGERS_CASE(only_the_rows_asked_for_are_written) {
  for (const auto& [kind, format] : kKindsAndFormats) {
    const int64_t rows = 20;
    const RandomTrunk matrix(format, rows, 130);
    const std::vector<float> x = RandomFloats(81, 3 * 130);
    std::vector<uint8_t> inputs(InputBytes(kind, 130, 3));
    MakeInputs(kernels, kind, x.data(), 130, 3, inputs.data());
    std::vector<float> y(3 * rows, -77.0f);
    Multiply(kernels, kind, matrix.w, 6, 9, inputs.data(), 3, y.data());
    Multiply(kernels, kind, matrix.w, 12, 12, inputs.data(), 3, y.data());  // none
    for (int64_t i = 0; i < 3 * rows; ++i)
      BOOST_TEST((y[i] != -77.0f) == (i % rows >= 6 && i % rows < 9));
  }
}

WASTE_INTEGERS_CASE(nothing_beyond_payload_scales_and_inputs_is_touched) {
  for (const auto& [kind, format] : kKindsAndFormats) {
    for (const int64_t columns : kTrunkColumns) {
      const int64_t rows = 6;
      const RandomTrunk matrix(format, rows, columns);
      Guarded<uint8_t> payload(matrix.payload), scales(matrix.scales);
      TrunkMatrix w = matrix.w;
      w.payload = payload.data();
      w.scales = scales.data();
      for (const int64_t batch : {1, 2, 5}) {
        const std::vector<float> values = RandomFloats(82, batch * columns);
        Guarded<float> x(values), y(std::vector<float>(batch * rows, 0.0f));
        Guarded<uint8_t> inputs(std::vector<uint8_t>(InputBytes(kind, columns, batch)));
        MakeInputs(kernels, kind, x.data(), columns, batch, inputs.data());
        Multiply(kernels, kind, w, 0, rows, inputs.data(), batch, y.data());
        const std::vector<float> expected =
            Apply(kernels, kind, matrix.w, values.data(), batch, rows);
        BOOST_TEST_REQUIRE(std::memcmp(y.data(), expected.data(), 4 * expected.size()) == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
