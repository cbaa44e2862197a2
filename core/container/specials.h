// SPDX-License-Identifier: Apache-2.0
//
// specials.json: the tokens above the rank file's, as a list of ids and texts (docs/format.md,
// "Side files"). What they mean is the tokenizer's. Pure functions; any thread.

#ifndef WASTE_CORE_CONTAINER_SPECIALS_H_
#define WASTE_CORE_CONTAINER_SPECIALS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace waste {

struct SpecialToken {
  int32_t id;
  std::string text;
};

// Sorted by id, whatever the file's order. Errors name `path`: kFormat (not such a list), kCorrupt
// (an id out of range or twice, a text that is empty or twice).
Result<std::vector<SpecialToken>> ParseSpecials(std::string_view text, const std::string& path);

// The file's text, sorted by id.
std::string PrintSpecials(std::vector<SpecialToken> specials);

}  // namespace waste

#endif  // WASTE_CORE_CONTAINER_SPECIALS_H_
