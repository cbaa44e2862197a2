// SPDX-License-Identifier: Apache-2.0

#include "model/mla_written.h"

#include <algorithm>

#include "model/primitives.h"

namespace waste {
namespace {

// A run has so many tiles at least: less, and turning its queries costs more than a few percent.
constexpr int64_t kRunTiles = 4;
constexpr int64_t kMostRuns = 16;

// How the first `seen` positions of a cache are split.
struct Runs {
  int64_t seen, tiles, count;

  explicit Runs(int64_t positions)
      : seen(positions),
        tiles(CeilDivide(positions, kAttentionTile)),
        count(std::clamp<int64_t>(tiles / kRunTiles, 1, kMostRuns)) {}
  int64_t Begin(int64_t run) const { return std::min(tiles * run / count * kAttentionTile, seen); }
};

struct Attention {
  Compute& compute;
  const MlaConfig& mla;
  const MlaWeights& w;
  const WrittenMlaScratch& s;
  const WrittenRows& rows;

  // q~ of all rows, head by head.
  void MakeQueries() const {
    const int64_t rank = mla.kv_lora_rank, width = mla.cache_width();
    const int64_t q_dim = mla.nope_dim + mla.rope_dim;
    compute.Parallel(mla.heads, mla.nope_dim * rank * rows.count, [&](int64_t begin, int64_t end) {
      const Compute::Scratch thread(compute);
      for (int64_t head = begin; head < end; ++head) {
        const int64_t key = head * mla.nope_dim;
        float* const query = s.query + head * width;
        compute.kernels.trunk_transposed(w.key, key, key + mla.nope_dim, rows.q + head * q_dim,
                                         mla.heads * q_dim, rows.count, query, mla.heads * width,
                                         thread.floats());
        for (int64_t r = 0; r < rows.count; ++r)
          std::copy_n(rows.q + (r * mla.heads + head) * q_dim + mla.nope_dim, mla.rope_dim,
                      query + r * mla.heads * width + rank);
      }
    });
  }

  // Sums of latents of one row, at its position in a cache. With one run there are as many blocks
  // of heads as threads at least; else all heads look at a tile together, as far as they can.
  void SumLatents(int64_t row, const float* cache, int64_t position) const {
    const Runs runs(position + 1);
    const int64_t share = runs.count > 1 ? mla.heads : CeilDivide(mla.heads, compute.threads());
    const int64_t block_heads = std::clamp<int64_t>(share, 1, kAttentionQueries);
    const int64_t blocks = CeilDivide(mla.heads, block_heads);
    compute.Run(blocks * runs.count, 1, [&](int64_t begin, int64_t end) {
      const Compute::Scratch thread(compute);
      Arena arena(thread.memory());
      LatentAttention attention(compute.kernels, mla, LatentScratch::Plan(arena, mla));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t run = i / blocks, head = i % blocks * block_heads;
        attention.SetQueries(s.query + (row * mla.heads + head) * mla.cache_width(),
                             std::min(mla.heads - head, block_heads), runs.seen, 1);
        attention.Sum(cache, runs.Begin(run), runs.Begin(run + 1), SumsAt(run * mla.heads + head));
      }
    });
    compute.Parallel(mla.heads, mla.kv_lora_rank * runs.count, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head)
        MergeSums(SumsAt(head), runs.count, mla.heads, mla.kv_lora_rank,
                  s.mean + (row * mla.heads + head) * mla.kv_lora_rank);
    });
  }

  LatentSums SumsAt(int64_t query) const {
    return {s.runs.mean + query * mla.kv_lora_rank, s.runs.largest + query, s.runs.total + query};
  }

  void WriteOutputs() const {
    const int64_t rank = mla.kv_lora_rank, v_dim = mla.v_dim, stride = mla.heads * v_dim;
    compute.Parallel(mla.heads, v_dim * rank * rows.count, [&](int64_t begin, int64_t end) {
      const Compute::Scratch thread(compute);
      Arena arena(thread.memory());
      uint8_t* const memory = arena.Bytes(Compute::IntegerBytes(rank, rows.count));
      float* const kernel = arena.Floats(RowsScratch(rank));
      for (int64_t head = begin; head < end; ++head) {
        const Rows mean{s.mean + head * rank, mla.heads * rank, rows.count, 0};
        const RowIntegers integers = compute.IntegersIn(memory, mean, rank);
        float* const of_head = rows.out + head * v_dim;
        compute.Multiply(RowsOf(w.value, head * v_dim, (head + 1) * v_dim), 0, v_dim, mean,
                         integers, of_head, stride, kernel);
        for (int64_t r = 0; rows.gate != nullptr && r < rows.count; ++r)
          MultiplyBySigmoid(compute.kernels, rows.gate + r * stride + head * v_dim, v_dim,
                            of_head + r * stride);
      }
    });
  }
};

}  // namespace

WrittenMlaScratch WrittenMlaScratch::Plan(Arena& arena, const MlaConfig& mla, int64_t rows) {
  const int64_t queries = kMostRuns * mla.heads;
  return {.query = arena.Floats(rows * mla.heads * mla.cache_width()),
          .mean = arena.Floats(rows * mla.heads * mla.kv_lora_rank),
          .runs = {.mean = arena.Floats(queries * mla.kv_lora_rank),
                   .largest = arena.Floats(queries),
                   .total = arena.Floats(queries)}};
}

int64_t WrittenMlaScratch::ThreadBytes(const MlaConfig& mla, int64_t rows) {
  Arena arena;
  arena.Bytes(Compute::IntegerBytes(mla.kv_lora_rank, rows));
  arena.Floats(RowsScratch(mla.kv_lora_rank));
  return arena.peak_bytes();  // a LatentAttention is part of a prompt's block too
}

void AttendWritten(Compute& compute, const MlaConfig& mla, const MlaWeights& w,
                   const WrittenMlaScratch& scratch, int64_t layer,
                   std::span<const SessionSlice> sessions, const WrittenRows& rows) {
  const Attention attention{compute, mla, w, scratch, rows};
  attention.MakeQueries();
  for (const SessionSlice& session : sessions)
    for (int64_t t = 0; t < session.count; ++t)
      attention.SumLatents(session.begin + t, session.state->latent(layer), session.position() + t);
  attention.WriteOutputs();
}

}  // namespace waste
