// SPDX-License-Identifier: Apache-2.0
//
// Inputs in integers of words, and products of experts' rows with them.

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/word_input.h"
#include "support/expert_case.h"
#include "support/guarded_memory.h"

namespace waste {
namespace {

// Inputs in words are for some ISAs only.
#define WASTE_WORDS_CASE(name)                            \
  static void name(const Kernels& kernels);               \
  WASTE_KERNEL_CASE_ON(name, _on_avx512vbmi, kAvx512Vbmi) \
  static void name(const Kernels& kernels)

constexpr int64_t kColumns[] = {8, 24, 32, 40, 128, 136, 1000, 2304};

std::vector<float> Rounded(const Kernels& kernels, const float* x, int64_t columns, int64_t batch) {
  std::vector<float> memory(ExpertInputs::Floats(batch, columns), -77.0f);
  const ExpertInputs inputs = ExpertInputs::In(memory.data(), batch, columns);
  for (int64_t b = 0; b < batch; ++b) {
    const ExpertInputs one = inputs.At(b, 0);
    kernels.round_expert_input(x + b * columns, columns, one.integers, one.scales);
  }
  return memory;
}

// y [batch, rows], rows asked for in ranges of `step`.
std::vector<float> Apply(const Kernels& kernels, const ExpertMatrix& w, const float* x,
                         int64_t batch, int64_t step) {
  std::vector<float> memory = Rounded(kernels, x, w.columns, batch);
  std::vector<float> y(batch * w.rows, -77.0f), scratch(RowsScratch(w.columns));
  for (int64_t r = 0; r < w.rows; r += step)
    kernels.expert_words(w, r, std::min(w.rows, r + step),
                         ExpertInputs::In(memory.data(), batch, w.columns), batch, y.data(), w.rows,
                         scratch.data());
  return y;
}

// Of y against scalar f32, rms over rms.
double ErrorOf(const ExpertMatrix& w, const float* x, int64_t batch, const std::vector<float>& y) {
  std::vector<float> exact(y.size()), scratch(RowsScratch(w.columns));
  RequireKernels(Isa::kScalar)
      .expert_rows(w, 0, w.rows, x, w.columns, batch, exact.data(), w.rows, scratch.data());
  double difference = 0, size = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    difference += std::pow(double{y[i]} - exact[i], 2);
    size += std::pow(double{exact[i]}, 2);
  }
  return std::sqrt(difference / size);
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

BOOST_AUTO_TEST_SUITE(expert_words)

WASTE_WORDS_CASE(the_error_is_at_most_a_thousandth_for_all_codecs_and_every_shape) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    for (const int64_t columns : kColumns) {
      for (const float fading : {1.0f, 0.4f}) {
        const RandomExpert expert(codec, 132, columns, fading);
        for (const int64_t batch : {1, 2, 3, 4, 5, 7}) {
          const std::vector<float> x = RandomFloats(177, batch * columns);
          const double error =
              ErrorOf(expert.w, x.data(), batch, Apply(kernels, expert.w, x.data(), batch, 192));
          BOOST_TEST_REQUIRE(error <= 1e-3, codec.stages << " stages, " << columns << " columns, "
                                                         << batch << " inputs: " << error);
        }
      }
    }
  }
}

// As a model's: the largest value of a row is far above the others.
WASTE_WORDS_CASE(the_error_stays_within_a_thousandth_where_single_columns_are_large) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    const RandomExpert expert(codec, 128, 2304);
    std::vector<float> x = RandomFloats(178, 2304);
    for (const int64_t c : {5, 700, 1999}) x[c] *= 40.0f;
    const double error = ErrorOf(expert.w, x.data(), 1, Apply(kernels, expert.w, x.data(), 1, 128));
    BOOST_TEST(error <= 1e-3, codec.stages << " stages: " << error);
  }
}

WASTE_WORDS_CASE(a_result_does_not_depend_on_the_batch_nor_on_how_rows_are_split) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    for (const int64_t columns : {24, 296, 1000}) {
      const int64_t rows = 150;
      const RandomExpert expert(codec, rows, columns);
      const std::vector<float> x = RandomFloats(179, 5 * columns);
      const std::vector<float> whole = Apply(kernels, expert.w, x.data(), 5, 192);
      for (const int64_t step : {64, 128})
        BOOST_TEST(SameBits(Apply(kernels, expert.w, x.data(), 5, step), whole));
      for (const int64_t batch : {1, 2, 3, 4}) {
        for (int64_t first = 0; first + batch <= 5; ++first) {
          const std::vector<float> expected(whole.begin() + first * rows,
                                            whole.begin() + (first + batch) * rows);
          BOOST_TEST(SameBits(Apply(kernels, expert.w, &x[first * columns], batch, 192), expected));
        }
      }
    }
  }
}

