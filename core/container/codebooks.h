// SPDX-License-Identifier: Apache-2.0
//
// codebooks.bin: fixed-size records, one book each, numbered by their place (docs/format.md,
// "Codebooks"). Every header is checked and every value decoded as a true f16, subnormals kept. A
// record of zeros is a gap: allowed to be there, never to be used. Pure functions over bytes; a
// parsed Codebooks is immutable; any thread.

#ifndef WASTE_CORE_CONTAINER_CODEBOOKS_H_
#define WASTE_CORE_CONTAINER_CODEBOOKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "quant/expert_format.h"

namespace waste {

inline constexpr int64_t kCodebookHeaderSize = 16;      // bytes
inline constexpr uint32_t kCodebookMagic = 0x4B424357;  // "WCBK"

// Books that records can name: a 16-bit first book and up to three kinds times kMaxStages.
inline constexpr int64_t kMaxCodebooks = 0xFFFF + 3 * kMaxStages;

// Bytes of a book of `entries` vectors.
inline constexpr int64_t CodebookRecordBytes(int64_t entries) {
  return kCodebookHeaderSize + entries * kVectorSize * 2;
}

struct Codebooks {
  int64_t entries = 0;
  std::vector<float> values;          // [books, entries, 8]
  std::vector<OwnedBookForms> forms;  // [books]
  std::vector<bool> is_gap;           // [books]

  int64_t count() const { return static_cast<int64_t>(is_gap.size()); }
  const float* book(int64_t number) const { return values.data() + number * entries * kVectorSize; }
  BookForms book_forms(int64_t number) const { return forms[static_cast<size_t>(number)].view(); }
  // The first gap among `count` books from `first` on (all of them exist), or -1.
  int64_t FindGap(int64_t first, int64_t count) const;
};

// `bytes` is the whole file; `entries` is 256 or 64. Errors name `path` and the book: kFormat (no
// codebook there), kUnsupported (another format), kCorrupt (a size that does not divide, a header
// that contradicts its place, a value that is not finite).
Result<Codebooks> ParseCodebooks(std::span<const uint8_t> bytes, int64_t entries,
                                 const std::string& path);

// The record of book `number`; `values` is [entries, 8] and is rounded to f16. Errors: kUnsupported
// if a value does not fit f16.
Result<std::vector<uint8_t>> EncodeCodebook(int64_t number, std::span<const float> values);

}  // namespace waste

#endif  // WASTE_CORE_CONTAINER_CODEBOOKS_H_
