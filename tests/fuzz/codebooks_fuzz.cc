// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as codebooks.bin of 64- and 256-entry books; values that are accepted are finite.

#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "container/codebooks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace waste;
  for (const int64_t entries : {64, 256}) {
    const auto books = ParseCodebooks({data, size}, entries, "codebooks.bin");
    if (!books.ok()) continue;
    WASTE_CHECK(books->count() * CodebookRecordBytes(entries) == static_cast<int64_t>(size));
    for (int64_t i = 0; i < books->count() * entries * kVectorSize; ++i)
      WASTE_CHECK(std::isfinite(books->book(0)[i]));
    WASTE_CHECK(books->FindGap(0, books->count()) < books->count());
  }
  return 0;
}
