// SPDX-License-Identifier: Apache-2.0

#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tokenizer/byte_pairs.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/rank_file.h"
#include "tokenizer/rank_table.h"
#include "tokenizer/special_tokens.h"

namespace waste {

struct Tokenizer::Tables {
  RankTable ranks;
  SpecialTokens specials;
};

Result<std::unique_ptr<Tokenizer>> Tokenizer::Create(
    std::span<const uint8_t> rank_file,
    const std::vector<std::pair<int32_t, std::string>>& specials, const std::string& name) {
  WASTE_ASSIGN(RankedTokens tokens, ParseRankFile(rank_file, name));
  WASTE_ASSIGN(RankTable ranks, RankTable::Create(std::move(tokens), name));
  WASTE_ASSIGN(SpecialTokens special_tokens, SpecialTokens::Create(specials, ranks.size(), name));
  auto tables = std::make_unique<Tables>(Tables{std::move(ranks), std::move(special_tokens)});
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(tables)));
}

Tokenizer::Tokenizer(std::unique_ptr<Tables> tables) : tables_(std::move(tables)) {}
Tokenizer::~Tokenizer() = default;

void Tokenizer::Encode(std::string_view text, std::vector<int32_t>& out) const {
  while (!text.empty()) {
    const std::string_view piece = FirstPiece(text);
    WASTE_CHECK(!piece.empty());  // every character starts a piece, or this would not end
    EncodePiece(tables_->ranks, piece, out);
    text.remove_prefix(piece.size());
  }
}

void Tokenizer::EncodeMarkup(std::string_view text, std::vector<int32_t>& out) const {
  while (!text.empty()) {
    const SpecialTokens::Match match = tables_->specials.FindFirst(text);
    Encode(text.substr(0, match.start), out);
    if (match.size > 0) out.push_back(match.id);
    text.remove_prefix(match.start + match.size);
  }
}

std::string_view Tokenizer::Bytes(int32_t token) const {
  if (token < 0) return {};
  if (token < rank_count()) return tables_->ranks.Bytes(token);
  return tables_->specials.Text(token);
}

bool Tokenizer::IsSpecial(int32_t token) const { return !tables_->specials.Text(token).empty(); }

int32_t Tokenizer::FindSpecial(std::string_view text) const { return tables_->specials.Find(text); }

int32_t Tokenizer::rank_count() const { return tables_->ranks.size(); }

int32_t Tokenizer::max_id() const { return std::max(rank_count() - 1, tables_->specials.max_id()); }

}  // namespace waste
