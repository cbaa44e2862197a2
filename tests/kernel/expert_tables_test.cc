// SPDX-License-Identifier: Apache-2.0

#include "kernels/expert_tables.h"

#include <cstring>
#include <limits>

#include "kernels/tables.h"
#include "support/expert_case.h"
#include "support/guarded_memory.h"

namespace waste {
namespace {

// Look-up tables are for some ISAs only.
#if defined(__aarch64__)
#define WASTE_TABLE_CASE_OF_MACHINE(name) WASTE_KERNEL_CASE_ON(name, _on_neon, kNeon)
#else
#define WASTE_TABLE_CASE_OF_MACHINE(name) WASTE_KERNEL_CASE_ON(name, _on_avx512vbmi, kAvx512Vbmi)
#endif
#define WASTE_TABLE_CASE(name)              \
  static void name(const Kernels& kernels); \
  WASTE_TABLE_CASE_OF_MACHINE(name)         \
  static void name(const Kernels& kernels)

// Partial groups, whole ones, more than one pass of blocks.
constexpr int64_t kColumnCounts[] = {8, 24, 64, 128, 136, 264, 1048};
constexpr int64_t kRowCounts[] = {1, 63, 64, 67, 128, 200};

// All tables, and their offsets summed.
struct Tables {
  std::vector<uint8_t> bytes;
  float offset = 0.0f;

  Tables(const Kernels& kernels, const ExpertMatrix& w, const float* x)
      : bytes(TableBytes(w.codec, w.columns)) {
    std::vector<float> scratch(kTableScratch);
    for (int64_t g = 0; g < TableGroups(w.codec, w.columns); ++g) {
      kernels.build_table(w, x, g, IndexChunks(), bytes.data() + g * TableGroupBytes(w.codec),
                          scratch.data());
      offset += HeaderOf(of(w, g)).offset;
    }
  }
  const uint8_t* of(const ExpertMatrix& w, int64_t group) const {
    return bytes.data() + group * TableGroupBytes(w.codec);
  }
};

// Rows [begin, end), to y: groups summed in `parts` parts.
void ApplyRows(const Kernels& kernels, const ExpertMatrix& w, const Tables& tables, int64_t begin,
               int64_t end, int64_t parts, float* y) {
  const int64_t groups = TableGroups(w.codec, w.columns), stride = SumRows(end - begin);
  std::vector<float> sums(parts * stride, -77.0f);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = groups * part / parts;
    for (int64_t g = first; g < groups * (part + 1) / parts; ++g)
      kernels.table_rows(w, begin, end, g, tables.of(w, g), ChunksOf(w, begin, end, g), g == first,
                         sums.data() + part * stride);
  }
  kernels.finish_rows(w, begin, end, sums.data(), parts, stride, tables.offset, y);
}

std::vector<float> Apply(const Kernels& kernels, const ExpertMatrix& w, const float* x,
                         int64_t step, int64_t parts = 1) {
  const Tables tables(kernels, w, x);
  std::vector<float> y(w.rows, -77.0f);
  for (int64_t r = 0; r < w.rows; r += step)
    ApplyRows(kernels, w, tables, r, std::min(w.rows, r + step), parts, y.data() + r);
  return y;
}

// The rms of the difference to the scalar kernel's result, relative to that result's rms; rows
// weigh as much as their scale.
double Error(const ExpertMatrix& w, const float* x, const std::vector<float>& y) {
  std::vector<float> exact(w.rows), scratch(RowsScratch(w.columns));
  RequireKernels(Isa::kScalar)
      .expert_rows(w, 0, w.rows, x, w.columns, 1, exact.data(), w.rows, scratch.data());
  double difference = 0, size = 0;
  for (int64_t r = 0; r < w.rows; ++r) {
    difference += std::pow(double{y[r]} - exact[r], 2);
    size += std::pow(double{exact[r]}, 2);
  }
  return std::sqrt(difference / size);
}

BOOST_AUTO_TEST_SUITE(expert_tables)

// Books of equal size are the worst case: those of a residual quantiser shrink.
WASTE_TABLE_CASE(the_error_is_at_most_a_thousandth_for_every_codec_and_shape) {
  for (const ExpertCodec& codec : kExpertCodecs)
    for (const float fading : {1.0f, 0.4f})
      for (const int64_t columns : kColumnCounts)
        for (const int64_t rows : kRowCounts) {
          const RandomExpert expert(codec, rows, columns, fading);
          const std::vector<float> x = RandomFloats(77, columns);
          const int64_t parts = columns > 200 ? 3 : 1;
          const double error =
              Error(expert.w, x.data(), Apply(kernels, expert.w, x.data(), 64, parts));
          // One row alone may be near 0 itself.
          BOOST_TEST_REQUIRE(
              error <= (rows < 60 ? 1e-2 : 1e-3),
              codec.stages << " stages, " << columns << " columns, " << rows << " rows: " << error);
        }
}

// An outlier costs its group's other vectors resolution, not the result.
WASTE_TABLE_CASE(an_outlier_among_the_inputs_does_not_spoil_the_rest) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    const RandomExpert expert(codec, 256, 1024, 0.5f);
    std::vector<float> x = RandomFloats(78, 1024);
    x[300] = 40.0f;
    const double error = Error(expert.w, x.data(), Apply(kernels, expert.w, x.data(), 256));
    BOOST_TEST(error <= 1e-3, codec.stages << " stages, " << codec.entries << ": " << error);
  }
}

