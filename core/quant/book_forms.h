// SPDX-License-Identifier: Apache-2.0
//
// A codebook in the orders and types that kernels want when they multiply whole books with vectors,
// beside its values as [entries, 8]. Plain data; any thread.

#ifndef WASTE_CORE_QUANT_BOOK_FORMS_H_
#define WASTE_CORE_QUANT_BOOK_FORMS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace waste {

// Largest integer of a book, and of an input that is multiplied with it: eight products of two such
// fit 32 bits.
inline constexpr int32_t kMostBookInteger = 16381;

// Where the integers of entry e stand among those of all: four registers of 16 entries whose
// results are packed two by two, within lanes of 128 bits, become bytes in the order of the
// entries.
inline constexpr int64_t PlaceOfEntry(int64_t e) {
  const int64_t lane = e % 64 / 16, part = e % 16 / 4;
  return e / 64 * 64 + 16 * part + 4 * lane + e % 4;
}

struct BookForms {
  const float* turned = nullptr;  // [8, entries]
  // [4, entries by PlaceOfEntry, 2]: components 2 i and 2 i + 1 over `step`, in whole cache lines
  const int16_t* integers = nullptr;
  float step = 0.0f;  // 0 for a book of zeros
};

// The memory of one book's forms.
class OwnedBookForms {
 public:
  // `book` is [entries, 8], all finite, a multiple of 64 entries.
  OwnedBookForms(const float* book, int64_t entries);

  BookForms view() const { return {turned_.data(), lines_.front().values, step_}; }
  int64_t bytes() const {
    return std::ssize(turned_) * 4 + std::ssize(lines_) * static_cast<int64_t>(sizeof(Line));
  }

 private:
  struct alignas(64) Line {  // a load that crosses from one to the next reads both
    static constexpr size_t kValues = 32;
    int16_t values[kValues];
  };

  std::vector<float> turned_;
  std::vector<Line> lines_;  // of integers
  float step_;
};

}  // namespace waste

#endif  // WASTE_CORE_QUANT_BOOK_FORMS_H_
