// SPDX-License-Identifier: Apache-2.0

#include "tokenizer/rank_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace waste {
namespace {

// Eight bytes a step, each folded in by a multiplication whose high bits come back down. The odd
// constants are the fractions of the golden ratio and of the square root of two.
uint64_t HashOf(std::string_view bytes) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  constexpr uint64_t kEnd = 0x6A09E667F3BCC909;
  uint64_t hash = bytes.size() * kEnd;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = (hash ^ word) * kStep;
    hash ^= hash >> 32;
  }
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  hash = (hash ^ word) * kStep;
  hash = (hash ^ hash >> 29) * kEnd;
  return hash ^ hash >> 32;
}

uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

}  // namespace

RankTable::RankTable(RankedTokens tokens) : tokens_(std::move(tokens)) {
  slots_.resize(std::bit_ceil(2 * std::max<size_t>(tokens_.places.size(), 1)));
}

Result<RankTable> RankTable::Create(RankedTokens tokens, const std::string& name) {
  RankTable table(std::move(tokens));
  for (int32_t rank = 0; rank < table.size(); ++rank) {
    const std::string_view bytes = table.Bytes(rank);
    const uint64_t hash = HashOf(bytes);
    Slot& slot = table.slots_[table.SlotOf(bytes, hash)];
    if (slot.rank >= 0)
      return Failure(Code::kFormat, name, ": ranks ", slot.rank, " and ", rank,
                     " are the same token");
    slot = {TagOf(hash), rank};
    table.longest_ = std::max(table.longest_, bytes.size());
  }
  return table;
}

int32_t RankTable::Find(std::string_view bytes) const {
  if (bytes.size() > longest_) return -1;
  return slots_[SlotOf(bytes, HashOf(bytes))].rank;
}

size_t RankTable::SlotOf(std::string_view bytes, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const uint32_t tag = TagOf(hash);
  size_t at = hash & mask;
  while (slots_[at].rank >= 0 && (slots_[at].tag != tag || Bytes(slots_[at].rank) != bytes))
    at = (at + 1) & mask;
  return at;
}

}  // namespace waste