// A part of an input that begins at a block is rounded as it is in the whole.
WASTE_WORDS_CASE(blocks_are_rounded_by_themselves) {
  const std::vector<float> x = RandomFloats(180, 200);
  std::vector<float> whole = Rounded(kernels, x.data(), 200, 1);
  const ExpertInputs inputs = ExpertInputs::In(whole.data(), 1, 200);
  std::vector<int16_t> integers(ExpertInputs::Blocks(200) * ExpertInputs::kBlock);
  std::vector<float> scales(ExpertInputs::Blocks(200));
  for (const int64_t begin : {128, 0}) {
    const int64_t end = begin == 0 ? 128 : 200;
    kernels.round_expert_input(&x[begin], end - begin, &integers[begin],
                               &scales[begin / ExpertInputs::kBlock]);
  }
  BOOST_TEST(std::equal(integers.begin(), integers.end(), inputs.integers));
  BOOST_TEST(std::equal(scales.begin(), scales.end(), inputs.scales));
}

WASTE_WORDS_CASE(zeros_give_zeros) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    const RandomExpert expert(codec, 70, 104);
    const RandomExpert nothing(codec, 70, 104, 0.0f);  // all stages but the first
    for (const float small : {0.0f, -0.0f, 1e-42f}) {
      const std::vector<float> x(2 * 104, small);
      for (const float value : Apply(kernels, expert.w, x.data(), 2, 128)) BOOST_TEST(value == 0);
    }
    ExpertMatrix w = nothing.w;
    w.books[0] = w.books[1];
    w.forms[0] = w.forms[1];
    const std::vector<float> x = RandomFloats(181, 104);
    for (const float value : Apply(kernels, w, x.data(), 1, 128)) BOOST_TEST(value == 0);
  }
}

// Wherever it stands in its block: it must not become a 0.
WASTE_WORDS_CASE(what_is_not_finite_makes_the_result_no_number) {
  const RandomExpert expert(kExpertCodecs[1], 64, 72);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
    for (int64_t c = 0; c < 72; ++c) {
      std::vector<float> x = RandomFloats(182, 72);
      x[c] = bad;
      for (const float value : Apply(kernels, expert.w, x.data(), 1, 64))
        BOOST_TEST_REQUIRE(!std::isfinite(value), bad << " at " << c);
    }
  }
}

// All weights and inputs as large as their integers get, of one sign: the largest sum there is.
WASTE_WORDS_CASE(the_largest_integers_do_not_overflow) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    RandomExpert expert(codec, 64, 2304);
    for (int32_t s = 0; s < codec.stages; ++s) {
      auto& book = expert.books[static_cast<size_t>(s)];
      std::fill(book.begin(), book.end(), 3.3f);
      expert.forms[static_cast<size_t>(s)] = OwnedBookForms(book.data(), codec.entries);
      expert.w.forms[s] = expert.forms[static_cast<size_t>(s)].view();
    }
    for (const float value : {1.7f, -1.7f}) {
      const std::vector<float> x(2304, value);
      BOOST_TEST(ErrorOf(expert.w, x.data(), 1, Apply(kernels, expert.w, x.data(), 1, 64)) <= 1e-3);
    }
  }
}

WASTE_WORDS_CASE(values_of_all_sizes_are_rounded) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    const RandomExpert expert(codec, 64, 256);
    for (const float size : {1e-29f, 1e-20f, 1e20f, 1e34f}) {
      std::vector<float> x = RandomFloats(183, 256);
      for (float& value : x) value *= size;
      const double error =
          ErrorOf(expert.w, x.data(), 1, Apply(kernels, expert.w, x.data(), 1, 64));
      BOOST_TEST(error <= 1e-3, codec.stages << " stages, " << size << ": " << error);
    }
  }
}

WASTE_WORDS_CASE(nothing_beyond_matrix_inputs_and_rows_is_touched) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    for (const int64_t columns : kColumns) {
      const int64_t rows = 70;
      const RandomExpert expert(codec, rows, columns);
      Guarded<uint8_t> indices(expert.indices), scales(expert.scales);
      ExpertMatrix w = expert.w;
      w.indices = indices.data();
      w.scales = scales.data();
      for (const int64_t batch : {1, 2, 5}) {
        const std::vector<float> values = RandomFloats(184, batch * columns);
        Guarded<float> x(values), y(std::vector<float>(batch * rows, -77.0f));
        Guarded<float> memory(std::vector<float>(ExpertInputs::Floats(batch, columns)));
        std::vector<float> scratch(RowsScratch(columns));
        const ExpertInputs inputs = ExpertInputs::In(memory.data(), batch, columns);
        for (int64_t b = batch - 1; b >= 0; --b) {
          const ExpertInputs one = inputs.At(b, 0);
          kernels.round_expert_input(x.data() + b * columns, columns, one.integers, one.scales);
        }
        kernels.expert_words(w, 64, rows, inputs, batch, y.data(), rows, scratch.data());
        const std::vector<float> expected = Apply(kernels, expert.w, values.data(), batch, 128);
        for (int64_t i = 0; i < batch * rows; ++i)
          BOOST_TEST_REQUIRE(y.data()[i] == (i % rows < 64 ? -77.0f : expected[i]));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
