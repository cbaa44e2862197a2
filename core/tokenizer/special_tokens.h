// SPDX-License-Identifier: Apache-2.0
//
// The special tokens: ids above the ranks, each with a text that only markup gives its meaning.
// Sorted by text, so that a search in a text looks at each position once, however many tokens there
// are. Immutable once made; any thread.

#ifndef WASTE_CORE_TOKENIZER_SPECIAL_TOKENS_H_
#define WASTE_CORE_TOKENIZER_SPECIAL_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace waste {

class SpecialTokens {
 public:
  // Errors: kCorrupt for an id below `rank_count`, an empty text, an id or a text twice.
  static Result<SpecialTokens> Create(const std::vector<std::pair<int32_t, std::string>>& specials,
                                      int32_t rank_count, const std::string& name);

  struct Match {
    size_t start;
    size_t size;  // 0: none, and `start` is the text's end
    int32_t id;
  };
  // The earliest special token in `text`; of several that start there the longest.
  Match FindFirst(std::string_view text) const;

  // The text of a token; empty if `id` is none.
  std::string_view Text(int32_t id) const;
  // The id of exactly this text, or -1.
  int32_t Find(std::string_view text) const;
  int32_t max_id() const { return by_id_.empty() ? -1 : by_id_.back().first; }

 private:
  struct Token {
    std::string text;
    int32_t id;
  };

  // The longest token that `text` starts with.
  const Token* LongestAtStart(std::string_view text) const;

  std::vector<Token> by_text_;
  std::vector<std::pair<int32_t, size_t>> by_id_;  // id and index in by_text_
  std::array<bool, 256> starts_{};                 // bytes that a token starts with
};

}  // namespace waste

#endif  // WASTE_CORE_TOKENIZER_SPECIAL_TOKENS_H_
