// SPDX-License-Identifier: Apache-2.0

#include "model/mla.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/primitives.h"

namespace waste {
namespace {

// In q_a_layernorm and kv_a_layernorm: the modelling code's default, not rms_norm_eps.
constexpr float kLatentEps = 1e-6f;

// Positions whose scores are held at once. Tiles start at position 0, so that a query's sums are
// grouped the same whatever step and company it came in.
constexpr int64_t kTile = 64;
// Queries (a row and a head each) that look at a tile together, while it is in the nearer caches.
constexpr int64_t kQueries = 32;

// `count` rows of f32 as the kernels take matrices.
TrunkMatrix AsMatrix(const float* rows, int64_t count, int64_t columns) {
  return {TrunkFormat::kF32, count, columns, reinterpret_cast<const uint8_t*>(rows), nullptr};
}

// Heads [head, head + heads) of rows [row, row + rows) of one session: at most kQueries.
struct Block {
  int64_t head, heads;
  int64_t row, rows;

  int64_t queries() const { return heads * rows; }  // head by head
};

struct BlockScratch {
  float* query;    // [queries, cache width]: q~ and the rope part, scaled
  float* scores;   // [kTile, queries]
  float* mean;     // [queries, rank]
  float* largest;  // [queries]: score so far
  float* total;    // [queries]: of the weights so far
  float* kernel;

  static BlockScratch Plan(Arena& arena, const MlaConfig& mla) {
    return {.query = arena.Floats(kQueries * mla.cache_width()),
            .scores = arena.Floats(kQueries * kTile),
            .mean = arena.Floats(kQueries * mla.kv_lora_rank),
            .largest = arena.Floats(kQueries),
            .total = arena.Floats(kQueries),
            .kernel = arena.Floats(RowsScratch(std::max(mla.cache_width(), mla.v_dim)))};
  }
};

struct Attention {
  const Kernels& kernels;
  const MlaConfig& mla;
  const MlaWeights& w;
  const MlaScratch& s;
  const SessionSlice& session;
  const float* cache;  // [positions, cache width]

  int64_t SeenBy(int64_t row) const { return session.position() + row - session.begin + 1; }

  void Run(const Block& block, const BlockScratch& scratch) const {
    MakeQueries(block, scratch);
    std::fill_n(scratch.largest, block.queries(), -std::numeric_limits<float>::infinity());
    std::fill_n(scratch.total, block.queries(), 0.0f);
    std::fill_n(scratch.mean, block.queries() * mla.kv_lora_rank, 0.0f);
    const int64_t seen = SeenBy(block.row + block.rows - 1);  // by the last row, which sees most
    for (int64_t begin = 0; begin < seen; begin += kTile)
      AddTile(block, scratch, begin, std::min(seen - begin, kTile));
    WriteOutputs(block, scratch);
  }

  void MakeQueries(const Block& block, const BlockScratch& scratch) const {
    const int64_t rank = mla.kv_lora_rank, width = mla.cache_width();
    const int64_t q_dim = mla.nope_dim + mla.rope_dim, q_stride = mla.heads * q_dim;
    const float scale = 1.0f / std::sqrt(static_cast<float>(q_dim));
    std::fill_n(scratch.query, block.queries() * width, 0.0f);
    for (int64_t h = 0; h < block.heads; ++h) {
      const int64_t head = block.head + h;
      const float* q = s.q + block.row * q_stride + head * q_dim;
      float* query = scratch.query + h * block.rows * width;
      const float* key = w.key + head * mla.nope_dim * rank;  // [nope, rank]
      kernels.multiply_add(q, q_stride, 1, key, rank, block.rows, mla.nope_dim, rank, query, width);
      for (int64_t r = 0; r < block.rows; ++r)
        std::copy_n(q + r * q_stride + mla.nope_dim, mla.rope_dim, query + r * width + rank);
    }
    for (int64_t i = 0; i < block.queries() * width; ++i) scratch.query[i] *= scale;
  }

