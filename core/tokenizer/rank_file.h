// SPDX-License-Identifier: Apache-2.0
//
// The tiktoken rank file: one line a token, its bytes in base64, a space, its rank. Strict, since a
// file that is nearly right would give other ids without a word: canonical base64, ranks 0 to n-1
// each once, every single byte a token. Whether a token occurs twice is the rank table's to see.
// Pure function; any thread.

#ifndef WASTE_CORE_TOKENIZER_RANK_FILE_H_
#define WASTE_CORE_TOKENIZER_RANK_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace waste {

// The tokens' bytes, one after another in the order of the file.
struct RankedTokens {
  struct Place {
    int32_t start = -1;
    int32_t size = 0;
  };
  std::string bytes;
  std::vector<Place> places;  // by rank

  std::string_view Bytes(int32_t rank) const {
    const Place& place = places[static_cast<size_t>(rank)];
    return {bytes.data() + place.start, static_cast<size_t>(place.size)};
  }
};

// `name` is the file's name for messages. Blank lines and CRLF are taken. Errors: kFormat with the
// line's number.
Result<RankedTokens> ParseRankFile(std::span<const uint8_t> file, const std::string& name);

// The file of these tokens, each at the rank of its place.
std::string PrintRankFile(const std::vector<std::string>& tokens);

}  // namespace waste

#endif  // WASTE_CORE_TOKENIZER_RANK_FILE_H_
