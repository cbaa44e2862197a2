// SPDX-License-Identifier: Apache-2.0

#include <cstring>

#include "support/expert_case.h"
#include "support/guarded_memory.h"
#include "support/kernel_case.h"

namespace waste {
namespace {

constexpr int64_t kColumnCounts[] = {8, 16, 24, 120, 128, 136, 264, 504, 512, 520, 1048};

std::vector<float> Row(const ExpertMatrix& w, int64_t r) {
  std::vector<float> row(w.columns);
  DecodeExpertRow(w, r, row);
  return row;
}

std::vector<float> Inputs(const ExpertMatrix& w, int64_t batch) {
  return RandomFloats(77, batch * w.columns);
}

void Run(const Kernels& kernels, const ExpertMatrix& w, int64_t begin, int64_t end, const float* x,
         int64_t batch, float* y) {
  std::vector<float> scratch(RowsScratch(w.columns));
  kernels.expert_rows(w, begin, end, x, w.columns, batch, y, w.rows, scratch.data());
}

BOOST_AUTO_TEST_SUITE(expert_rows)

// The row is not scaled before it is multiplied, so the error is that of the sum and one rounding
// for the books of each stage, one for the scale.
WASTE_KERNEL_CASE(sums_are_within_their_tolerance_for_every_codec_and_shape) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    for (const int64_t columns : kColumnCounts) {
      for (const int64_t batch : {1, 2, 3, 5}) {
        const int64_t rows = 67;
        const RandomExpert matrix(codec, rows, columns);
        const std::vector<float> x = Inputs(matrix.w, batch);
        std::vector<float> y(batch * rows, -77.0f);
        Run(kernels, matrix.w, 0, rows, x.data(), batch, y.data());
        for (int64_t r = 0; r < rows; ++r) {
          const std::vector<float> row = Row(matrix.w, r);
          for (int64_t b = 0; b < batch; ++b) {
            const ExactDot exact(row.data(), &x[b * columns], columns);
            const double bound = static_cast<double>(columns + 3) * kRounding * exact.magnitude;
            BOOST_TEST_REQUIRE(std::fabs(y[b * rows + r] - exact.value) <= bound + 1e-44,
                               codec.stages << " stages, " << columns << " columns, input " << b
                                            << " of " << batch << ", row " << r);
          }
        }
      }
    }
  }
}

// An input of zeros and a single one picks a weight: every ISA decodes to the same bits.
WASTE_KERNEL_CASE(weights_are_decoded_to_the_bits_that_the_format_defines) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    const int64_t rows = 65, columns = 136;
    const RandomExpert matrix(codec, rows, columns);
    for (const int64_t batch : {int64_t{1}, columns}) {  // both ways through the kernel
      std::vector<float> x(columns * columns);
      for (int64_t c = 0; c < columns; ++c) x[c * columns + c] = 1.0f;
      std::vector<float> y(columns * rows);
      for (int64_t b = 0; b < columns; b += batch) {
        Run(kernels, matrix.w, 0, rows, &x[b * columns], batch, &y[b * rows]);
      }
      for (int64_t r = 0; r < rows; ++r) {
        const std::vector<float> row = Row(matrix.w, r);
        for (int64_t c = 0; c < columns; ++c) {
          if (y[c * rows + r] == row[c]) continue;
          BOOST_TEST_REQUIRE(false, codec.stages << " stages, column " << c);
        }
      }
    }
  }
}

WASTE_KERNEL_CASE(a_result_does_not_depend_on_the_batch_it_is_computed_in) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    for (const int64_t columns : {8, 136, 520}) {
      const int64_t rows = 70;
      const RandomExpert matrix(codec, rows, columns);
      // As one, past kTileInputs = 128 of simd_rows.inc.
      const std::vector<float> x = Inputs(matrix.w, 140);
      std::vector<float> together(140 * rows);
      Run(kernels, matrix.w, 0, rows, x.data(), 140, together.data());
      for (const int64_t batch : {1, 2, 3, 4, 5, 17, 70}) {
        for (int64_t first = 0; first + batch <= 140; first += batch) {
          std::vector<float> y(batch * rows);
          Run(kernels, matrix.w, 0, rows, &x[first * columns], batch, y.data());
          BOOST_TEST_REQUIRE(
              std::memcmp(y.data(), &together[first * rows], y.size() * sizeof(float)) == 0,
              codec.stages << " stages, " << columns << " columns, batches of " << batch);
        }
      }
    }
  }
}

WASTE_KERNEL_CASE(a_result_does_not_depend_on_how_rows_are_split) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    const int64_t rows = 200, columns = 72;
    const RandomExpert matrix(codec, rows, columns);
    for (const int64_t batch : {1, 2, 5}) {
      const std::vector<float> x = Inputs(matrix.w, batch);
      std::vector<float> together(batch * rows);
      Run(kernels, matrix.w, 0, rows, x.data(), batch, together.data());
      for (const int64_t step : {64, 128}) {
        std::vector<float> y(batch * rows);
        for (int64_t r = 0; r < rows; r += step) {
          Run(kernels, matrix.w, r, std::min(rows, r + step), x.data(), batch, y.data());
        }
        BOOST_TEST_REQUIRE(std::memcmp(y.data(), together.data(), y.size() * sizeof(float)) == 0);
      }
    }
  }
}

WASTE_KERNEL_CASE(only_the_rows_asked_for_are_written) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    const int64_t rows = 140;
    const RandomExpert matrix(codec, rows, 16);
    for (const int64_t batch : {1, 4}) {
      const std::vector<float> x = Inputs(matrix.w, batch);
      std::vector<float> y(batch * rows, -77.0f);
      Run(kernels, matrix.w, 64, 67, x.data(), batch, y.data());
      for (int64_t i = 0; i < batch * rows; ++i) {
        BOOST_TEST((y[i] != -77.0f) == (i % rows >= 64 && i % rows < 67));
      }
    }
  }
}

WASTE_KERNEL_CASE(nothing_beyond_indices_scales_books_and_inputs_is_read) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    for (const int64_t columns : kColumnCounts) {
      const int64_t rows = 64;  // a full block, so that the last index is the last byte
      const RandomExpert matrix(codec, rows, columns);
      Guarded<uint8_t> indices(matrix.indices), scales(matrix.scales);
      ExpertMatrix w = matrix.w;
      w.indices = indices.data();
      w.scales = scales.data();
      Guarded<float> book(matrix.books[0]);
      w.books[0] = book.data();
      for (const int64_t batch : {1, 2, 3}) {
        const std::vector<float> inputs = Inputs(w, batch);
        Guarded<float> x(inputs);
        Guarded<float> y(std::vector<float>(batch * rows, 0.0f));
        Guarded<float> scratch(std::vector<float>(RowsScratch(columns), 0.0f));
        kernels.expert_rows(w, 0, rows, x.data(), columns, batch, y.data(), rows, scratch.data());
        std::vector<float> expected(batch * rows);
        Run(kernels, matrix.w, 0, rows, inputs.data(), batch, expected.data());
        BOOST_TEST_REQUIRE(std::memcmp(y.data(), expected.data(), 4 * expected.size()) == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
