// SPDX-License-Identifier: Apache-2.0

#include "model/latent_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "kernels/fetch_ahead.h"

namespace waste {
namespace {

// Scores of so many queries are computed together, whether they are there or not: whole vectors.
constexpr int64_t kLanes = 16;
static_assert(kAttentionQueries % kLanes == 0);

// Columns of queries that are multiplied with a whole tile: they stay in the nearest cache.
constexpr int64_t kPartColumns = 96;

constexpr float kNone = -std::numeric_limits<float>::infinity();

}  // namespace

LatentScratch LatentScratch::Plan(Arena& arena, const MlaConfig& mla) {
  return {.turned = arena.Floats(mla.cache_width() * kAttentionQueries),
          .scores = arena.Floats(kAttentionTile * kAttentionQueries),
          .largest = arena.Floats(kAttentionQueries)};
}

LatentAttention::LatentAttention(const Kernels& kernels, const MlaConfig& mla,
                                 const LatentScratch& scratch)
    : kernels_(kernels),
      rank_(mla.kv_lora_rank),
      width_(mla.cache_width()),
      scale_(1.0f / std::sqrt(static_cast<float>(mla.nope_dim + mla.rope_dim))),
      s_(scratch) {}

void LatentAttention::SetQueries(const float* query, int64_t count, int64_t seen, int64_t rows) {
  count_ = count;
  seen_ = seen;
  rows_ = rows;
  for (int64_t j = 0; j < width_; ++j) {
    float* const turned = s_.turned + j * kAttentionQueries;
    for (int64_t i = 0; i < count; ++i) turned[i] = scale_ * query[i * width_ + j];
    std::fill(turned + count, turned + kAttentionQueries, 0.0f);
  }
}

void LatentAttention::Sum(const float* cache, int64_t begin, int64_t end, const LatentSums& sums) {
  std::fill_n(sums.largest, count_, kNone);
  std::fill_n(sums.total, count_, 0.0f);
  std::fill_n(sums.mean, count_ * rank_, 0.0f);
  for (int64_t at = begin; at < end; at += kAttentionTile)
    AddTile(cache + at * width_, at, std::min(end - at, kAttentionTile), sums);
}

// As much of the tile behind this one as `part` of its columns from `begin` on; it need not exist.
void LatentAttention::FetchNext(const float* tile, int64_t begin, int64_t part) const {
  constexpr int64_t kLine = 64, kFloat = sizeof(float);
  const int64_t end = kAttentionTile * (width_ + begin + part) * kFloat;
  for (int64_t at = kAttentionTile * (width_ + begin) * kFloat; at < end; at += kLine)
    FetchLine(AddressAt(tile, at));
}

// What is summed is rescaled when a larger score appears; a position behind a query's own has the
// weight 0. Queries are the columns of scores, so that a product needs no sum over lanes.
void LatentAttention::AddTile(const float* tile, int64_t begin, int64_t count,
                              const LatentSums& sums) {
  const int64_t columns = RoundUp(count_, kLanes);
  for (int64_t t = 0; t < count; ++t) std::fill_n(s_.scores + t * kAttentionQueries, columns, 0.0f);
  for (int64_t j = 0; j < width_; j += kPartColumns) {
    const int64_t part = std::min(kPartColumns, width_ - j);
    FetchNext(tile, j, part);
    kernels_.multiply_add(tile + j, width_, 1, s_.turned + j * kAttentionQueries, kAttentionQueries,
                          count, part, columns, s_.scores, kAttentionQueries);
  }
  FillUnseen(begin, count, kNone);
  TakeLargest(count, sums);
  for (int64_t t = 0; t < count; ++t) {
    float* const scores = s_.scores + t * kAttentionQueries;
    for (int64_t i = 0; i < columns; ++i) scores[i] -= s_.largest[i];
    kernels_.exp(scores, columns, scores);
  }
  FillUnseen(begin, count, 0.0f);  // exp gives no 0
  for (int64_t t = 0; t < count; ++t)
    for (int64_t i = 0; i < count_; ++i) sums.total[i] += s_.scores[t * kAttentionQueries + i];
  kernels_.multiply_add(s_.scores, 1, kAttentionQueries, tile, width_, count_, count, rank_,
                        sums.mean, rank_);
}

void LatentAttention::FillUnseen(int64_t begin, int64_t count, float value) {
  if (begin + count <= seen_) return;
  for (int64_t i = 0; i < count_; ++i)
    for (int64_t t = std::max<int64_t>(seen_ + i % rows_ - begin, 0); t < count; ++t)
      s_.scores[t * kAttentionQueries + i] = value;
}

// A new largest score of a query shrinks what was summed.
void LatentAttention::TakeLargest(int64_t count, const LatentSums& sums) {
  std::fill_n(s_.largest, kAttentionQueries, 0.0f);
  std::copy_n(sums.largest, count_, s_.largest);
  for (int64_t t = 0; t < count; ++t)
    for (int64_t i = 0; i < count_; ++i)
      s_.largest[i] = std::max(s_.largest[i], s_.scores[t * kAttentionQueries + i]);
  for (int64_t i = 0; i < count_; ++i) {
    if (s_.largest[i] == sums.largest[i]) continue;
    const float shrink = std::exp(sums.largest[i] - s_.largest[i]);
    sums.largest[i] = s_.largest[i];
    sums.total[i] *= shrink;
    for (int64_t j = 0; j < rank_; ++j) sums.mean[i * rank_ + j] *= shrink;
  }
}

void MergeSums(const LatentSums& sums, int64_t runs, int64_t stride, int64_t rank, float* to) {
  float largest = kNone, total = 0.0f;
  for (int64_t run = 0; run < runs; ++run) largest = std::max(largest, sums.largest[run * stride]);
  for (int64_t run = 0; run < runs; ++run)
    total += std::exp(sums.largest[run * stride] - largest) * sums.total[run * stride];
  std::fill_n(to, rank, 0.0f);
  for (int64_t run = 0; run < runs; ++run) {
    const float factor = std::exp(sums.largest[run * stride] - largest) / total;
    const float* const mean = sums.mean + run * stride * rank;
    for (int64_t j = 0; j < rank; ++j) to[j] += factor * mean[j];
  }
}

}  // namespace waste
