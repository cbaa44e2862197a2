// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer of a checkpoint as a container holds it: a rank file and the tokens above it. Taken
// from tiktoken.model or tokenizer.model (a rank file, kept byte for byte) with the added tokens of
// tokenizer_config.json, or made from tokenizer.json. What comes back has been loaded once: a
// container is never written with a tokenizer that will not open.

#ifndef WASTE_CORE_CONVERT_TOKENIZER_SOURCE_H_
#define WASTE_CORE_CONVERT_TOKENIZER_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "container/specials.h"
#include "tokenizer/tokenizer.h"

namespace waste {

struct TokenizerSource {
  std::string path;  // of the file that the ranks come from
  std::vector<uint8_t> rank_file;
  std::vector<SpecialToken> specials;  // sorted by id
};

// Errors name the file: kIo (none of the three is there), kFormat, kCorrupt, kUnsupported (a
// tokenizer.json that is no byte-level BPE with the Kimi pattern).
Result<TokenizerSource> ReadTokenizerSource(const std::string& folder);

// The tokenizer that a reader of the container will have.
Result<std::unique_ptr<Tokenizer>> MakeTokenizer(const TokenizerSource& source);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_TOKENIZER_SOURCE_H_
