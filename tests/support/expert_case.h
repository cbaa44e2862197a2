// SPDX-License-Identifier: Apache-2.0
//
// Expert matrices of every codec from random bytes, for tests of kernels: any bytes are indices, so
// nothing need be encoded. Books are random, not a quantiser's. Plain data that points into itself;
// one thread.

#ifndef WASTE_TESTS_SUPPORT_EXPERT_CASE_H_
#define WASTE_TESTS_SUPPORT_EXPERT_CASE_H_

#include <cstdint>
#include <vector>

#include "support/kernel_case.h"

namespace waste {

inline constexpr ExpertCodec kExpertCodecs[] = {{IndexKind::kByte, 2, 256},
                                                {IndexKind::kByte, 3, 256},
                                                {IndexKind::kByte, 4, 256},
                                                {IndexKind::kByte, 6, 256},
                                                {IndexKind::kPacked6, 4, 64}};

// Any bytes are indices. Every fourth row has a subnormal scale. A stage's book is `fading` times
// as large as the one before.
struct RandomExpert {
  RandomExpert(const ExpertCodec& codec, int64_t rows, int64_t columns, float fading = 1.0f) {
    indices = RandomBytes(3, ExpertIndexBytes(codec, rows, columns));
    for (int64_t r = 0; r < rows; ++r) {
      const auto half = static_cast<uint16_t>(r % 4 == 3 ? 1 + r % 1023 : 0x2C00 + r % 1024);
      scales.push_back(static_cast<uint8_t>(half));
      scales.push_back(static_cast<uint8_t>(half >> 8));
    }
    w = {.codec = codec, .rows = rows, .columns = columns};
    float size = 1.0f;
    for (int32_t s = 0; s < codec.stages; ++s, size *= fading) {
      books.push_back(RandomFloats(50 + static_cast<uint32_t>(s), codec.entries * kVectorSize));
      for (float& value : books.back()) value *= size;
      forms.emplace_back(books.back().data(), codec.entries);
    }
    for (int32_t s = 0; s < codec.stages; ++s) {
      w.books[s] = books[s].data();
      w.forms[s] = forms[s].view();
    }
    w.indices = indices.data();
    w.scales = scales.data();
  }
  RandomExpert(const RandomExpert&) = delete;
  RandomExpert& operator=(const RandomExpert&) = delete;

  ExpertMatrix w;  // points into the rest
  std::vector<uint8_t> indices;
  std::vector<uint8_t> scales;
  std::vector<std::vector<float>> books;  // [entries, 8] each
  std::vector<OwnedBookForms> forms;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_EXPERT_CASE_H_
