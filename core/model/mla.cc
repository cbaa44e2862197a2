// SPDX-License-Identifier: Apache-2.0

#include "model/mla.h"

#include <algorithm>

#include "model/latent_attention.h"
#include "model/primitives.h"

namespace waste {
namespace {

// In q_a_layernorm and kv_a_layernorm: the modelling code's default, not rms_norm_eps.
constexpr float kLatentEps = 1e-6f;

// Rows [row, row + rows) of one session and one head: at most kAttentionQueries.
struct Block {
  int64_t head;
  int64_t row, rows;
};

// A thread's memory for one block of a prompt.
struct BlockScratch {
  float* query;  // [rows, cache width]: q~ and the rope part
  LatentSums sums;
  float* mean;        // [rows, kv_lora]
  uint8_t* integers;  // the same
  float* kernel;
  LatentScratch latent;

  static BlockScratch Plan(Arena& arena, const MlaConfig& mla) {
    const int64_t rank = mla.kv_lora_rank;
    return {.query = arena.Floats(kAttentionQueries * mla.cache_width()),
            .sums = {.mean = arena.Floats(kAttentionQueries * rank),
                     .largest = arena.Floats(kAttentionQueries),
                     .total = arena.Floats(kAttentionQueries)},
            .mean = arena.Floats(kAttentionQueries * rank),
            .integers = arena.Bytes(Compute::IntegerBytes(rank, kAttentionQueries)),
            .kernel = arena.Floats(RowsScratch(rank)),
            .latent = LatentScratch::Plan(arena, mla)};
  }
};

// Rows of a prompt: a block does all there is to do for a head.
struct PromptAttention {
  const Compute& compute;
  const MlaConfig& mla;
  const MlaWeights& w;
  const MlaScratch& s;
  const SessionSlice& session;
  const float* cache;  // [positions, cache width]

  void Run(const Block& block, const BlockScratch& scratch) const {
    const int64_t rank = mla.kv_lora_rank;
    const int64_t seen = session.position() + block.row - session.begin + 1;  // by the first row
    MakeQueries(block, scratch);
    LatentAttention attention(compute.kernels, mla, scratch.latent);
    attention.SetQueries(scratch.query, block.rows, seen, block.rows);
    attention.Sum(cache, 0, seen + block.rows - 1, scratch.sums);
    for (int64_t i = 0; i < block.rows; ++i) {
      const LatentSums of_row = {scratch.sums.mean + i * rank, scratch.sums.largest + i,
                                 scratch.sums.total + i};
      MergeSums(of_row, 1, 1, rank, scratch.mean + i * rank);
    }
    WriteOutputs(block, scratch);
  }

  void MakeQueries(const Block& block, const BlockScratch& scratch) const {
    const int64_t rank = mla.kv_lora_rank, width = mla.cache_width();
    const int64_t q_dim = mla.nope_dim + mla.rope_dim, q_stride = mla.heads * q_dim;
    const float* q = s.q + block.row * q_stride + block.head * q_dim;
    const int64_t key = block.head * mla.nope_dim;
    compute.kernels.trunk_transposed(w.key, key, key + mla.nope_dim, q, q_stride, block.rows,
                                     scratch.query, width, scratch.kernel);
    for (int64_t r = 0; r < block.rows; ++r)
      std::copy_n(q + r * q_stride + mla.nope_dim, mla.rope_dim, scratch.query + r * width + rank);
  }

  void WriteOutputs(const Block& block, const BlockScratch& scratch) const {
    const int64_t v_dim = mla.v_dim, stride = mla.heads * v_dim;
    const int64_t at = block.row * stride + block.head * v_dim;
    const Rows mean{scratch.mean, mla.kv_lora_rank, block.rows, block.rows};
    compute.Multiply(RowsOf(w.value, block.head * v_dim, (block.head + 1) * v_dim), 0, v_dim, mean,
                     compute.IntegersIn(scratch.integers, mean, mla.kv_lora_rank), s.out + at,
                     stride, scratch.kernel);
    if (!mla.output_gate) return;
    for (int64_t r = 0; r < block.rows; ++r)
      MultiplyBySigmoid(compute.kernels, s.gate + at + r * stride, v_dim, s.out + at + r * stride);
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
  compute.Project(q, x.At(s.q_a, rank));
}

void AttendPrompt(Compute& compute, const MlaConfig& mla, const MlaWeights& w, const MlaScratch& s,
                  int64_t layer, const SessionSlice& session) {
  const int64_t blocks = CeilDivide(session.count, kAttentionQueries);  // of a head
  const PromptAttention attention{compute, mla, w, s, session, session.state->latent(layer)};
  compute.Run(blocks * mla.heads, 1, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute);
    Arena arena(thread.memory());
    const BlockScratch scratch = BlockScratch::Plan(arena, mla);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % blocks * kAttentionQueries;
      attention.Run({.head = i / blocks,
                     .row = session.begin + row,
                     .rows = std::min(session.count - row, kAttentionQueries)},
                    scratch);
    }
  });
}

}  // namespace

MlaScratch MlaScratch::Plan(Arena& arena, const ModelConfig& config, int64_t rows,
                            int64_t written) {
  const MlaConfig& mla = config.mla;
  return {.q_a = arena.Floats(rows * mla.q_lora_rank),
          .q = arena.Floats(rows * mla.heads * (mla.nope_dim + mla.rope_dim)),
          .kv = arena.Floats(rows * mla.cache_width()),
          .gate = arena.Floats(mla.output_gate ? rows * mla.heads * mla.v_dim : 0),
          .out = arena.Floats(rows * mla.heads * mla.v_dim),
          .written = WrittenMlaScratch::Plan(arena, mla, written)};
}

int64_t MlaScratch::ThreadBytes(const ModelConfig& config, int64_t written) {
  Arena arena;
  BlockScratch::Plan(arena, config.mla);
  return std::max(arena.peak_bytes(), WrittenMlaScratch::ThreadBytes(config.mla, written));
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
  if (!sessions.front().is_prompt) {
    const float* gate = mla.output_gate ? s.gate : nullptr;
    AttendWritten(compute, mla, w, s.written, layer, sessions, {s.q, gate, s.out, x.count});
  } else {
    for (const SessionSlice& session : sessions) AttendPrompt(compute, mla, w, s, layer, session);
  }

  const Projection project_out[] = {{&w.out, out, config.hidden}};
  compute.Project(project_out, x.At(s.out, mla.heads * mla.v_dim));
}

}  // namespace waste