// Whatever integers stand for inputs and books: sums of their products have the range they can
// have.
WASTE_TABLE_CASE(the_largest_products_of_both_signs_fit) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    RandomExpert expert(codec, 256, 264);
    for (int32_t s = 0; s < codec.stages; ++s) {
      std::vector<float>& book = expert.books[static_cast<size_t>(s)];
      std::fill_n(book.begin(), kVectorSize, 1.0f);
      std::fill_n(book.begin() + kVectorSize, kVectorSize, -1.0f);
      expert.forms[static_cast<size_t>(s)] = OwnedBookForms(book.data(), codec.entries);
      expert.w.forms[s] = expert.forms[static_cast<size_t>(s)].view();
    }
    for (const float value : {1.0f, -1.0f}) {
      const std::vector<float> x(264, value);
      const double error = Error(expert.w, x.data(), Apply(kernels, expert.w, x.data(), 256));
      BOOST_TEST(error <= 1e-3, codec.stages << " stages, " << codec.entries << ": " << error);
    }
  }
}

WASTE_TABLE_CASE(a_row_does_not_depend_on_how_rows_are_split) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    const RandomExpert expert(codec, 64 * 70 + 5, 72);
    const std::vector<float> x = RandomFloats(79, 72);
    const std::vector<float> whole = Apply(kernels, expert.w, x.data(), expert.w.rows);
    for (const int64_t step : {64, 192})
      BOOST_TEST(std::memcmp(Apply(kernels, expert.w, x.data(), step).data(), whole.data(),
                             4 * whole.size()) == 0);
  }
}

#if defined(__x86_64__)
WASTE_TABLE_CASE(permutes_of_one_register_and_of_two_give_the_same_bits) {
  Kernels one = kernels, two = kernels;
  AddTableRowKernels(one, Permutes::kOfOneRegister);
  AddTableRowKernels(two, Permutes::kOfTwoRegisters);
  for (const ExpertCodec& codec : kExpertCodecs) {
    const RandomExpert expert(codec, 200, 264);
    const std::vector<float> x = RandomFloats(81, 264);
    const std::vector<float> y = Apply(one, expert.w, x.data(), 200);
    BOOST_TEST(Error(expert.w, x.data(), y) <= 1e-3);
    BOOST_TEST(std::memcmp(Apply(two, expert.w, x.data(), 200).data(), y.data(), 4 * y.size()) ==
               0);
  }
}
#endif

WASTE_TABLE_CASE(zeros_give_zeros_and_what_is_not_finite_is_harmless) {
  for (const ExpertCodec& codec : kExpertCodecs) {
    const RandomExpert expert(codec, 128, 264);
    std::vector<float> x(264);
    for (const float value : Apply(kernels, expert.w, x.data(), 128)) BOOST_TEST(value == 0.0f);
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e38f,
          std::numeric_limits<float>::denorm_min()}) {
      x[17] = bad;
      const std::vector<float> y = Apply(kernels, expert.w, x.data(), 128);
      BOOST_TEST((!(bad > 1e38f || bad != bad) || !std::isfinite(y[0])));
    }
  }
}

WASTE_TABLE_CASE(only_the_rows_asked_for_are_written_and_nothing_beyond_is_read) {
  for (const ExpertCodec& codec : kExpertCodecs)
    for (const int64_t columns : kColumnCounts) {
      const int64_t rows = 131;
      RandomExpert expert(codec, rows, columns);
      const std::vector<float> inputs = RandomFloats(80, columns);
      const std::vector<float> whole = Apply(kernels, expert.w, inputs.data(), rows);
      Guarded<uint8_t> indices(expert.indices), scales(expert.scales);
      Guarded<uint8_t> table(std::vector<uint8_t>(TableGroupBytes(codec)));
      Guarded<float> x(inputs), y(std::vector<float>(3, -77.0f));
      Guarded<float> sums(std::vector<float>(kIndexBlock, 0.0f));
      Guarded<float> scratch(std::vector<float>(kTableScratch, 0.0f));
      const BookForms& forms = expert.w.forms[0];
      const size_t values = expert.books[0].size();
      Guarded<float> turned(std::vector<float>(forms.turned, forms.turned + values));
      Guarded<int16_t> integers(std::vector<int16_t>(forms.integers, forms.integers + values));
      ExpertMatrix w = expert.w;
      w.indices = indices.data();
      w.scales = scales.data();
      w.forms[0] = {turned.data(), integers.data(), forms.step};
      for (const auto& [begin, end] : {std::pair(64, 67), std::pair(128, 131)}) {
        float offset = 0.0f;
        for (int64_t g = 0; g < TableGroups(codec, columns); ++g) {
          kernels.build_table(w, x.data(), g, ChunksOf(w, begin, end, g), table.data(),
                              scratch.data());
          offset += HeaderOf(table.data()).offset;
          kernels.table_rows(w, begin, end, g, table.data(), IndexChunks(), g == 0, sums.data());
        }
        kernels.finish_rows(w, begin, end, sums.data(), 1, 0, offset, y.data());
        for (int64_t i = 0; i < end - begin; ++i)
          BOOST_TEST_REQUIRE(y.data()[i] == whole[begin + i]);
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
