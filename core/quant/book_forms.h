// SPDX-License-Identifier: Apache-2.0
//
// A codebook in the orders and types that kernels want when they multiply whole books with vectors,
// beside its values as [entries, 8]. Plain data; any thread.

#ifndef WASTE_CORE_QUANT_BOOK_FORMS_H_
#define WASTE_CORE_QUANT_BOOK_FORMS_H_

#include <cstdint>
#include <vector>

namespace waste {

// Largest integer of a book, and of an input that is multiplied with it: eight products of two such
// fit 32 bits.
inline constexpr int32_t kMostBookInteger = 16381;

struct BookForms {
  const float* turned = nullptr;      // [8, entries]
  const int16_t* integers = nullptr;  // [4, entries, 2]: components 2 i and 2 i + 1, over `step`
  float step = 0.0f;                  // 0 for a book of zeros
};

// The memory of one book's forms.
class OwnedBookForms {
 public:
  OwnedBookForms(const float* book, int64_t entries);  // [entries, 8], all finite

  BookForms view() const { return {turned_.data(), integers_.data(), step_}; }
  int64_t bytes() const { return std::ssize(turned_) * 4 + std::ssize(integers_) * 2; }

 private:
  std::vector<float> turned_;
  std::vector<int16_t> integers_;
  float step_;
};

}  // namespace waste

#endif  // WASTE_CORE_QUANT_BOOK_FORMS_H_
