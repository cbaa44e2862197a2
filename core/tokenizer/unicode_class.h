// SPDX-License-Identifier: Apache-2.0
//
// The classes of a code point that the pre-tokeniser's pattern speaks of, as tiktoken's regex means
// them (Unicode 16). A set of bits; a code point may be in several classes, a letter of the Han
// script only in kHan. Pure function over generated tables; any thread.

#ifndef WASTE_CORE_TOKENIZER_UNICODE_CLASS_H_
#define WASTE_CORE_TOKENIZER_UNICODE_CLASS_H_

#include <cstdint>

#include "tokenizer/unicode_tables.h"

namespace waste {

enum UnicodeClass : uint32_t {
  kHan = 1,       // \p{Han}
  kUpper = 2,     // Lu, Lt, Lm, Lo, M without Han
  kLower = 4,     // Ll, Lm, Lo, M without Han
  kNumber = 8,    // \p{N}
  kSpace = 16,    // \s
  kNewline = 32,  // [\r\n]
  kLead = 64,     // [^\r\n\p{L}\p{N}]: may stand before a word
  kSymbol = 128,  // [^\s\p{L}\p{N}]
};

// `code_point` is at most U+10FFFF; a surrogate is in no class.
inline uint32_t ClassesOf(char32_t code_point) {
  const uint32_t c = code_point;
  const uint64_t block = unicode_tables::kBlocks[c >> 10] >> (c >> 7 & 7) * 8 & 0xFF;
  const uint64_t kind = unicode_tables::kKinds[block * 8 + (c >> 4 & 7)] >> (c & 15) * 4 & 0xF;
  return unicode_tables::kKindFlags[kind];
}

}  // namespace waste

#endif  // WASTE_CORE_TOKENIZER_UNICODE_CLASS_H_
