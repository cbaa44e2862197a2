// SPDX-License-Identifier: Apache-2.0

#include "quant/book_forms.h"

#include <algorithm>
#include <cmath>

#include "quant/expert_format.h"

namespace waste {

OwnedBookForms::OwnedBookForms(const float* book, int64_t entries)
    : turned_(static_cast<size_t>(kVectorSize * entries)), lines_(turned_.size() / Line::kValues) {
  float most = 0.0f;
  for (int64_t i = 0; i < kVectorSize * entries; ++i) most = std::max(most, std::fabs(book[i]));
  step_ = most / static_cast<float>(kMostBookInteger);
  for (int64_t e = 0; e < entries; ++e)
    for (int64_t i = 0; i < kVectorSize; ++i) {
      const float value = book[e * kVectorSize + i];
      turned_[static_cast<size_t>(i * entries + e)] = value;
      const float integer = step_ > 0.0f ? std::nearbyint(value / step_) : 0.0f;
      const auto at = static_cast<size_t>((i / 2 * entries + PlaceOfEntry(e)) * 2 + i % 2);
      lines_[at / Line::kValues].values[at % Line::kValues] = static_cast<int16_t>(integer);
    }
}

}  // namespace waste
