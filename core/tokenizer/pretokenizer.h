// SPDX-License-Identifier: Apache-2.0
//
// Cuts text into the pieces that byte-pair merges never cross, as the Kimi pattern does it:
//
//   [\p{Han}]+
//   [^\r\n\p{L}\p{N}]?[U]*[L]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?     U, L: upper and lower below
//   [^\r\n\p{L}\p{N}]?[U]+[L]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//   \p{N}{1,3}
//    ?[^\s\p{L}\p{N}]+[\r\n]*
//   \s*[\r\n]+
//   \s+(?!\S)
//   \s+
//
// with U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]], L = [\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]:
// the first alternative that matches wins, greedy with backtracking. A hand-written scanner,
// because a piece's end follows from one pass over it; cutting a whole text takes linear time. Pure
// functions; any thread.

#ifndef WASTE_CORE_TOKENIZER_PRETOKENIZER_H_
#define WASTE_CORE_TOKENIZER_PRETOKENIZER_H_

#include <string_view>

namespace waste {

// The piece that `text` starts with; empty only for empty text. A byte that is not part of a valid
// UTF-8 character is a piece of its own, and not white space.
std::string_view FirstPiece(std::string_view text);

}  // namespace waste

#endif  // WASTE_CORE_TOKENIZER_PRETOKENIZER_H_
