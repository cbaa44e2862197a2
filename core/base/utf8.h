// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 as the Unicode standard defines it (table 3-7): no overlong forms, no surrogates, nothing
// above U+10FFFF. Used for input (where a bad byte is an error with its offset) and for output
// (where a maximal bad sequence becomes one U+FFFD). Pure functions; any thread.

#ifndef WASTE_CORE_BASE_UTF8_H_
#define WASTE_CORE_BASE_UTF8_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace waste {

// One step of decoding at the start of a text.
struct Utf8Step {
  char32_t code_point;  // U+FFFD if not valid
  int32_t size;         // bytes of the character, or of the maximal bad sequence; 0 for empty text
  bool valid;
  bool truncated;  // not valid, but more bytes could complete it
};

Utf8Step DecodeUtf8(std::string_view text);

// Offset of the first byte that is not part of a valid character, or -1.
int64_t FindInvalidUtf8(std::string_view text);

// Appends `code_point` (a scalar value) to `text`.
void AppendUtf8(std::string& text, char32_t code_point);

// The longest prefix of `text` (valid UTF-8) of at most `max_bytes` that ends at a character.
std::string_view CutUtf8(std::string_view text, int64_t max_bytes);

}  // namespace waste

#endif  // WASTE_CORE_BASE_UTF8_H_
