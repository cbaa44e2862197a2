// SPDX-License-Identifier: Apache-2.0

#include "tokenizer/special_tokens.h"

#include <algorithm>

namespace waste {

Result<SpecialTokens> SpecialTokens::Create(
    const std::vector<std::pair<int32_t, std::string>>& specials, int32_t rank_count,
    const std::string& name) {
  SpecialTokens tokens;
  for (const auto& [id, text] : specials) {
    if (id < rank_count)
      return Failure(Code::kCorrupt, name, ": special token ", id, " lies inside the ", rank_count,
                     " ranks");
    if (text.empty()) return Failure(Code::kCorrupt, name, ": special token ", id, " has no text");
    tokens.by_text_.push_back({text, id});
    tokens.starts_[static_cast<uint8_t>(text[0])] = true;
  }
  std::sort(tokens.by_text_.begin(), tokens.by_text_.end(),
            [](const Token& a, const Token& b) { return a.text < b.text; });
  for (size_t i = 0; i < tokens.by_text_.size(); ++i) {
    const Token& token = tokens.by_text_[i];
    if (i > 0 && tokens.by_text_[i - 1].text == token.text)
      return Failure(Code::kCorrupt, name, ": special tokens ", tokens.by_text_[i - 1].id, " and ",
                     token.id, " have the same text");
    tokens.by_id_.emplace_back(token.id, i);
  }
  std::sort(tokens.by_id_.begin(), tokens.by_id_.end());
  for (size_t i = 1; i < tokens.by_id_.size(); ++i)
    if (tokens.by_id_[i].first == tokens.by_id_[i - 1].first)
      return Failure(Code::kCorrupt, name, ": special token ", tokens.by_id_[i].first,
                     " is given twice");
  return tokens;
}

SpecialTokens::Match SpecialTokens::FindFirst(std::string_view text) const {
  for (size_t at = 0; at < text.size(); ++at) {
    if (!starts_[static_cast<uint8_t>(text[at])]) continue;
    if (const Token* token = LongestAtStart(text.substr(at)))
      return {at, token->text.size(), token->id};
  }
  return {text.size(), 0, -1};
}

const SpecialTokens::Token* SpecialTokens::LongestAtStart(std::string_view text) const {
  const Token* longest = nullptr;
  auto first = by_text_.begin();  // [first, last): the tokens that start as the text does so far
  auto last = by_text_.end();
  for (size_t at = 0; at < text.size() && first != last; ++at) {
    const uint8_t byte = static_cast<uint8_t>(text[at]);
    const auto byte_of = [at](const Token& token) { return static_cast<uint8_t>(token.text[at]); };
    first = std::partition_point(first, last, [&](const Token& t) { return byte_of(t) < byte; });
    last = std::partition_point(first, last, [&](const Token& t) { return byte_of(t) == byte; });
    // The shortest sorts first; it has no further byte to look at, so it leaves the range.
    if (first != last && first->text.size() == at + 1) longest = &*first++;
  }
  return longest;
}

std::string_view SpecialTokens::Text(int32_t id) const {
  const auto found = std::lower_bound(by_id_.begin(), by_id_.end(), std::pair{id, size_t{0}});
  if (found == by_id_.end() || found->first != id) return {};
  return by_text_[found->second].text;
}

int32_t SpecialTokens::Find(std::string_view text) const {
  const auto found =
      std::lower_bound(by_text_.begin(), by_text_.end(), text,
                       [](const Token& a, std::string_view b) { return a.text < b; });
  return found == by_text_.end() || found->text != text ? -1 : found->id;
}

}  // namespace waste
