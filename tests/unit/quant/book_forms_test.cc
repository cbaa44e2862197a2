// SPDX-License-Identifier: Apache-2.0

#include "quant/book_forms.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "quant/expert_format.h"

namespace waste {
namespace {

constexpr int64_t kEntries = 64;

std::vector<float> RandomBook() {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::vector<float> book(kEntries * kVectorSize);
  for (float& value : book) value = normal(random);
  return book;
}

BOOST_AUTO_TEST_SUITE(book_forms)

BOOST_AUTO_TEST_CASE(both_forms_hold_every_value_where_they_say) {
  const std::vector<float> book = RandomBook();
  const OwnedBookForms owned(book.data(), kEntries);
  const BookForms forms = owned.view();
  BOOST_TEST(owned.bytes() == std::ssize(book) * 6);
  int32_t most = 0;
  for (int64_t e = 0; e < kEntries; ++e)
    for (int64_t i = 0; i < kVectorSize; ++i) {
      const float value = book[e * kVectorSize + i];
      BOOST_TEST(forms.turned[i * kEntries + e] == value);
      const int16_t integer = forms.integers[(i / 2 * kEntries + PlaceOfEntry(e)) * 2 + i % 2];
      BOOST_TEST(std::fabs(integer * forms.step - value) <= 0.501f * forms.step);
      most = std::max(most, std::abs(int32_t{integer}));
    }
  BOOST_TEST(most == kMostBookInteger);
  BOOST_TEST(reinterpret_cast<uintptr_t>(forms.integers) % 64 == 0u);
}

// What a CPU's packing instructions do: within each of four lanes, one register after the other.
BOOST_AUTO_TEST_CASE(packing_four_registers_puts_entries_in_order) {
  std::array<std::array<int64_t, 16>, 4> entry_of;  // by register and element
  for (int64_t e = 0; e < 64; ++e) entry_of[PlaceOfEntry(e) / 16][PlaceOfEntry(e) % 16] = e;
  for (int64_t lane = 0, next = 0; lane < 4; ++lane)
    for (const auto& part : entry_of)
      for (int64_t i = 0; i < 4; ++i) BOOST_TEST(part[4 * lane + i] == next++);
  BOOST_TEST(PlaceOfEntry(64 + 17) == 64 + PlaceOfEntry(17));
}

BOOST_AUTO_TEST_CASE(eight_of_the_largest_products_fit_32_bits) {
  const int64_t most = kMostBookInteger;
  BOOST_TEST(kVectorSize * most * most <= std::numeric_limits<int32_t>::max());
}

BOOST_AUTO_TEST_CASE(a_book_of_zeros_or_of_the_smallest_numbers_is_harmless) {
  for (const float value : {0.0f, std::numeric_limits<float>::denorm_min()}) {
    const std::vector<float> book(kEntries * kVectorSize, value);
    const OwnedBookForms owned(book.data(), kEntries);
    for (size_t i = 0; i < book.size(); ++i)
      BOOST_TEST_REQUIRE(owned.view().integers[i] * owned.view().step <= value);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
