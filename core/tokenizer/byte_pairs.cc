// SPDX-License-Identifier: Apache-2.0

#include "tokenizer/byte_pairs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <utility>

namespace waste {
namespace {

// Up to this many bytes, looking through all pairs for the lowest is faster than a heap.
constexpr size_t kSmallPiece = 64;

constexpr int32_t kNoPair = std::numeric_limits<int32_t>::max();

// The rank of a pair's union, kNoPair if it is no token.
int32_t PairRank(const RankTable& table, std::string_view both) {
  const int32_t rank = table.Find(both);
  return rank < 0 ? kNoPair : rank;
}

void MergeSmall(const RankTable& table, std::string_view piece, std::vector<int32_t>& out) {
  std::array<size_t, kSmallPiece + 1> starts;  // of the parts, and the end of the last one
  std::array<int32_t, kSmallPiece> pairs;      // [i]: the rank of parts i and i + 1 together
  size_t count = piece.size();
  for (size_t i = 0; i <= count; ++i) starts[i] = i;
  const auto pair_at = [&](size_t i) {
    return i + 1 < count ? PairRank(table, piece.substr(starts[i], starts[i + 2] - starts[i]))
                         : kNoPair;
  };
  for (size_t i = 0; i < count; ++i) pairs[i] = pair_at(i);

  while (count > 1) {
    const auto lowest = std::min_element(pairs.begin(), pairs.begin() + count);
    if (*lowest == kNoPair) break;
    const size_t at = static_cast<size_t>(lowest - pairs.begin());
    std::move(starts.begin() + at + 2, starts.begin() + count + 1, starts.begin() + at + 1);
    std::move(pairs.begin() + at + 2, pairs.begin() + count, pairs.begin() + at + 1);
    --count;
    pairs[at] = pair_at(at);
    if (at > 0) pairs[at - 1] = pair_at(at - 1);
  }
  for (size_t i = 0; i < count; ++i)
    out.push_back(table.Find(piece.substr(starts[i], starts[i + 1] - starts[i])));
}

// The parts of a long piece as a linked list in two arrays over its bytes: each part's size stands
// at its first byte and at its last one, so that both neighbours can be found.
class LongPiece {
 public:
  LongPiece(const RankTable& table, std::string_view piece)
      : table_(table), piece_(piece), size_from_(piece.size(), 1), size_until_(piece.size(), 1) {}

  void Merge() {
    std::vector<Pair> pairs;
    pairs.reserve(piece_.size());
    for (size_t at = 0; at + 1 < piece_.size(); ++at)
      if (const Pair pair = PairFrom(at); pair.rank != kNoPair) pairs.push_back(pair);
    Queue queue(LeftmostLowestFirst(), std::move(pairs));

    while (!queue.empty()) {
      const Pair pair = queue.top();
      queue.pop();
      if (!IsCurrent(pair)) continue;
      Join(pair);
      Push(queue, PairFrom(pair.start));
      if (pair.start > 0)
        Push(queue, PairFrom(pair.start - static_cast<size_t>(size_until_[pair.start - 1])));
    }
  }

  void AppendRanks(std::vector<int32_t>& out) const {
    for (size_t at = 0; at < piece_.size(); at += static_cast<size_t>(size_from_[at]))
      out.push_back(table_.Find(piece_.substr(at, static_cast<size_t>(size_from_[at]))));
  }

 private:
  struct Pair {
    size_t start;
    int32_t size;  // of both parts: a token's, since their union is one
    int32_t rank;
  };
  struct LeftmostLowestFirst {
    bool operator()(const Pair& a, const Pair& b) const {
      return a.rank != b.rank ? a.rank > b.rank : a.start > b.start;
    }
  };
  using Queue = std::priority_queue<Pair, std::vector<Pair>, LeftmostLowestFirst>;

  static void Push(Queue& queue, const Pair& pair) {
    if (pair.rank != kNoPair) queue.push(pair);
  }

  // Bytes of the part at `start` and the one after it; 0 if one of them does not exist.
  size_t SizeOfTwo(size_t start) const {
    const size_t first = static_cast<size_t>(size_from_[start]);
    if (first == 0 || start + first >= piece_.size()) return 0;
    return first + static_cast<size_t>(size_from_[start + first]);
  }

  Pair PairFrom(size_t start) const {
    const size_t size = SizeOfTwo(start);
    const int32_t rank = size == 0 ? kNoPair : PairRank(table_, piece_.substr(start, size));
    return {start, rank == kNoPair ? 0 : static_cast<int32_t>(size), rank};
  }

  // A pair whose parts have since been merged with others stays in the queue. Parts only grow, so
  // the size tells whether the two parts here still cover the pair's bytes.
  bool IsCurrent(const Pair& pair) const {
    return SizeOfTwo(pair.start) == static_cast<size_t>(pair.size);
  }

  void Join(const Pair& pair) {
    size_from_[pair.start + static_cast<size_t>(size_from_[pair.start])] = 0;
    size_from_[pair.start] = pair.size;
    size_until_[pair.start + static_cast<size_t>(pair.size) - 1] = pair.size;
  }

  const RankTable& table_;
  std::string_view piece_;
  std::vector<int32_t> size_from_;   // 0 where no part starts
  std::vector<int32_t> size_until_;  // read only where a part ends
};

}  // namespace

void EncodePiece(const RankTable& table, std::string_view piece, std::vector<int32_t>& out) {
  if (const int32_t whole = table.Find(piece); whole >= 0) {
    out.push_back(whole);
  } else if (piece.size() <= kSmallPiece) {
    MergeSmall(table, piece, out);
  } else {
    LongPiece parts(table, piece);
    parts.Merge();
    parts.AppendRanks(out);
  }
}

}  // namespace waste
