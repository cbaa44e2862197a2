// SPDX-License-Identifier: Apache-2.0
//
// One piece of text to ranks: the whole piece if it is a token, else its bytes, of which the
// neighbours whose union has the lowest rank are merged (the leftmost at a tie) until no union is a
// token. That is tiktoken's result, in O(n log n) also for a piece of megabytes. Pure function; any
// thread.

#ifndef WASTE_CORE_TOKENIZER_BYTE_PAIRS_H_
#define WASTE_CORE_TOKENIZER_BYTE_PAIRS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/rank_table.h"

namespace waste {

// Appends the ranks of `piece`. Every single byte must be a token of `table`.
void EncodePiece(const RankTable& table, std::string_view piece, std::vector<int32_t>& out);

}  // namespace waste

#endif  // WASTE_CORE_TOKENIZER_BYTE_PAIRS_H_
