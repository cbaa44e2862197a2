// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json of a byte-level BPE to a rank file. The two differ: tokenizer.json merges by the
// place of a pair in its list, a rank file by the id of the result, and a container has no place
// for a pre-tokenisation pattern but the Kimi one. So a file is taken only if its pattern is that
// one and if both ways give the same ids for every entry of its vocabulary, alone and beside its
// neighbours, and for a text of every script. Hostile input; pure functions.

#ifndef WASTE_CORE_CONVERT_TOKENIZER_JSON_H_
#define WASTE_CORE_CONVERT_TOKENIZER_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "container/specials.h"

namespace waste {

struct TokenizerJson {
  std::vector<uint8_t> rank_file;
  std::vector<SpecialToken> specials;  // the added tokens, in the order of the file
};

// The pre-tokenisation pattern as the Kimi releases write it.
extern const char* const kKimiPattern;

// Errors name `path`: kFormat (no tokenizer.json), kUnsupported (a sound one that a rank file
// cannot express, with the reason).
Result<TokenizerJson> ParseTokenizerJson(std::string_view text, const std::string& path);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_TOKENIZER_JSON_H_
