// SPDX-License-Identifier: Apache-2.0

#include <cstring>

#include "support/guarded_memory.h"
#include "support/trunk_case.h"

namespace waste {
namespace {

constexpr TrunkFormat kFormats[] = {TrunkFormat::kF32, TrunkFormat::kF16, TrunkFormat::kQ8G,
                                    TrunkFormat::kQ4G, TrunkFormat::kQ3G};
constexpr int64_t kRows = 11;

// y = x W of rows [begin, end) for inputs that lie `gap` floats apart.
struct Call {
  int64_t batch, gap;
  std::vector<float> x;

  explicit Call(int64_t inputs, int64_t gap_floats = 0)
      : batch(inputs), gap(gap_floats), x(RandomFloats(77, inputs * (kRows + gap_floats))) {}

  std::vector<float> Run(const Kernels& kernels, const TrunkMatrix& w, int64_t begin,
                         int64_t end) const {
    std::vector<float> y(batch * w.columns, -77.0f), scratch(RowsScratch(w.columns));
    kernels.trunk_transposed(w, begin, end, x.data(), kRows + gap, batch, y.data(), w.columns,
                             scratch.data());
    return y;
  }
};

BOOST_AUTO_TEST_SUITE(trunk_transposed)

WASTE_KERNEL_CASE(sums_are_within_their_tolerance_for_every_format_and_shape) {
  for (const TrunkFormat format : kFormats) {
    for (const int64_t columns : kTrunkColumns) {
      const RandomTrunk matrix(format, kRows, columns);
      std::vector<std::vector<float>> rows(kRows, std::vector<float>(columns));
      for (int64_t r = 0; r < kRows; ++r) DecodeTrunkRow(matrix.w, r, rows[r]);
      for (const int64_t batch : {1, 2, 3, 33}) {
        const Call call(batch, 3);
        const std::vector<float> y = call.Run(kernels, matrix.w, 2, kRows);
        std::vector<double> value(columns), magnitude(columns);
        for (int64_t b = 0; b < batch; ++b) {
          std::fill(value.begin(), value.end(), 0.0);
          std::fill(magnitude.begin(), magnitude.end(), 0.0);
          for (int64_t r = 2; r < kRows; ++r) {
            const double factor = call.x[b * (kRows + 3) + r - 2];
            for (int64_t c = 0; c < columns; ++c) {
              const double term = factor * rows[r][c];
              value[c] += term;
              magnitude[c] += std::fabs(term);
            }
          }
          for (int64_t c = 0; c < columns; ++c) {
            const double bound = kRows * kRounding * magnitude[c] + 1e-44;
            BOOST_TEST_REQUIRE(std::fabs(y[b * columns + c] - value[c]) <= bound,
                               TrunkFormatName(format) << ", column " << c << " of " << columns
                                                       << ", input " << b << " of " << batch);
          }
        }
      }
    }
  }
}

WASTE_KERNEL_CASE(a_result_does_not_depend_on_the_batch_it_is_computed_in) {
  for (const TrunkFormat format : kFormats) {
    for (const int64_t columns : {17, 300, 1029}) {
      const RandomTrunk matrix(format, kRows, columns);
      const Call all(40);
      const std::vector<float> together = all.Run(kernels, matrix.w, 0, kRows);
      for (const int64_t batch : {1, 2, 3, 8}) {
        for (int64_t first = 0; first + batch <= 40; first += batch) {
          Call part(batch);
          std::copy_n(&all.x[first * kRows], batch * kRows, part.x.data());
          const std::vector<float> y = part.Run(kernels, matrix.w, 0, kRows);
          BOOST_TEST_REQUIRE(std::memcmp(y.data(), &together[first * columns], 4 * y.size()) == 0,
                             TrunkFormatName(format)
                                 << ", " << columns << " columns, batches of " << batch);
        }
      }
    }
  }
}

// One row with the factor 1 is that row, to the bit.
WASTE_KERNEL_CASE(weights_are_those_of_the_decoder) {
  for (const TrunkFormat format : kFormats) {
    const RandomTrunk matrix(format, kRows, 300);
    for (const int64_t batch : {1, 3}) {
      Call call(batch);
      std::fill(call.x.begin(), call.x.end(), 1.0f);
      const std::vector<float> y = call.Run(kernels, matrix.w, 4, 5);
      std::vector<float> row(300);
      DecodeTrunkRow(matrix.w, 4, row);
      for (size_t i = 0; i < y.size(); ++i) BOOST_TEST_REQUIRE(y[i] == row[i % 300]);
    }
  }
}

WASTE_KERNEL_CASE(no_rows_are_zeros_and_no_inputs_are_no_work) {
  const RandomTrunk matrix(TrunkFormat::kQ4G, kRows, 130);
  for (const float value : Call(3).Run(kernels, matrix.w, 4, 4)) BOOST_TEST(value == 0.0f);
  BOOST_TEST(Call(0).Run(kernels, matrix.w, 0, kRows).empty());
}

WASTE_KERNEL_CASE(nothing_beyond_payload_scales_inputs_and_results_is_touched) {
  for (const TrunkFormat format : kFormats) {
    for (const int64_t columns : kTrunkColumns) {
      const RandomTrunk matrix(format, kRows, columns);
      Guarded<uint8_t> payload(matrix.payload), scales(matrix.scales);
      TrunkMatrix w = matrix.w;
      w.payload = payload.data();
      if (w.scales != nullptr) w.scales = scales.data();
      for (const int64_t batch : {1, 2, 3, 5}) {
        const Call call(batch);
        Guarded<float> x(call.x);
        Guarded<float> y(std::vector<float>(batch * columns, 0.0f));
        Guarded<float> scratch(std::vector<float>(RowsScratch(columns), 0.0f));
        kernels.trunk_transposed(w, 0, kRows, x.data(), kRows, batch, y.data(), columns,
                                 scratch.data());
        const std::vector<float> expected = call.Run(kernels, matrix.w, 0, kRows);
        BOOST_TEST_REQUIRE(std::memcmp(y.data(), expected.data(), 4 * expected.size()) == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
