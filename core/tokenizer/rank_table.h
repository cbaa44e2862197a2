// SPDX-License-Identifier: Apache-2.0
//
// Bytes to rank and back: an open-addressing hash table over the tokens of a rank file, because
// merging asks it once for each pair of neighbours. Immutable once made; any thread.

#ifndef WASTE_CORE_TOKENIZER_RANK_TABLE_H_
#define WASTE_CORE_TOKENIZER_RANK_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/rank_file.h"

namespace waste {

class RankTable {
 public:
  // Errors: kFormat if two ranks have the same bytes.
  static Result<RankTable> Create(RankedTokens tokens, const std::string& name);

  // The rank of exactly these bytes, or -1.
  int32_t Find(std::string_view bytes) const;
  // `rank` is in [0, size()).
  std::string_view Bytes(int32_t rank) const { return tokens_.Bytes(rank); }
  int32_t size() const { return static_cast<int32_t>(tokens_.places.size()); }

 private:
  struct Slot {
    uint32_t tag = 0;  // hash bits that did not choose the slot: most other tokens end here
    int32_t rank = -1;
  };

  explicit RankTable(RankedTokens tokens);
  // The slot that holds `bytes`, or the free one where they would go.
  size_t SlotOf(std::string_view bytes, uint64_t hash) const;

  RankedTokens tokens_;
  std::vector<Slot> slots_;  // a power of two, at most half of them in use
  size_t longest_ = 0;       // bytes
};

}  // namespace waste

#endif  // WASTE_CORE_TOKENIZER_RANK_TABLE_H_
