// SPDX-License-Identifier: Apache-2.0

#include <cstring>

#include "base/half.h"
#include "support/guarded_memory.h"
#include "support/trunk_case.h"

namespace waste {
namespace {

constexpr TrunkFormat kFormats[] = {TrunkFormat::kF32, TrunkFormat::kF16, TrunkFormat::kQ8G,
                                    TrunkFormat::kQ4G, TrunkFormat::kQ3G};

std::vector<float> Row(const TrunkMatrix& w, int64_t r) {
  std::vector<float> row(w.columns);
  DecodeTrunkRow(w, r, row);
  return row;
}

// y = W x for inputs that lie `gap` floats apart, rows [begin, end) only.
struct Call {
  int64_t batch;
  int64_t gap;
  std::vector<float> x;

  Call(const TrunkMatrix& w, int64_t inputs, int64_t gap_floats = 0)
      : batch(inputs), gap(gap_floats), x(RandomFloats(77, inputs * (w.columns + gap_floats))) {}

  void Run(const Kernels& kernels, const TrunkMatrix& w, int64_t begin, int64_t end,
           std::vector<float>& y) const {
    std::vector<float> scratch(RowsScratch(w.columns));
    kernels.trunk_rows(w, begin, end, x.data(), w.columns + gap, batch, y.data(), w.rows,
                       scratch.data());
  }
};

BOOST_AUTO_TEST_SUITE(trunk_rows)

WASTE_KERNEL_CASE(sums_are_within_their_tolerance_for_every_format_and_shape) {
  for (const TrunkFormat format : kFormats) {
    for (const int64_t columns : kTrunkColumns) {
      for (const int64_t batch : {1, 2, 3, 4, 7, 33}) {
        const int64_t rows = 11;
        const RandomTrunk matrix(format, rows, columns);
        const Call call(matrix.w, batch, 3);
        std::vector<float> y(batch * rows, -77.0f);
        call.Run(kernels, matrix.w, 0, rows, y);
        for (int64_t r = 0; r < rows; ++r) {
          const std::vector<float> row = Row(matrix.w, r);
          for (int64_t b = 0; b < batch; ++b) {
            const ExactDot exact(row.data(), &call.x[b * (columns + 3)], columns);
            const double bound = static_cast<double>(columns) * kRounding * exact.magnitude;
            BOOST_TEST_REQUIRE(std::fabs(y[b * rows + r] - exact.value) <= bound + 1e-44,
                               TrunkFormatName(format) << ", " << columns << " columns, input " << b
                                                       << " of " << batch << ", row " << r);
          }
        }
      }
    }
  }
}

// An input of zeros and a single one picks a weight: every ISA decodes to the same bits.
WASTE_KERNEL_CASE(weights_are_decoded_to_the_bits_that_the_format_defines) {
  for (const TrunkFormat format : kFormats) {
    for (const int64_t columns : {40, 300}) {
      const int64_t rows = 5;
      const RandomTrunk matrix(format, rows, columns);
      for (const int64_t batch : {int64_t{1}, columns}) {  // both ways through the kernel
        std::vector<float> x(columns * columns);
        for (int64_t c = 0; c < columns; ++c) x[c * columns + c] = 1.0f;
        std::vector<float> y(columns * rows);
        std::vector<float> scratch(RowsScratch(columns));
        for (int64_t b = 0; b < columns; b += batch) {
          kernels.trunk_rows(matrix.w, 0, rows, &x[b * columns], columns, batch, &y[b * rows], rows,
                             scratch.data());
        }
        for (int64_t r = 0; r < rows; ++r) {
          const std::vector<float> row = Row(matrix.w, r);
          for (int64_t c = 0; c < columns; ++c) {
            BOOST_TEST_REQUIRE(y[c * rows + r] == row[c], TrunkFormatName(format) << " " << c);
          }
        }
      }
    }
  }
}

WASTE_KERNEL_CASE(a_result_does_not_depend_on_the_batch_it_is_computed_in) {
  for (const TrunkFormat format : kFormats) {
    for (const int64_t columns : {17, 300, 1029}) {
      const int64_t rows = 13;
      const RandomTrunk matrix(format, rows, columns);
      // Past kTiledFrom = 64 and, as one, past kTileInputs = 128 of simd_rows.inc.
      const Call all(matrix.w, 140);
      std::vector<float> together(140 * rows);
      all.Run(kernels, matrix.w, 0, rows, together);
      for (const int64_t batch : {1, 2, 3, 4, 5, 7, 8, 32, 63, 64, 70}) {
        for (int64_t first = 0; first + batch <= 140; first += batch) {
          Call part(matrix.w, batch);
          part.x.assign(&all.x[first * columns], &all.x[first * columns] + batch * columns);
          std::vector<float> y(batch * rows);
          part.Run(kernels, matrix.w, 0, rows, y);
          BOOST_TEST_REQUIRE(
              std::memcmp(y.data(), &together[first * rows], y.size() * sizeof(float)) == 0,
              TrunkFormatName(format) << ", " << columns << " columns, batches of " << batch);
        }
      }
    }
  }
}

WASTE_KERNEL_CASE(a_result_does_not_depend_on_how_rows_are_split) {
  for (const TrunkFormat format : kFormats) {
    const int64_t rows = 21;
    const RandomTrunk matrix(format, rows, 200);
    for (const int64_t batch : {1, 2, 5}) {
      const Call call(matrix.w, batch);
      std::vector<float> together(batch * rows);
      call.Run(kernels, matrix.w, 0, rows, together);
      for (const int64_t step : {1, 2, 3, 5, 8, 20}) {
        std::vector<float> y(batch * rows);
        for (int64_t r = 0; r < rows; r += step) {
          call.Run(kernels, matrix.w, r, std::min(rows, r + step), y);
        }
        BOOST_TEST_REQUIRE(std::memcmp(y.data(), together.data(), y.size() * sizeof(float)) == 0);
      }
    }
  }
}

WASTE_KERNEL_CASE(only_the_rows_asked_for_are_written) {
  for (const TrunkFormat format : kFormats) {
    const int64_t rows = 20;
    const RandomTrunk matrix(format, rows, 130);
    for (const int64_t batch : {1, 4}) {
      const Call call(matrix.w, batch);
      std::vector<float> y(batch * rows, -77.0f);
      call.Run(kernels, matrix.w, 6, 9, y);
      call.Run(kernels, matrix.w, 12, 12, y);  // none
      for (int64_t i = 0; i < batch * rows; ++i) {
        BOOST_TEST((y[i] != -77.0f) == (i % rows >= 6 && i % rows < 9));
      }
    }
  }
}

WASTE_KERNEL_CASE(no_inputs_is_no_work) {
  const RandomTrunk matrix(TrunkFormat::kQ4G, 4, 130);
  const Call call(matrix.w, 0);
  std::vector<float> y(4, -77.0f);
  call.Run(kernels, matrix.w, 0, 4, y);
  for (const float value : y) BOOST_TEST(value == -77.0f);
}

WASTE_KERNEL_CASE(nothing_beyond_payload_scales_and_inputs_is_read) {
  for (const TrunkFormat format : kFormats) {
    for (const int64_t columns : kTrunkColumns) {
      const int64_t rows = 6;
      const RandomTrunk matrix(format, rows, columns);
      Guarded<uint8_t> payload(matrix.payload), scales(matrix.scales);
      TrunkMatrix w = matrix.w;
      w.payload = payload.data();  // of an odd size for Q3G, so not aligned either
      if (w.scales != nullptr) w.scales = scales.data();
      for (const int64_t batch : {1, 2, 3, 5}) {
        const Call call(w, batch);
        Guarded<float> x(call.x);
        Guarded<float> y(std::vector<float>(batch * rows, 0.0f));
        Guarded<float> scratch(std::vector<float>(RowsScratch(columns), 0.0f));
        kernels.trunk_rows(w, 0, rows, x.data(), columns, batch, y.data(), rows, scratch.data());
        std::vector<float> expected(batch * rows);
        call.Run(kernels, matrix.w, 0, rows, expected);
        BOOST_TEST_REQUIRE(std::memcmp(y.data(), expected.data(), 4 * expected.size()) == 0);
      }
    }
  }
}

WASTE_KERNEL_CASE(bytes_may_stand_at_any_address) {
  for (const TrunkFormat format : kFormats) {
    const RandomTrunk matrix(format, 5, 150);
    const Call call(matrix.w, 1);
    std::vector<float> expected(5);
    call.Run(kernels, matrix.w, 0, 5, expected);
    for (int64_t shift = 1; shift < 4; ++shift) {
      std::vector<uint8_t> payload(shift), scales(shift);
      payload.insert(payload.end(), matrix.payload.begin(), matrix.payload.end());
      scales.insert(scales.end(), matrix.scales.begin(), matrix.scales.end());
      TrunkMatrix w = matrix.w;
      w.payload = payload.data() + shift;
      if (w.scales != nullptr) w.scales = scales.data() + shift;
      std::vector<float> y(5);
      call.Run(kernels, w, 0, 5, y);
      BOOST_TEST_REQUIRE(std::memcmp(y.data(), expected.data(), 4 * y.size()) == 0);
    }
  }
}

// Whatever a writer left behind the last column: it is not a weight.
WASTE_KERNEL_CASE(padding_of_the_last_group_is_ignored) {
  for (const TrunkFormat format : {TrunkFormat::kQ8G, TrunkFormat::kQ4G, TrunkFormat::kQ3G}) {
    const int64_t columns = 131;
    for (const int64_t batch : {1, 4}) {
      RandomTrunk matrix(format, 1, columns);
      const Call call(matrix.w, batch);
      std::vector<float> before(batch), after(batch);
      call.Run(kernels, matrix.w, 0, 1, before);
      const int64_t bits = format == TrunkFormat::kQ8G ? 8 : format == TrunkFormat::kQ4G ? 4 : 3;
      const int64_t first_free = (columns * bits + 7) / 8;
      for (size_t i = first_free; i < matrix.payload.size(); ++i) matrix.payload[i] ^= 0x5A;
      call.Run(kernels, matrix.w, 0, 1, after);
      BOOST_TEST(before == after, boost::test_tools::per_element());
    }
  }
}

// Zero weights of the padding times an infinite scale are not numbers and must not reach the sum.
// (Q4G is left out: on AVX2 an infinite scale makes its whole group not a number.)
WASTE_KERNEL_CASE(padding_is_ignored_even_under_an_infinite_scale) {
  for (const TrunkFormat format : {TrunkFormat::kQ8G, TrunkFormat::kQ3G}) {
    const int64_t columns = 3;
    std::vector<uint8_t> payload(TrunkRowBytes(format, columns), 0);
    if (format == TrunkFormat::kQ8G) payload[0] = payload[1] = payload[2] = 1;
    if (format == TrunkFormat::kQ3G) payload = {0xFF, 0x49, 0x92};  // 3 3 3 and more
    payload.resize(TrunkRowBytes(format, columns), 0x24);
    const std::vector<uint8_t> scales = {0x00, 0x7C};
    const TrunkMatrix w = {format, 1, columns, payload.data(), scales.data()};
    for (const int64_t batch : {1, 7}) {
      const std::vector<float> x(columns * batch, 1.0f);
      std::vector<float> y(batch), scratch(RowsScratch(128));
      kernels.trunk_rows(w, 0, 1, x.data(), columns, batch, y.data(), 1, scratch.data());
      for (const float value : y) BOOST_TEST(std::isinf(value));
    }
  }
}

WASTE_KERNEL_CASE(subnormal_scales_are_not_flushed) {
  for (const TrunkFormat format : {TrunkFormat::kQ8G, TrunkFormat::kQ4G, TrunkFormat::kQ3G}) {
    const std::vector<uint8_t> payload(TrunkRowBytes(format, 8), 0x11);
    const std::vector<uint8_t> scales = {0x01, 0x00};  // 2^-24
    const TrunkMatrix w = {format, 1, 8, payload.data(), scales.data()};
    const std::vector<float> row = Row(w, 0);
    float expected = 0;
    for (const float weight : row) expected += weight;
    for (const int64_t batch : {1, 4}) {
      const std::vector<float> x(8 * batch, 1.0f);
      std::vector<float> y(batch), scratch(RowsScratch(128));
      kernels.trunk_rows(w, 0, 1, x.data(), 8, batch, y.data(), 1, scratch.data());
      BOOST_TEST(expected != 0.0f);
      for (const float value : y) BOOST_TEST(value == expected);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
