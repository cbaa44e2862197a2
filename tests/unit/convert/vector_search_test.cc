// SPDX-License-Identifier: Apache-2.0

#include "convert/vector_search.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

#include "base/half.h"

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(vector_search)

using Books = std::vector<std::vector<float>>;

std::vector<float> RandomValues(std::mt19937& random, size_t count, float spread) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

Books RandomBooks(std::mt19937& random, size_t stages, int64_t entries) {
  Books books;
  float spread = 0.3f;
  for (size_t s = 0; s < stages; ++s, spread /= 2)
    books.push_back(RandomValues(random, static_cast<size_t>(entries * kVectorSize), spread));
  return books;
}

double ErrorOf(const Books& books, const float* x, const uint8_t* indices) {
  double error = 0;
  for (int64_t j = 0; j < kVectorSize; ++j) {
    double left = static_cast<double>(x[j]);
    for (size_t s = 0; s < books.size(); ++s)
      left -= static_cast<double>(books[s][static_cast<size_t>(indices[s] * kVectorSize + j)]);
    error += left * left;
  }
  return error;
}

std::vector<Isa> PresentIsas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
    if (CpuHas(isa)) isas.push_back(isa);
  }
  return isas;
}

const VectorSearch& Search(Isa isa) { return **VectorSearchFor(isa); }

BOOST_AUTO_TEST_CASE(nearest_entry_is_the_one_that_a_plain_search_in_f64_finds) {
  std::mt19937 random(1);
  const Books books = RandomBooks(random, 1, 256);
  const SearchBook fast = MakeSearchBook(books[0]);
  for (int round = 0; round < 500; ++round) {
    const std::vector<float> x = RandomValues(random, kVectorSize, 0.3f);
    const int32_t found = Search(Isa::kBest).nearest(fast, x.data());
    const auto chosen = static_cast<uint8_t>(found);
    const double error = ErrorOf(books, x.data(), &chosen);
    for (int32_t other = 0; other < 256; ++other) {
      const auto index = static_cast<uint8_t>(other);
      BOOST_REQUIRE_LE(error, ErrorOf(books, x.data(), &index) + 1e-6);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_first_of_equal_entries_is_chosen) {
  std::vector<float> book(256 * kVectorSize, 0.5f);  // all alike
  const SearchBook fast = MakeSearchBook(book);
  const BeamBooks beam_books = MakeBeamBooks({book, book});
  const std::array<float, kVectorSize> x = {1, 1, 1, 1, 1, 1, 1, 1};
  for (const Isa isa : PresentIsas()) {
    BOOST_TEST(Search(isa).nearest(fast, x.data()) == 0);
    for (const int32_t beam : {1, 3, 16}) {
      std::array<uint8_t, kMaxStages> indices = {9, 9, 9, 9, 9, 9};
      Search(isa).encode(beam_books, x.data(), beam, indices.data());
      BOOST_TEST(indices[0] == 0);
      BOOST_TEST(indices[1] == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_isa_finds_the_same_indices) {
  for (const auto& [stages, entries] :
       {std::pair<size_t, int64_t>{2, 256}, {3, 256}, {4, 256}, {6, 256}, {4, 64}}) {
    std::mt19937 random(static_cast<uint32_t>(stages));
    const BeamBooks books = MakeBeamBooks(RandomBooks(random, stages, entries));
    for (int round = 0; round < 100; ++round) {
      const std::vector<float> x = RandomValues(random, kVectorSize, 0.3f);
      const int32_t beam = std::array{1, 2, 7, 16, 64}[static_cast<size_t>(round % 5)];
      std::array<uint8_t, kMaxStages> expected = {};
      Search(Isa::kScalar).encode(books, x.data(), beam, expected.data());
      for (const Isa isa : PresentIsas()) {
        std::array<uint8_t, kMaxStages> indices = {};
        Search(isa).encode(books, x.data(), beam, indices.data());
        BOOST_REQUIRE(indices == expected);
        BOOST_REQUIRE_EQUAL(Search(isa).nearest(books.stages[0], x.data()),
                            Search(Isa::kScalar).nearest(books.stages[0], x.data()));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_beam_of_one_is_greedy_and_wider_ones_lose_less) {
  std::mt19937 random(3);
  const Books books = RandomBooks(random, 3, 256);
  const BeamBooks fast = MakeBeamBooks(books);
  const VectorSearch& search = Search(Isa::kBest);
  std::array<double, 4> errors = {};
  for (int round = 0; round < 300; ++round) {
    const std::vector<float> x = RandomValues(random, kVectorSize, 0.3f);
    std::vector<float> left = x;
    std::array<uint8_t, kMaxStages> greedy = {};
    for (size_t s = 0; s < 3; ++s) {
      greedy[s] = static_cast<uint8_t>(search.nearest(fast.stages[s], left.data()));
      for (size_t j = 0; j < kVectorSize; ++j)
        left[j] -= books[s][static_cast<size_t>(greedy[s]) * kVectorSize + j];
    }
    const std::array<int32_t, 4> beams = {1, 4, 16, 64};
    for (size_t i = 0; i < beams.size(); ++i) {
      std::array<uint8_t, kMaxStages> indices = {};
      search.encode(fast, x.data(), beams[i], indices.data());
      errors[i] += ErrorOf(books, x.data(), indices.data());
      // Residuals and products round differently: equal up to a near tie.
      if (i == 0) {
        BOOST_REQUIRE_CLOSE(ErrorOf(books, x.data(), indices.data()),
                            ErrorOf(books, x.data(), greedy.data()), 1e-2);
      }
    }
  }
  BOOST_TEST(errors[1] < errors[0]);
  BOOST_TEST(errors[2] < errors[1]);
  BOOST_TEST(errors[3] <= errors[2]);
}

BOOST_AUTO_TEST_CASE(a_full_beam_of_small_books_is_exhaustive) {
  std::mt19937 random(4);
  const Books books = RandomBooks(random, 2, 64);
  const BeamBooks fast = MakeBeamBooks(books);
  for (int round = 0; round < 50; ++round) {
    const std::vector<float> x = RandomValues(random, kVectorSize, 0.3f);
    std::array<uint8_t, kMaxStages> indices = {};
    Search(Isa::kBest).encode(fast, x.data(), 64, indices.data());
    double least = 1e9;
    for (int a = 0; a < 64; ++a) {
      for (int b = 0; b < 64; ++b) {
        const std::array<uint8_t, 2> pair = {static_cast<uint8_t>(a), static_cast<uint8_t>(b)};
        least = std::min(least, ErrorOf(books, x.data(), pair.data()));
      }
    }
    BOOST_REQUIRE_SMALL(ErrorOf(books, x.data(), indices.data()) - least, 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(an_isa_that_the_machine_lacks_is_refused) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
    const Result<const VectorSearch*> search = VectorSearchFor(isa);
    BOOST_TEST(search.ok() == CpuHas(isa));
    if (!search.ok()) {
      BOOST_TEST(static_cast<int>(search.status().code()) == static_cast<int>(Code::kUnsupported));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