  // Softmax online: what is summed is rescaled when a larger score appears. A row's positions
  // behind its own have the weight 0. Positions are what the queries are multiplied with, and not
  // the other way round: there are more of them, and kernels are faster with many inputs.
  void AddTile(const Block& block, const BlockScratch& scratch, int64_t begin,
               int64_t count) const {
    const int64_t rank = mla.kv_lora_rank, width = mla.cache_width(), queries = block.queries();
    const float* tile = cache + begin * width;
    kernels.trunk_rows(AsMatrix(scratch.query, queries, width), 0, queries, tile, width, count,
                       scratch.scores, queries, scratch.kernel);
    for (int64_t i = 0; i < queries; ++i) TakeLargest(block, scratch, i, begin, count);
    for (int64_t t = 0; t < count; ++t)
      for (int64_t i = 0; i < queries; ++i) scratch.scores[t * queries + i] -= scratch.largest[i];
    kernels.exp(scratch.scores, count * queries, scratch.scores);
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t t = SeenOf(block, i, begin, count); t < count; ++t)
        scratch.scores[t * queries + i] = 0.0f;
    for (int64_t t = 0; t < count; ++t)
      for (int64_t i = 0; i < queries; ++i) scratch.total[i] += scratch.scores[t * queries + i];
    kernels.multiply_add(scratch.scores, 1, queries, tile, width, queries, count, rank,
                         scratch.mean, rank);
  }

  // How many of the tile's positions query i sees.
  int64_t SeenOf(const Block& block, int64_t i, int64_t begin, int64_t count) const {
    return std::clamp<int64_t>(SeenBy(block.row + i % block.rows) - begin, 0, count);
  }

  // A new largest score of query i shrinks what was summed.
  void TakeLargest(const Block& block, const BlockScratch& scratch, int64_t i, int64_t begin,
                   int64_t count) const {
    const int64_t rank = mla.kv_lora_rank, queries = block.queries();
    const int64_t seen = SeenOf(block, i, begin, count);
    float largest = scratch.largest[i];
    for (int64_t t = 0; t < seen; ++t) largest = std::max(largest, scratch.scores[t * queries + i]);
    if (largest == scratch.largest[i]) return;
    const float shrink = std::exp(scratch.largest[i] - largest);
    scratch.total[i] *= shrink;
    for (int64_t j = 0; j < rank; ++j) scratch.mean[i * rank + j] *= shrink;
    scratch.largest[i] = largest;
  }

