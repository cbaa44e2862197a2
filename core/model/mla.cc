// SPDX-License-Identifier: Apache-2.0

#include "model/mla.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "model/primitives.h"

namespace waste {
namespace {

// In q_a_layernorm and kv_a_layernorm: the modelling code's default, not rms_norm_eps.
constexpr float kLatentEps = 1e-6f;

// Positions whose scores are held at once. Tiles start at position 0, so that a row's sums are
// grouped the same whatever step it came in.
constexpr int64_t kTile = 64;

// softmax(s) over the cache of one query, and the mean of latents that it weighs: online, tile by
// tile, rescaling what is summed when a larger score appears.
class OnlineSoftmax {
 public:
  OnlineSoftmax(const Kernels& kernels, int64_t rank, float* mean)
      : kernels_(kernels), rank_(rank), mean_(mean) {
    std::fill_n(mean_, rank_, 0.0f);
  }

  void AddTile(std::span<const float> scores, const float* cache, int64_t width) {
    const float largest = std::max(largest_, *std::max_element(scores.begin(), scores.end()));
    if (const float shrink = std::exp(largest_ - largest); shrink != 1.0f) {
      total_ *= shrink;
      for (int64_t i = 0; i < rank_; ++i) mean_[i] *= shrink;
    }
    largest_ = largest;
    for (size_t t = 0; t < scores.size(); ++t) {
      const float weight = std::exp(scores[t] - largest_);
      total_ += weight;
      kernels_.axpy(weight, cache + static_cast<int64_t>(t) * width, mean_, rank_);
    }
  }

  void Finish() {
    const float factor = 1.0f / total_;
    for (int64_t i = 0; i < rank_; ++i) mean_[i] *= factor;
  }

 private:
  const Kernels& kernels_;
  int64_t rank_;
  float* mean_;  // [rank]
  float largest_ = -std::numeric_limits<float>::infinity();
  float total_ = 0;
};

struct Attention {
  const Compute& compute;
  const MlaConfig& mla;
  const MlaWeights& w;

  // o [v] of one head for the query q [nope + rope] over `positions` rows of the cache.
  void RunHead(int64_t head, const float* q, const float* cache, int64_t positions, uint8_t* memory,
               float* o) const {
    const Kernels& kernels = compute.kernels;
    const int64_t rank = mla.kv_lora_rank, width = mla.cache_width();
    Arena arena(memory);
    float* query = arena.Floats(width);  // [q~ | q_rope]
    float* mean = arena.Floats(rank);

    const float* key = w.key + head * mla.nope_dim * rank;  // [nope, rank]
    std::fill_n(query, rank, 0.0f);
    for (int64_t d = 0; d < mla.nope_dim; ++d) kernels.axpy(q[d], key + d * rank, query, rank);
    std::copy_n(q + mla.nope_dim, mla.rope_dim, query + rank);

    const float scale = 1.0f / std::sqrt(static_cast<float>(mla.nope_dim + mla.rope_dim));
    OnlineSoftmax softmax(kernels, rank, mean);
    for (int64_t begin = 0; begin < positions; begin += kTile) {
      std::array<float, kTile> scores;
      const int64_t n = std::min(positions - begin, kTile);
      for (int64_t t = 0; t < n; ++t)
        scores[t] = scale * kernels.dot(query, cache + (begin + t) * width, width);
      softmax.AddTile({scores.data(), static_cast<size_t>(n)}, cache + begin * width, width);
    }
    softmax.Finish();

    const float* value = w.value + head * mla.v_dim * rank;  // [v, rank]
    for (int64_t j = 0; j < mla.v_dim; ++j) o[j] = kernels.dot(value + j * rank, mean, rank);
  }
};

// Norms the latents and puts them where their positions are in the caches.
void AppendToCaches(const Compute& compute, const MlaConfig& mla, const MlaWeights& w,
                    int64_t layer, std::span<const SessionSlice> sessions, const float* kv) {
  const int64_t width = mla.cache_width();
  for (const SessionSlice& session : sessions) {
    float* cache = session.state->latent(layer) + session.state->position() * width;
    std::copy_n(kv + session.begin * width, session.count * width, cache);
    for (int64_t t = 0; t < session.count; ++t)
      RmsNorm(compute.kernels, cache + t * width, w.kv_norm, kLatentEps, mla.kv_lora_rank,
              cache + t * width);
  }
}

void ProjectQueries(Compute& compute, const MlaConfig& mla, const MlaWeights& w,
                    const MlaScratch& s, int64_t rows) {
  if (mla.q_lora_rank == 0) return;  // done with the other projections of x
  const int64_t rank = mla.q_lora_rank;
  for (int64_t r = 0; r < rows; ++r)
    RmsNorm(compute.kernels, s.q_a + r * rank, w.q_norm, kLatentEps, rank, s.q_a + r * rank);
  const Projection q[] = {{&w.q_b, s.q, w.q_b.rows}};
  compute.Project(q, {s.q_a, rank, rows});
}

const SessionSlice& SliceOf(std::span<const SessionSlice> sessions, int64_t row) {
  const SessionSlice* slice = sessions.data();
  while (row >= slice->begin + slice->count) ++slice;
  return *slice;
}

// Every head of every row, heads outermost: W_k and W_v of a head stay in cache.
void Attend(Compute& compute, const ModelConfig& config, const MlaWeights& w, const MlaScratch& s,
            int64_t layer, std::span<const SessionSlice> sessions, int64_t rows) {
  const MlaConfig& mla = config.mla;
  const Attention attention{compute, mla, w};
  const int64_t q_dim = mla.nope_dim + mla.rope_dim;
  int64_t positions = 0;  // that all rows look at
  for (const SessionSlice& session : sessions)
    positions += session.count * (session.state->position() + session.count);
  const int64_t work =
      mla.kv_lora_rank * (mla.nope_dim + mla.v_dim) + 2 * mla.cache_width() * (positions / rows);
  compute.Parallel(mla.heads * rows, work, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / rows, row = i % rows;
      const SessionSlice& session = SliceOf(sessions, row);
      const int64_t seen = session.state->position() + row - session.begin + 1;
      const int64_t at = row * mla.heads + head;  // in [rows, heads]
      float* o = s.out + at * mla.v_dim;
      attention.RunHead(head, s.q + at * q_dim, session.state->latent(layer), seen, thread.memory(),
                        o);
      if (!mla.output_gate) continue;
      for (int64_t j = 0; j < mla.v_dim; ++j) o[j] *= Sigmoid(s.gate[at * mla.v_dim + j]);
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
  arena.Floats(config.mla.cache_width());
  arena.Floats(config.mla.kv_lora_rank);
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
  ProjectQueries(compute, mla, w, s, x.count);
  Attend(compute, config, w, s, layer, sessions, x.count);

  const Projection project_out[] = {{&w.out, out, config.hidden}};
  compute.Project(project_out, {s.out, mla.heads * mla.v_dim, x.count});
}

}  // namespace waste