  void WriteOutputs(const Block& block, const BlockScratch& scratch) const {
    const int64_t rank = mla.kv_lora_rank, v_dim = mla.v_dim, stride = mla.heads * v_dim;
    for (int64_t i = 0; i < block.queries(); ++i) {
      const float factor = 1.0f / scratch.total[i];
      for (int64_t j = 0; j < rank; ++j) scratch.mean[i * rank + j] *= factor;
    }
    for (int64_t h = 0; h < block.heads; ++h) {
      const int64_t head = block.head + h;
      float* out = s.out + block.row * stride + head * v_dim;
      kernels.trunk_rows(AsMatrix(w.value + head * v_dim * rank, v_dim, rank), 0, v_dim,
                         scratch.mean + h * block.rows * rank, rank, block.rows, out, stride,
                         scratch.kernel);
      if (!mla.output_gate) continue;
      const float* gate = s.gate + block.row * stride + head * v_dim;
      for (int64_t r = 0; r < block.rows; ++r)
        MultiplyBySigmoid(kernels, gate + r * stride, v_dim, out + r * stride);
    }
  }
};

// Norms the latents and puts them where their positions are in the caches.
void AppendToCaches(const Compute& compute, const MlaConfig& mla, const MlaWeights& w,
                    int64_t layer, std::span<const SessionSlice> sessions, const float* kv) {
  const int64_t width = mla.cache_width();
  for (const SessionSlice& session : sessions) {
    float* cache = session.state->latent(layer) + session.position() * width;
    std::copy_n(kv + session.begin * width, session.count * width, cache);
    for (int64_t t = 0; t < session.count; ++t)
      RmsNorm(compute.kernels, cache + t * width, w.kv_norm, kLatentEps, mla.kv_lora_rank,
              cache + t * width);
  }
}

void ProjectQueries(Compute& compute, const MlaConfig& mla, const MlaWeights& w,
                    const MlaScratch& s, Rows x) {
  if (mla.q_lora_rank == 0) return;  // done with the other projections of x
  const int64_t rank = mla.q_lora_rank;
  for (int64_t r = 0; r < x.count; ++r)
    RmsNorm(compute.kernels, s.q_a + r * rank, w.q_norm, kLatentEps, rank, s.q_a + r * rank);
  const Projection q[] = {{&w.q_b, s.q, w.q_b.rows}};
  compute.Project(q, {s.q_a, rank, x.count, x.is_written});
}

// A session's rows and heads in blocks: many rows by one head each, few rows by as many heads as
// leave something for every thread.
void Attend(Compute& compute, const MlaConfig& mla, const MlaWeights& w, const MlaScratch& s,
            int64_t layer, const SessionSlice& session) {
  const int64_t block_rows = std::min(session.count, kQueries);
  const int64_t block_heads =
      std::clamp<int64_t>(CeilDivide(mla.heads, compute.threads()), 1, kQueries / block_rows);
  const int64_t row_blocks = CeilDivide(session.count, block_rows);
  const int64_t head_blocks = CeilDivide(mla.heads, block_heads);
  const Attention attention{compute.kernels, mla, w, s, session, session.state->latent(layer)};
  compute.Run(row_blocks * head_blocks, 1, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute);
    Arena arena(thread.memory());
    const BlockScratch scratch = BlockScratch::Plan(arena, mla);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / row_blocks * block_heads, row = i % row_blocks * block_rows;
      attention.Run({.head = head,
                     .heads = std::min(mla.heads - head, block_heads),
                     .row = session.begin + row,
                     .rows = std::min(session.count - row, block_rows)},
                    scratch);
    }
  });
}

}  // namespace

MlaScratch MlaScratch::Plan(Arena& arena, const ModelConfig& config, int64_t rows) {
  const MlaConfig& mla = config.mla;
  return {.q_a = arena.Floats(rows * mla.q_lora_rank),
          .q = arena.Floats(rows * mla.heads * (mla.nope_dim + mla.rope_dim)),
          .kv = arena.Floats(rows * mla.cache_width()),
          .gate = arena.Floats(mla.output_gate ? rows * mla.heads * mla.v_dim : 0),
          .out = arena.Floats(rows * mla.heads * mla.v_dim)};
}

int64_t MlaScratch::ThreadBytes(const ModelConfig& config) {
  Arena arena;
  BlockScratch::Plan(arena, config.mla);
  return arena.peak_bytes();
}

void RunMla(Compute& compute, const ModelConfig& config, const MlaWeights& w, const MlaScratch& s,
            int64_t layer, std::span<const SessionSlice> sessions, Rows x, float* out) {
  const MlaConfig& mla = config.mla;
  const Projection of_x[] = {
      mla.q_lora_rank > 0 ? Projection{&w.q_a, s.q_a, mla.q_lora_rank}
                          : Projection{&w.q, s.q, w.q.rows},
      {&w.kv_a, s.kv, mla.cache_width()},
      {&w.gate, s.gate, w.gate.rows},
  };
  compute.Project(std::span(of_x).first(mla.output_gate ? 3 : 2), x);
  AppendToCaches(compute, mla, w, layer, sessions, s.kv);
  ProjectQueries(compute, mla, w, s, x);
  for (const SessionSlice& session : sessions) Attend(compute, mla, w, s, layer, session);

  const Projection project_out[] = {{&w.out, out, config.hidden}};
  compute.Project(project_out, {s.out, mla.heads * mla.v_dim, x.count, x.is_written});
}

}  // namespace waste
